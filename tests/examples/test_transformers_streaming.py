"""The transformers example: text from a thread, and the generation in the request that asked for it."""

from __future__ import annotations

import pytest

import hotspan

pytestmark = pytest.mark.rag


def test_each_request_holds_its_generation(run_example, tmp_path):
    """Three requests, each with the call that its thread made, divided into the model's own phases."""
    pytest.importorskip("transformers")
    printed = run_example("transformers_streaming.py")

    assert len(printed.strip().splitlines()) >= 3
    traces = list(hotspan.load(tmp_path / "transformers.jsonl"))
    stages = [[span.attributes["hotspan.stage"] for span in trace.spans] for trace in traces]
    assert [sorted(names) for names in stages] == [["generation", "request"]] * 3
    generation = hotspan.analyse(traces).generation
    assert generation.status["ok"] == 3
    assert generation.phases_ns["prefill"] > 0 < generation.phases_ns["decode"]
