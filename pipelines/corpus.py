"""The text that the reference pipelines search: passages with a topic and a title.

The default corpus is on every machine: the topics of Python's own language reference, as `pydoc_data` ships
them.  Any folder of text files takes its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hotspan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MAX_CHARS = 900
TEXT_SUFFIXES = frozenset({".txt", ".text", ".md", ".markdown", ".rst", ".adoc"})

_PARAGRAPH_BORDER = re.compile(r"\n[ \t]*\n")
_UNDERLINED_HEADING = re.compile(r"([^\n]+)\n([*=\-~^#\"])\2{2,}[ \t]*")
_HASH_HEADING = re.compile(r"#{1,6} ([^\n]+)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that is short enough to embed whole."""

    topic: str
    """Which document it is from: the topic's name, or the file's path without its suffix."""
    title: str
    """The nearest heading above it, or the topic where there is none."""
    text: str
    """Its own text, at most `MAX_CHARS` characters."""


def load_corpus(folder: Path | None = None) -> tuple[Passage, ...]:
    """Return the passages of a folder of text files, or of Python's documentation topics.

    Args:
        folder: Read recursively for files that end in one of `TEXT_SUFFIXES`; None for the built-in corpus.

    Raises:
        hotspan.ConfigurationError: The folder is missing, unreadable, or holds no text.
    """
    documents = python_topics() if folder is None else read_folder(folder)
    passages = split_documents(documents)
    if not passages:
        msg = f"{folder}: its text files are empty. Put text into them, or leave out --corpus."
        raise hotspan.ConfigurationError(msg)
    return passages


def python_topics() -> dict[str, str]:
    """Return the topics of Python's own documentation, name -> text."""
    from pydoc_data.topics import topics  # noqa: PLC0415 - half a megabyte that only this corpus needs

    return dict(topics)


def read_folder(folder: Path) -> dict[str, str]:
    """Return the text files below a folder, path without suffix -> text; bad UTF-8 is replaced."""
    if not folder.is_dir():
        msg = f"{folder}: not a folder. Give --corpus a folder of text files, or leave it out."
        raise hotspan.ConfigurationError(msg)
    try:
        files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in TEXT_SUFFIXES and p.is_file())
        documents = {
            str(path.relative_to(folder).with_suffix("")): path.read_text(encoding="utf-8", errors="replace")
            for path in files
        }
    except OSError as exc:
        msg = f"{exc.filename}: cannot be read ({exc.strerror}). Make it readable, or move it away."
        raise hotspan.ConfigurationError(msg) from exc
    if not documents:
        msg = f"{folder}: no text file in it. Files that end in {', '.join(sorted(TEXT_SUFFIXES))} are read."
        raise hotspan.ConfigurationError(msg)
    return documents


def split_documents(documents: Mapping[str, str]) -> tuple[Passage, ...]:
    """Split documents into passages; a text that several of them hold is kept once, in the shortest.

    Python's topics include one another (`compound` holds all of `with`): the shortest is the most specific.
    """
    seen: dict[str, Passage] = {}
    for topic, text in sorted(documents.items(), key=lambda item: (len(item[1]), item[0])):
        for title, body in split_document(text):
            seen.setdefault(body, Passage(topic, title or topic, body))
    return tuple(sorted(seen.values(), key=lambda p: p.topic))


def split_document(text: str) -> Iterator[tuple[str, str]]:
    """Yield (heading above it or "", text of at most `MAX_CHARS`), split at paragraph borders.

    A heading starts a new passage and is not part of its text, so that a section splits the same way wherever
    it stands and however deep.
    """
    title, pending = "", ""
    for part in _paragraphs(text):
        heading = _heading(part)
        if pending and (heading or len(pending) + len("\n\n") + len(part) > MAX_CHARS):
            yield title, pending
            pending = ""
        if heading:
            title = heading
        else:
            pending = f"{pending}\n\n{part}" if pending else part
    if pending:
        yield title, pending


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH_BORDER.split(text.replace("\r\n", "\n")):
        yield from _pieces(paragraph.strip("\n"))


def _pieces(paragraph: str) -> Iterable[str]:
    # A paragraph longer than a passage (a table, a listing) is cut at line ends, then anywhere.
    pending = ""
    for line in paragraph.splitlines():
        for start in range(0, len(line) or 1, MAX_CHARS):
            piece = line[start : start + MAX_CHARS]
            if pending and len(pending) + 1 + len(piece) > MAX_CHARS:
                yield pending
                pending = piece
            else:
                pending = f"{pending}\n{piece}" if pending else piece
    if pending.strip():
        yield pending


def _heading(paragraph: str) -> str | None:
    match = _UNDERLINED_HEADING.fullmatch(paragraph) or _HASH_HEADING.fullmatch(paragraph)
    return match[1].strip() if match else None
