"""Calls in a row: of several names, and of several texts each."""

from __future__ import annotations

import pytest
from made_traces import Call, many, request

from hotspan.analysis import analyse
from hotspan.tracer import semconv

N = 25


def several(number, *kinds, each=100, pause=0.5, attributes=None):
    """A request with calls of these stages and names, one soon after the other."""
    calls = [
        Call(stage, name, k * (each + pause), k * (each + pause) + each, dict(attributes or {}))
        for k, (stage, name) in enumerate(kinds)
    ]
    return request(number, len(kinds) * (each + pause) + 200, *calls)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (
            [("tool", "news"), ("tool", "stocks"), ("tool", "weather")],
            "'news', 'stocks' and 'weather' (tool) run 3.00 times back to back where they run: ",
        ),
        (
            [("retrieval", f"store {k}") for k in range(5)],
            "'store 0', 'store 1', 'store 2' and 2 more (retrieval) run 5.00 times",
        ),
        (
            [("embedding", "dense"), ("embedding", "sparse")],
            "'dense' and 'sparse' (embedding) run 2.00 times",
        ),
        ([("retrieval", "find"), ("tool", "open")], None),
        ([("tool", "a"), ("generation", "chat"), ("tool", "b")], None),
        ([("rerank", "coarse"), ("rerank", "fine")], None),
    ],
)
def test_calls_of_different_names_may_run_at_once_too(kinds, words):
    """Tools, stores and models are asked in turn; what one prepares for the next is of another stage."""
    found = [
        finding
        for finding in analyse(many(N, lambda k: several(k, *kinds))).findings
        if finding.id == "sequential-calls"
    ]

    assert [finding.text.startswith(words) for finding in found] == ([] if words is None else [True])
    for finding in found:
        assert finding.evidence["against"]["different_names"] == len(kinds)
        assert "which the timing cannot tell" in finding.next_step


@pytest.mark.parametrize("said", [{semconv.BATCH_SIZE: 32}, {semconv.PYDANTIC_N_INPUTS: 8}])
def test_batches_are_not_single_texts_whoever_counted_them(said):
    """Hotspan's own key, as its clients write it, and others': the calls cannot be one."""
    report = analyse(many(N, lambda k: several(k, *[("embedding", "embed")] * 8, attributes=said)))

    assert not {"embedding-one-by-one", "sequential-calls"} & {finding.id for finding in report.findings}
