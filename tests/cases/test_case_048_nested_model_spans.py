"""Case 048: a framework's span around the client's span, and totals repeated above."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.testing import build_trace


def test_one_call_written_twice_is_one_call_with_its_tokens_once():
    """The innermost model span counts; the agent's sums are no call."""
    usage = {semconv.INPUT_TOKENS: 100, semconv.OUTPUT_TOKENS: 20}
    trace = build_trace(
        ("agent", 0, 100),
        ("chain", 10, 90, "agent"),
        ("client", 20, 80, "chain"),
        stages={"agent": "agent", "chain": "generation", "client": "generation"},
        attributes={"agent": usage, "chain": usage, "client": usage},
    )

    report = analyse([trace])

    assert (report.generation.n_calls, report.generation.n_attempts) == (1, 1)
    assert (report.generation.tokens.prompt, report.generation.tokens.output) == (100, 20)
