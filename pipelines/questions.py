"""Questions to the default corpus whose right topic is known, and tasks for the agent.

Each question names every topic that answers it: Python's topics overlap (`typesseq` and `lists` both define
what a list is), and a retriever that finds either is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Question:
    """A question in a user's words and the topics that hold its answer."""

    text: str
    topics: frozenset[str]


def _ask(text: str, *topics: str) -> Question:
    return Question(text, frozenset(topics))


QUESTIONS: Final = (
    _ask(
        "How do I make sure that a file is closed even when an error happens while I use it?",
        "with",
        "context-managers",
        "try",
    ),
    _ask("What is the difference between break and continue in a loop?", "break", "continue", "for", "while"),
    _ask("How can a nested function rebind a variable of the function around it?", "nonlocal", "naming"),
    _ask("When does the else clause of a for or while loop run?", "for", "while", "else", "break"),
    _ask("How do I pad a number with zeros to a fixed width in a format string?", "formatstrings"),
    _ask("Which values are considered false in an if condition?", "truth", "booleans", "if"),
    _ask("How do I catch several kinds of exceptions and always run clean-up code?", "try", "exceptions"),
    _ask("What does a generator function do when it is called?", "yield", "types", "typesseq", "objects"),
    _ask("How do I set a breakpoint and step through my program line by line?", "debugger"),
    _ask(
        "Which operators bind tighter: comparison, not, and, or?",
        "operator-summary",
        "booleans",
        "comparisons",
    ),
    _ask("How are default values of function parameters evaluated?", "function"),
    _ask("What is the order in which Python searches for a module that I import?", "import"),
    _ask(
        "How do I define what happens when objects of my class are compared with <?",
        "customization",
        "comparisons",
        "specialnames",
    ),
    _ask(
        "How do I take every second element of a list?",
        "slicings",
        "typesseq",
        "typesseq-mutable",
        "sequence-types",
    ),
    _ask("How can I split a string into a list of words?", "string-methods"),
    _ask(
        "What happens when an attribute is not found on an object?",
        "attribute-access",
        "attribute-references",
        "types",
    ),
    _ask("How do I write a coroutine and wait for its result?", "async", "await", "types"),
    _ask("How can I create a small anonymous function in an expression?", "lambda", "lambdas"),
    _ask("What is the result of raising a negative number to a fractional power?", "power", "numeric-types"),
    _ask("How do I get a dictionary's value with a default when the key is missing?", "typesmapping", "dict"),
    _ask(
        "How do I unpack a sequence into several variables, with one that takes the rest?",
        "assignment",
        "exprlists",
    ),
    _ask("How do I pass a list as separate positional arguments to a function?", "calls"),
    _ask("What do the bitwise shift operators do with integers?", "shifting", "bitwise", "binary"),
    _ask("How do I remove duplicates and test membership quickly?", "in", "comparisons", "types", "typesseq"),
    _ask("How do I raise an exception and keep the original cause attached?", "raise", "exceptions"),
    _ask(
        "Which characters may the name of a variable contain?",
        "identifiers",
        "atom-identifiers",
        "id-classes",
    ),
    _ask("How do I write a raw string literal with backslashes?", "strings"),
    _ask("What does the statement that does nothing look like?", "pass"),
    _ask("How do I stop the program in debug mode if a condition does not hold?", "assert"),
    _ask(
        "How can I customise the creation of classes with a metaclass?",
        "customization",
        "class",
        "specialnames",
        "types",
    ),
)

TASKS: Final = (
    "Explain how exceptions leave a with statement, and count the topics that mention it.",
    "Compare the precedence of ** and unary minus, and check it on -2 ** 2.",
    "Find out how slices with a negative step work, and how many items range(10)[::-3] has.",
    "Describe how Python looks up an attribute, step by step.",
    "What is the largest value that a signed 64-bit integer holds, and does Python have such a limit?",
    "List what may follow the match keyword, with an example for each.",
    "Which statements may a loop body use to leave the loop early?",
    "How do format strings round the number 2.675 to two places?",
)
