"""A first call is compared with what is like it."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, many, request

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


def streamed(stage, name, ms, *, held, inside=None):
    """A call of `ms` ms, of which its consumer held the stream for `held`."""
    return Call(stage, name, 0, ms, {semconv.STREAM_HOLD_NS: held * MS}, inside=inside)


@pytest.mark.parametrize("stage", ["generation", "retrieval"])
@pytest.mark.parametrize(("ms", "held", "is_cold"), [(300, 289, False), (300, 10, True)])
def test_a_slow_first_consumer_is_no_cold_start(stage, ms, held, is_cold):
    """The first reader of a stream sleeps between its items; or the first call itself is slow."""

    def run(k):
        took, by_consumer = (ms, held) if k == 1 else (11, 0)
        return request(k, took, streamed(stage, "go", took, held=by_consumer))

    report = analyse(many(40, run))
    row = next(row for row in report.stages if row.stage == stage)

    assert row.first_call_ns == (ms - held) * MS
    assert (f"cold-start-{stage}" in {finding.id for finding in report.findings}) is is_cold


def test_what_a_framework_does_between_items_is_its_calls_own_work():
    """Framework and consumer hold the client's stream; the consumer alone holds the framework's."""

    def run(k):
        outer = streamed("generation", "framework", 300, held=50 if k == 1 else 0)
        inner = streamed("generation", "client", 300, held=250 if k == 1 else 0, inside="framework")
        return request(k, 300, outer, inner)

    (row,) = [row for row in analyse(many(3, run)).stages if row.stage == "generation"]

    assert row.first_call_ns == 250 * MS


def test_a_framework_that_knows_no_hold_leaves_it_to_the_clients_span():
    """Its span is around the stream, and counts nothing of it."""

    def run(k):
        inner = streamed("generation", "client", 300, held=250 if k == 1 else 0, inside="chat")
        return request(k, 300, answer(0, 300), inner)

    (row,) = [row for row in analyse(many(3, run)).stages if row.stage == "generation"]

    assert row.first_call_ns == 50 * MS
