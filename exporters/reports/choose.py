"""Which request of a file to show: the slowest, the one at a percentile, or the one with an id."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, NoReturn

from hotspan.exporters.reports import figures
from hotspan.exporters.reports.figures import counted
from hotspan.exporters.reports.request_view import RequestView, Root, roots_of, view
from hotspan.tracer.errors import ConfigurationError, UnusableTraceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotspan.tracer.record import Trace

_TRACE_DIGITS = 32
_LISTED = 10
_SLOWEST = 100.0


def choose(traces: Iterable[Trace], trace_id: str | None = None, percentile: float = _SLOWEST) -> RequestView:
    """Return one request out of the traces.

    Args:
        traces: What was read.
        trace_id: The beginning of a trace's id, or a whole one; of several requests in that trace the longest
            is taken.  None for the request at `percentile`.
        percentile: In (0, 100], by nearest rank over all complete requests; 100 is the slowest.

    Raises:
        UnusableTraceError: There is no request, none with that id, or several that begin with it.
        ConfigurationError: The percentile is no percentile.
    """
    if not 0 < percentile <= _SLOWEST:
        msg = f"A percentile is above 0 and at most 100, not {percentile}."
        raise ConfigurationError(msg)
    roots = [root for trace in traces for root in roots_of(trace)]
    if trace_id is not None:
        return _by_id(roots, trace_id)
    complete = sorted((root for root in roots if not root.is_partial), key=_order)
    if not complete:
        _refuse("There is no complete request to show.", roots)
    rank = max(1, math.ceil(percentile / _SLOWEST * len(complete)))
    which = "the slowest" if rank == len(complete) else f"at percentile {percentile:g}"
    return view(complete[rank - 1], f"{which} of {counted(len(complete), 'request')}")


def _order(root: Root) -> tuple[int, str]:
    return root.duration_ns, root.tree.trace_id


def _by_id(roots: Sequence[Root], asked: str) -> RequestView:
    prefix = asked.strip().lower().replace("-", "")
    padded = prefix.zfill(_TRACE_DIGITS)  # Jaeger leaves the zeros of 64-bit ids out
    found = [root for root in roots if root.tree.trace_id.startswith(prefix) or root.tree.trace_id == padded]
    ids = {root.tree.trace_id for root in found}
    if not ids:
        _refuse(f"No trace with an id that begins with {asked!r}.", roots)
    if len(ids) > 1:
        _refuse(f"{len(ids):,} traces have an id that begins with {asked!r}: give more of it.", found)
    complete = [root for root in found if not root.is_partial] or found
    others = f"the longest of {len(complete)} in its trace" if len(complete) > 1 else "the one asked for"
    return view(max(complete, key=_order), others)


def _refuse(what: str, roots: Sequence[Root]) -> NoReturn:
    slowest = heapq.nlargest(_LISTED, roots, key=_order)
    lines = (
        f"  {root.tree.trace_id}  {figures.duration(root.duration_ns)}{_partial(root)}" for root in slowest
    )
    n_traces = len({root.tree.trace_id for root in roots})
    listed = "the slowest first" if n_traces > 1 else "this one"
    here = f" Here {'are' if n_traces > 1 else 'is'} {counted(n_traces, 'trace')}, {listed}:" if roots else ""
    more = [f"  and {n_traces - _LISTED:,} more"] if n_traces > _LISTED else []
    nothing = "" if roots else " No span in the input has a stage: was it recorded by an application?"
    raise UnusableTraceError("\n".join([what + here + nothing, *lines, *more]))


def _partial(root: Root) -> str:
    return "  partial: its root is missing" if root.is_partial else ""
