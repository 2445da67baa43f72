"""The rows of the table: what is measured, in which unit, and what Hotspan aims for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that is measured.

    Attributes:
        key: What `--rows` calls it.
        title: Head of its column.
        unit: Unit of the figures.
        goal: What Hotspan aims for, in words.
        needs: The function that a contender must have to be in it.
        target: Where spans go meanwhile; see `Target.kind`.
        is_process: Measured over a whole process, a new one each time, instead of in the calling thread.
        is_default: Measured without being asked for.
    """

    key: str
    title: str
    unit: str
    goal: str
    needs: str
    target: str = "drop"
    is_process: bool = False
    is_default: bool = True


ROWS = (
    Row("sync", "span, function", "µs", "≤ 1/15 of the SDK", "traced"),
    Row("async", "span, coroutine function", "µs", "≤ 1/14 of the SDK", "traced_async"),
    Row("request", "request: 5 spans of 5 attributes", "µs", "≤ 1/14 of the SDK", "request"),
    Row("chunk", "chunk of a generator", "µs", "≤ 0.25 µs", "stream"),
    Row("chunk-async", "chunk of an async generator", "µs", "≤ 0.35 µs", "stream_async"),
    Row("openai", "chunk through the openai client", "µs", "≤ 1.5 µs", "openai_client", is_default=False),
    Row(
        "file", "sustained, to a file", "µs CPU/span", "≤ 1/15 of the SDK, none lost", "request", "file", True
    ),
    Row("otlp", "sustained, to OTLP", "µs CPU/span", "≤ 1/8 of the SDK, none lost", "request", "otlp", True),
    Row("memory", "finished span held", "B", "≤ 350 B", "request", "hang", True),
)
BY_KEY = {row.key: row for row in ROWS}
BASELINE = "opentelemetry_sdk"  # the contender that the ratios are to
FLOOR = "floor"  # the one that does the least that anything which measures can do
