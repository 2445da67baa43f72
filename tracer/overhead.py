"""What one stage, and one item of a stream, cost the thread that runs them, measured where the program runs.

A report that says how long things took should say what the measuring took.  A few hundred empty spans are
started, made current, left and ended, and go nowhere, and a stream is stepped; it takes a millisecond or two.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import Context

from hotspan.tracer import semconv
from hotspan.tracer import span as spans
from hotspan.tracer.context import attach, detach
from hotspan.tracer.streaming import Stream, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_N_ROUNDS: Final = 7
_N_SPANS: Final = 60
_N_ITEMS: Final = 100


@functools.cache
def span_cost_ns() -> int:
    """Return the cost of one empty stage on the calling thread, in nanoseconds, at least 1.

    Measured once per process, while finished spans go nowhere.  The least of several rounds: whatever else
    the machine does can only add to it.
    """
    attributes = {semconv.STAGE: semconv.STEP, semconv.OPENINFERENCE_KIND: "CHAIN"}
    finished: deque[spans.Span] = deque(maxlen=_N_SPANS)

    def empty_stage() -> None:
        span = spans.make_span("", attributes)
        span.close(attach(span))
        finished.append(span)

    return max(1, _least(lambda: _repeated(empty_stage)) // _N_SPANS)


@functools.cache
def chunk_cost_ns() -> int:
    """Return what tracing adds to one item of a generation's stream, in nanoseconds, at least 1.

    The same stream is pulled with and without; items are text, stamped as tokens.  Measured as
    `span_cost_ns` is.
    """

    def items() -> Iterator[str]:
        yield from repeat("text")

    def traced() -> int:
        stream = follow(items(), Stream(spans.make_span("", {}), generation=True))
        taken_ns = _pull_ns(stream)
        stream.close()
        return taken_ns

    return max(1, (_least(traced) - _least(lambda: _pull_ns(items()))) // _N_ITEMS)


def _least(measure_ns: Callable[[], int]) -> int:
    outside = attach(Context())  # a parent that was not sampled would make the spans cheaper
    try:
        # The real clock, also where a test has put another one in its place.
        return min(measure_ns() for _ in range(_N_ROUNDS))
    finally:
        detach(outside)


def _pull_ns(stream: Iterator[str]) -> int:
    next(stream)  # what the first step does alone is no item's cost
    begun = time.perf_counter_ns()
    deque(islice(stream, _N_ITEMS), maxlen=0)
    return time.perf_counter_ns() - begun


def _repeated(action: Callable[[], Any]) -> int:
    begun = time.perf_counter_ns()
    for _ in range(_N_SPANS):
        action()
    return time.perf_counter_ns() - begun
