"""The public test kit, as `hotspan.testing`: a fake clock, deterministic ids, `capture()`, a trace builder.

from hotspan.testing import FakeClock, capture

def test_search_is_one_retrieval():
    with FakeClock() as clock, capture() as captured:
        search("why")
    assert [span.name for span in captured.spans] == ["retrieval faiss"]
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from hotspan.tracer import clock, config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.record import SpanRecord, Trace
from hotspan.tracer.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

DEFAULT_START_NS = 1_700_000_000_000_000_000


class FakeClock:
    """A clock that stands still until it is told otherwise; put in the process clock's place by `with`.

    Args:
        start_ns: Unix time in nanoseconds at which it starts.
        tick_ns: How far it moves by itself at each reading.
    """

    def __init__(self, start_ns: int = DEFAULT_START_NS, *, tick_ns: int = 0) -> None:
        self.start_ns = start_ns
        self._tick_ns = tick_ns
        self._now_ns = 1  # 0 means "has not ended" to a span
        self._real = (clock.now_ns, clock.anchor_ns)

    def advance(self, *, ns: int = 0, ms: float = 0.0, s: float = 0.0) -> None:
        """Move the clock on; it never goes back.

        Raises:
            ConfigurationError: The sum is negative.
        """
        moved_ns = ns + round(ms * 1e6) + round(s * 1e9)
        if moved_ns < 0:
            msg = f"advance(ns={ns}, ms={ms}, s={s}): a monotonic clock never goes back"
            raise ConfigurationError(msg)
        self._now_ns += moved_ns

    def _read(self) -> int:
        self._now_ns += self._tick_ns
        return self._now_ns

    def __enter__(self) -> Self:
        config.drain()  # what has ended is dated by the clock under which it ran
        self._real = (clock.now_ns, clock.anchor_ns)
        clock.now_ns, clock.anchor_ns = self._read, self.start_ns - self._now_ns
        return self

    def __exit__(self, *_exc: object) -> None:
        config.drain()
        clock.now_ns, clock.anchor_ns = self._real


@contextmanager
def deterministic_ids() -> Iterator[None]:
    """Make span and trace ids 1, 2, 3, … in the order in which they are needed."""
    counter, real = itertools.count(1), spans.random_bits
    spans.random_bits = lambda _n_bits: next(counter)
    try:
        yield
    finally:
        spans.random_bits = real


class Captured:
    """What was recorded inside `capture()`."""

    def __init__(self) -> None:
        self._spans: list[SpanRecord] = []
        self._drain: Callable[[], object] = int

    def export(self, batch: Sequence[SpanRecord]) -> None:
        """Take finished spans, as an exporter does."""
        self._spans.extend(batch)

    def shutdown(self) -> None:
        """Do nothing: there is nothing to free."""

    @property
    def spans(self) -> list[SpanRecord]:
        """Every span that has ended so far, in the order of the ends."""
        self._drain()
        return list(self._spans)

    def one(self, name: str) -> SpanRecord:
        """Return the only span of that name."""
        found = [span for span in self.spans if span.name == name]
        if len(found) != 1:
            msg = f"{len(found)} spans are named {name!r}; there are {[span.name for span in self.spans]}"
            raise AssertionError(msg)
        return found[0]

    def tree(self) -> list[Any]:
        """Return the names as nested lists, `[name, [child, …], …]`, siblings by start."""
        ended = self.spans
        ids = {span.span_id for span in ended}

        def below(parent: str | None) -> list[Any]:
            found = [s for s in ended if (s.parent_id if s.parent_id in ids else None) == parent]
            return [[s.name, *below(s.span_id)] for s in sorted(found, key=lambda s: (s.start_ns, s.span_id))]

        return below(None)


@contextmanager
def capture(**settings: Any) -> Iterator[Captured]:
    """Record every stage inside the `with` block into memory, whatever is configured outside of it.

    Args:
        **settings: As for `hotspan.configure`, e.g. `capture_content=True`; no exporter of it is used.

    Raises:
        ConfigurationError: HOTSPAN_DISABLED was set when Hotspan was imported, or a setting cannot be used.
    """
    if config.DISABLED:
        msg = "HOTSPAN_DISABLED is set, and nothing is recorded. Unset it for tests that look at spans."
        raise ConfigurationError(msg)
    captured = Captured()
    with config.recording_to(captured, Settings(**settings)) as recorder:

        def drain() -> None:
            recorder.flush(config.EXIT_TIMEOUT_S)

        captured._drain = drain  # noqa: SLF001 - the same module
        yield captured
        drain()
        captured._drain = int  # noqa: SLF001 - the same module


def build_trace(
    *spans_: tuple[Any, ...],
    stages: Mapping[str, str] | None = None,
    attributes: Mapping[str, Mapping[str, Any]] | None = None,
    trace_id: str = "1",
) -> Trace:
    """Return a trace from `(name, start_ns, end_ns[, parent name])` tuples; a span's id is its name.

    Args:
        *spans_: One tuple a span, in any order.
        stages: Stage by name, written as `hotspan.stage`.
        attributes: Further attributes by name.
        trace_id: The trace's id.
    """
    records = []
    for name, start_ns, end_ns, *parent in spans_:
        given: dict[str, Any] = dict((attributes or {}).get(name, {}))
        if stages and name in stages:
            given[semconv.STAGE] = stages[name]
        records.append(
            SpanRecord(
                trace_id, name, parent[0] if parent else None, name, start_ns, end_ns, attributes=given
            )
        )
    return Trace(trace_id, records)
