"""What the processes say to each other, one message after the other, as pickles over a pipe.

pool                          worker
── Order ─────────────────►
◄───────── Read, Read, … ──   of traces that are complete
◄─────────────────── End ──   of its lines
── ids of shared traces ──►
◄───────── Read, Read, … ──   of those of which nobody else has spans
◄────────────────── Left ──
"""

from __future__ import annotations

import copyreg
import pickle
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hotspan.analysis.form_batch import FormBatch
    from hotspan.analysis.forms import Form
    from hotspan.analysis.parallel.ranges import Range
    from hotspan.tracer.record import SpanRecord

_PROTOCOL: Final = 5


class Order(NamedTuple):
    """What a worker is to read."""

    lines: Range
    near_bytes: int  # in which more of a trace may come behind its root, and before the range


class Read(NamedTuple):
    """Traces that are complete, and lines."""

    forms: Sequence[Form]  # that are new; they have numbers, from 0, in the order in which they are sent
    batches: Sequence[tuple[int, FormBatch]]  # traces that have a form: its number, and they without it
    traces: Sequence[Sequence[SpanRecord]]  # the others
    done: bytes  # ids of all these traces, 16 bytes each
    lines: Sequence[tuple[int, bytes]]  # of another layout, or wrong: number in the range, from 1, and text


class End(NamedTuple):
    """All lines are read."""

    n_lines: int
    foreign_ids: Collection[str]  # of traces that have spans before the range, too


class Left(NamedTuple):
    """What is left at the end."""

    traces: Sequence[Sequence[SpanRecord]]  # others may have more of their spans


class _Pickler(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table.copy()
    dispatch_table[MappingProxyType] = lambda mapping: (read_only, (dict(mapping),))


def read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a mapping as one that cannot be changed, which no pickle holds by itself."""
    return MappingProxyType(mapping)


def send(pipe: IO[bytes], message: object) -> None:
    """Write a message.

    Raises:
        OSError: Nobody reads it.
    """
    _Pickler(pipe, _PROTOCOL).dump(message)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Return the next message.

    Raises:
        EOFError: There is none.
        pickle.UnpicklingError: It breaks off.
    """
    return pickle.load(pipe)  # noqa: S301 - a pipe between two processes of ours
