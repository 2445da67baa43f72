"""The agent loop on the embedded engine: a real model, held to the schema, with tools in threads."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import hotspan

pytestmark = pytest.mark.rag

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["agent_loop.py", "vllm_server.py"])
def test_no_server_is_one_sentence(name, tmp_path, environment):
    """Without the server that it was given an example says so on standard error, and exits with 2."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "http://127.0.0.1:1"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2, done.stderr
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


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
