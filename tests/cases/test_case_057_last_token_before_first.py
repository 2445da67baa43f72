"""Case 057: the last token has an earlier stamp than the first."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.testing import build_trace


def test_the_call_is_flagged_and_has_no_decode_time():
    """No negative time and no TPOT: what cannot be known is absent, and said."""
    stamps = {semconv.TTFT_NS: 40, semconv.LAST_TOKEN_NS: 10, semconv.OUTPUT_TOKENS: 5}
    trace = build_trace(("chat", 0, 100), stages={"chat": "generation"}, attributes={"chat": stamps})

    report = analyse([trace])

    assert report.generation.phases_ns["decode"] is None
    assert report.generation.tpot_ns is None
    assert report.generation.phases_ns["unattributed"] == 60
    assert any("last token before their first" in warning for warning in report.evidence.warnings)
