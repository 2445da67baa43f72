"""Which request of a file to show: the slowest, the one at a percentile, or the one with an id."""

from __future__ import annotations

import heapq
import math
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from hotspan.exporters.reports import figures
from hotspan.exporters.reports.figures import counted
from hotspan.exporters.reports.request_view import RequestView, Root, roots_of, view
from hotspan.tracer.errors import ConfigurationError, UnusableTraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hotspan.analysis.unstaged import Beginning
    from hotspan.tracer.record import Trace

_TRACE_DIGITS = 32
_LISTED = 10
_AMBIGUOUS = 2  # traces that an id begins: more of them need not be held
_SLOWEST = 100.0
_MOST_HELD = 1_000  # kinds of traces without a stage
_first = itemgetter(0)


class Seen(NamedTuple):
    """What is remembered of each request while the traces go by."""

    duration_ns: int
    trace_id: str
    span_id: str  # of its root
    root_fault: str  # where it is a part of a request
    is_request: bool  # False: no span of it has a stage
    begins: Beginning | None  # where that tells requests from others

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by."""
        return self.trace_id, self.span_id


def choose(
    traces: Iterable[Trace],
    trace_id: str | None = None,
    percentile: float = _SLOWEST,
    *,
    again: Callable[[], Iterable[Trace]] | None = None,
) -> RequestView:
    """Return one request out of the traces; where no span of any has a stage, one of the traces.

    Args:
        traces: What was read; read once.
        trace_id: The beginning of a trace's id, or a whole one; of several requests in that trace the longest
            is taken, of a trace without any its longest root.  None for the request at `percentile`.
        percentile: In (0, 100], by nearest rank over all complete requests; 100 is the slowest.
        again: Reads the same traces another time.  With it no more than two requests are held at a time;
            without it a percentile below 100 holds them all.

    Raises:
        UnusableTraceError: There is no complete trace, none with that id, or several that begin with it.
        ConfigurationError: The percentile is no percentile.
    """
    if not 0 < percentile <= _SLOWEST:
        msg = f"A percentile is above 0 and at most 100, not {percentile}."
        raise ConfigurationError(msg)
    if trace_id is not None:
        return _by_id(traces, trace_id)
    holds_all = percentile < _SLOWEST and again is None
    seen, held = _pass_by(traces, holds_all=holds_all, is_last=again is None)
    complete = _requests([found for found in seen if not found.root_fault])
    if not complete:
        _refuse("There is no complete request to show.", _requests(seen))
    complete.sort()
    rank = max(1, math.ceil(percentile / _SLOWEST * len(complete)))
    which = "the slowest" if rank == len(complete) else f"at percentile {percentile:g}"
    wanted = complete[rank - 1]
    root = held.get(wanted.key) or _find(again() if again is not None else (), wanted)
    several = counted(len(complete), "request" if wanted.is_request else "trace")
    return view(
        root, f"{which} of {several}" + ("" if wanted.is_request else ", in which no span has a stage")
    )


def _requests(seen: Sequence[Seen]) -> list[Seen]:
    """Return those that are requests; all of them where none is."""
    return [found for found in seen if found.is_request] or list(seen)


def _pass_by(
    traces: Iterable[Trace], *, holds_all: bool, is_last: bool
) -> tuple[list[Seen], dict[tuple[str, str], Root]]:
    """Return what was seen, and the roots that are held: the slowest complete ones, or all.

    Where the traces cannot be read again, the slowest without a stage of each beginning is among them.
    """
    seen: list[Seen] = []
    held: dict[tuple[str, str], Root] = {}
    slowest: dict[object, tuple[Seen, Root]] = {}
    for root in (root for trace in traces for root in roots_of(trace)):
        found = _seen(root)
        seen.append(found)
        if holds_all:
            held[found.key] = root
        elif not found.root_fault:
            kind = found.is_request or (is_last and len(slowest) < _MOST_HELD and found.begins)
            slowest[kind] = max(slowest.get(kind, (found, root)), (found, root), key=_first)
    held |= {found.key: root for found, root in slowest.values()}
    known = {found.begins for found in seen if found.is_request} - {None}
    return [found._replace(is_request=found.is_request or found.begins in known) for found in seen], held


def _seen(root: Root) -> Seen:
    span = root.tree.spans[root.index]
    return Seen(root.duration_ns, root.tree.trace_id, span.span_id, root.fault, root.is_request, root.begins)


def _rank(seen: Seen) -> tuple[bool, bool, Seen]:
    """Return what is shown rather than what: a request, then what is complete, then what is slow."""
    return seen.is_request, not seen.root_fault, seen


def _find(traces: Iterable[Trace], wanted: Seen) -> Root:
    for trace in traces:
        for root in roots_of(trace):
            found = _seen(root)
            if (found.duration_ns, *found.key) == (wanted.duration_ns, *wanted.key):
                return root
    msg = "The file changed while it was read: try again when nobody writes to it."
    raise UnusableTraceError(msg)


def _by_id(traces: Iterable[Trace], asked: str) -> RequestView:
    prefix = asked.strip().lower().replace("-", "")
    padded = prefix.zfill(_TRACE_DIGITS)  # Jaeger leaves the zeros of 64-bit ids out
    seen: list[Seen] = []
    matching: dict[str, list[Root]] = {}
    for root in (root for trace in traces for root in roots_of(trace)):
        seen.append(_seen(root))
        trace_id = root.tree.trace_id
        is_wanted = trace_id.startswith(prefix) or trace_id == padded
        if is_wanted and (trace_id in matching or len(matching) < _AMBIGUOUS):
            matching.setdefault(trace_id, []).append(root)
    if not matching:
        _refuse(f"No trace with an id that begins with {asked!r}.", _requests(seen))
    if len(matching) > 1:
        found = [one for one in seen if one.trace_id.startswith(prefix) or one.trace_id == padded]
        n_traces = len({one.trace_id for one in found})
        _refuse(f"{n_traces:,} traces have an id that begins with {asked!r}: give more of it.", found)
    (roots,) = matching.values()
    chosen = max(roots, key=lambda root: _rank(_seen(root)))
    alike = [root for root in roots if _rank(_seen(root))[:2] == _rank(_seen(chosen))[:2]]
    others = f"the longest of {len(alike)} in its trace" if len(alike) > 1 else "the one asked for"
    return view(chosen, others if chosen.is_request else f"{others}; no span has a stage")


def _refuse(what: str, seen: Sequence[Seen]) -> NoReturn:
    slowest = heapq.nlargest(_LISTED, seen)
    lines = (
        f"  {found.trace_id}  {figures.duration(found.duration_ns)}{_partial(found)}" for found in slowest
    )
    n_traces = len({found.trace_id for found in seen})
    listed = "the slowest first" if n_traces > 1 else "this one"
    here = f" Here {'are' if n_traces > 1 else 'is'} {counted(n_traces, 'trace')}, {listed}:" if seen else ""
    more = [f"  and {n_traces - _LISTED:,} more"] if n_traces > _LISTED else []
    nothing = "" if seen else " No span can be used: `hotspan report` counts what cannot."
    raise UnusableTraceError("\n".join([what + here + nothing, *lines, *more]))


def _partial(found: Seen) -> str:
    return f"  partial: its root {found.root_fault}" if found.root_fault else ""
