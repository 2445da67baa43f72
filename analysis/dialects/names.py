"""Stages from span names alone: the words that people use for retrieval, reranking and the like.

The last resort, and a guess: applications name their spans as they like.  A name that says two things, a
sentence, or a user's text says nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hotspan.tracer import semconv

_MAX_LENGTH: Final = 60  # longer ones are sentences
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# What frameworks put around the name that the user gave.
_AROUND: Final = re.compile(
    r"^(?:execute task|executor process|calling|run|runnable|main|function) (?=.)"
    r"|(?<=.) (?:task|workflow|run|forward|invoke|call|func|fn|node|component)$"
)
_EMBEDS_FIRST: Final = re.compile(r"^(?:embed|encode (?:query|question|texts?)|vectori[sz]e)\b")
# In order of trust; the first whose words are found.
_STAGES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\b(?:re ?rank(?:s|er|ers|ing)?|ranker|cross encoder)\b"), semconv.RERANK),
    (
        re.compile(
            r"\b(?:build|format|assemble|make|render|create|pack)\b.*\b(?:prompt|context|docs|documents)\b"
            r"|\bprompt (?:builder|template)\b|\bcontext (?:builder|assembly)\b"
        ),
        semconv.CONTEXT_ASSEMBLY,
    ),
    (
        re.compile(
            r"\b(?:retriev(?:e|es|er|al|ing)|[am]?retrieve|faiss|bm25|knn|hnsw"
            r"|(?:vector|similarity|semantic|hybrid|documents?|knowledge|keyword|dense|sparse|index) search"
            r"|search (?:the )?(?:vectors?|vector store|documents?|docs|index|knowledge(?: base)?|corpus)"
            r"|vector ?(?:store|db) (?:search|query|lookup)|query (?:vector ?(?:store|db)|index))\b"
        ),
        semconv.RETRIEVAL,
    ),
    (re.compile(r"\b(?:embed(?:s|der|ding|dings)?|text embedding)\b"), semconv.EMBEDDING),
    (
        re.compile(
            r"^tool (?!node\b|invoker\b|executor\b)\w|^(?:call|execute|run|running|invoke|use) tool\b"
        ),
        semconv.TOOL,
    ),
    (
        re.compile(r"^(?:\w+ )?(?:agent|assistant)(?: (?:run|runner|loop|executor|main))?$|^lang graph$"),
        semconv.AGENT,
    ),
    (re.compile(r"^(?:agent )?(?:step|turn|iteration|cycle)(?: \d+)?$"), semconv.STEP),
)
_CONTRADICTS: Final = frozenset({semconv.RETRIEVAL, semconv.RERANK})


@lru_cache(maxsize=4096)
def words_of(name: str) -> str:
    """Return a name's words in lower case, one space between: `JinaRanker._run` is "jina ranker run"."""
    return " ".join(word.lower() for word in _WORDS.findall(name))


@lru_cache(maxsize=4096)
def guess(name: str) -> str | None:
    """Return the stage that a span's name suggests, or `None`."""
    if len(name) > _MAX_LENGTH or "\n" in name:
        return None
    words = words_of(name)
    while (bare := _AROUND.sub("", words)) != words:
        words = bare
    if _EMBEDS_FIRST.search(words):
        return semconv.EMBEDDING
    found = [stage for pattern, stage in _STAGES if pattern.search(words)]
    # `retrieve_and_rerank` is neither: it holds both.
    return None if not found or set(found) >= _CONTRADICTS else found[0]
