"""The agent loop on the embedded engine: a real model, held to the schema, with tools in threads."""

from __future__ import annotations

from collections import Counter

import pytest

import hotspan

pytestmark = pytest.mark.rag


@pytest.fixture
def trace(run_example, tmp_path):
    """The one request that the example makes."""
    pytest.importorskip("transformers")
    run_example("agent_loop.py")
    (trace,) = hotspan.load(tmp_path / "agent.jsonl")
    return trace


def test_an_agent_is_a_tree_of_steps_model_calls_and_tools(trace):
    """One request holds one agent, which holds three steps and the answer; tools hang below their step."""
    stages = {span.span_id: span.attributes["hotspan.stage"] for span in trace.spans}
    below = Counter((stages.get(span.parent_id), stages[span.span_id]) for span in trace.spans)

    n_tools = below.pop(("step", "tool"))
    assert below == {
        (None, "request"): 1,
        ("request", "agent"): 1,
        ("agent", "step"): 3,
        ("agent", "generation"): 1,
        ("step", "generation"): 3,
    }
    assert 3 <= n_tools <= 6

    report = hotspan.analyse([trace])

    assert report.amplification.model_calls.mean == 4
    assert report.amplification.sequential_depth.mean == 4
    assert report.unattributed.critical_path_ratio < 0.05
