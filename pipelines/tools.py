"""What the reference agent can do: search the corpus, calculate, look up a topic."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import hotspan
from hotspan.pipelines.calculator import calculate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hotspan.pipelines.rag import Retriever

SEARCH_RESULTS: Final = 3
EXCERPT_CHARS: Final = 300
TOPIC_CHARS: Final = 600
ARGUMENT_CHARS: Final = 24
MAX_LISTED_TOPICS: Final = 200  # a longer list is no longer put into the schema

# Such that even a model that picks its characters at random writes something that can be calculated.
ARITHMETIC: Final = r"^(0|[1-9][0-9]{0,5})( ([-+*/%]|//) (0|[1-9][0-9]{0,5})| \*\* [0-9]){1,4}$"


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that an agent may call with one text."""

    name: str
    use: str
    """One line for the model: what it does and what its argument is."""
    argument: Mapping[str, Any]
    """JSON schema of the argument; a string in any case."""
    run: Callable[[str], str]
    """Returns what the model is shown; raises ValueError for an argument that makes no sense."""


def corpus_tools(retriever: Retriever) -> tuple[Tool, ...]:
    """Return the three tools over a corpus, traced."""
    topics = sorted({passage.topic for passage in retriever.index.passages})

    @hotspan.tool
    def search_corpus(query: str) -> str:
        hits = retriever.search(query, SEARCH_RESULTS)
        return "\n".join(f"[{hit.passage.topic}] {hit.passage.text[:EXCERPT_CHARS]}" for hit in hits)

    @hotspan.tool("calculate")
    def run_calculator(expression: str) -> str:
        return str(calculate(expression))

    @hotspan.tool
    def lookup_topic(topic: str) -> str:
        texts = [passage.text for passage in retriever.index.passages if passage.topic == topic.strip()]
        if not texts:
            raise ValueError(_no_such_topic(topic, topics))
        return "\n\n".join(texts)[:TOPIC_CHARS]

    return (
        Tool("search_corpus", "find passages about a query", _text(), search_corpus),
        Tool("calculate", "work out an expression such as 12 * 3 + 4", _text(ARITHMETIC), run_calculator),
        Tool("lookup_topic", "read a topic whose name is known", _one_of(topics), lookup_topic),
    )


def _text(pattern: str | None = None) -> dict[str, Any]:
    if pattern is not None:
        return {"type": "string", "pattern": pattern}
    return {"type": "string", "minLength": 1, "maxLength": ARGUMENT_CHARS}


def _one_of(names: list[str]) -> dict[str, Any]:
    return {"type": "string", "enum": names} if len(names) <= MAX_LISTED_TOPICS else _text()


def _no_such_topic(topic: str, topics: list[str]) -> str:
    near = difflib.get_close_matches(topic, topics, n=3)
    return f"there is no topic {topic!r}" + (f"; near: {', '.join(near)}" if near else "")
