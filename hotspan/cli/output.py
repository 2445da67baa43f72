"""Where a command's words go: results to standard output, the rest to standard error."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, TextIO

import click

from hotspan.exporters.reports.names import encodable, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan.exporters.reports.screen import Screen

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def screen(*, wide: bool = False) -> Screen:
    """Return what standard output can show."""
    from hotspan.exporters.reports.screen import Screen  # noqa: PLC0415 - rich comes with the first rendering

    return Screen.of(stdout(), wide=wide)


def emit(text: str) -> None:
    """Write a result to standard output; what its encoding cannot hold becomes letters or escapes."""
    stream = stdout()
    stream.write(encodable(text, getattr(stream, "encoding", None) or "utf-8"))


def warn(sentences: Iterable[str]) -> None:
    """Write what has to be known beside a result to standard error, a line each."""
    for sentence in sentences:
        click.echo(f"! {printable(sentence)}", err=True)


def stdout() -> TextIO:
    """Return standard output, or the null device in a process that was started without one."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the process
    return sys.stdout


def printable_lines(message: str) -> str:
    """Return a message of one or more lines without anything that acts on the terminal."""
    return printable(message, keep="\n\t")


def sentence_of(error: OSError) -> str:
    """Return what the operating system refused, in a sentence."""
    what = error.strerror or str(error) or type(error).__name__
    reason = f"{what[:1].lower()}{what[1:]}."
    if isinstance(error.filename, str | bytes):
        return f"{os.fsdecode(error.filename)}: {reason}"
    if error.errno in _UNWRITABLE:
        return f"Standard output cannot be written: {reason} Free some space, or send it somewhere else."
    return reason


def is_broken_pipe(error: OSError) -> bool:
    """Whether the reader of a pipe has gone."""
    return error.errno == errno.EPIPE


def flush() -> None:
    """Write out what standard output still holds, so that a failure is met here and not at exit."""
    stdout().flush()


def settle() -> None:
    """Write out what standard output still holds; where that fails, let nothing fail again at exit."""
    try:
        flush()
    except OSError:
        _abandon(stdout())


def _abandon(stream: TextIO) -> None:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # not a file: nothing of it is written at exit
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
