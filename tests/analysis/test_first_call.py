"""A first call is compared with what is like it."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord, Trace

MS = 1_000_000


#  request  |-----------------------------------------------------|
#  search   |---------|                                                172
#  sum                     |-| |-|  |-|                                  1 each
#  outer                                 |------| |-|                   60 with an inner of 50, then 11
def test_a_first_call_is_compared_by_name_and_self_time():
    """A slow search before quick sums is no cold start, nor is a tool that waited for what it called."""
    spans = (
        ("request", 0, 400),
        ("search", 0, 172, "request"),
        ("sum", 180, 181, "request"),
        ("sum", 182, 183, "request"),
        ("sum", 184, 185, "request"),
        ("outer", 200, 260, "request"),
        ("chat", 205, 255, "outer"),
        ("outer", 270, 281, "request"),
    )
    ids = [f"{number:016x}" for number in range(1, len(spans) + 1)]
    parents = [None, *[ids[0]] * 5, ids[5], ids[0]]
    stages = [{"request": "request", "chat": "generation"}.get(name, "tool") for name, *_ in spans]
    records = [
        SpanRecord("1", span_id, parent, name, start * MS, end * MS, {semconv.STAGE: stage})
        for (name, start, end, *_), span_id, parent, stage in zip(spans, ids, parents, stages, strict=True)
    ]

    row = next(row for row in analyse([Trace("1", records)]).stages if row.stage == "tool")

    assert (row.first_call_name, row.first_call_ns, row.later_calls_p90_ns) == ("sum", MS, MS)
    assert row.n_later_calls == 2
