"""The vLLM example against a real vLLM server on this machine."""

from __future__ import annotations

import pytest

import hotspan

pytestmark = pytest.mark.integration


def test_the_server_tells_its_part_of_every_call(run_example, tmp_path):
    """The span of vLLM is a child of each generation, and queue, prefill and decode fit into the call."""
    pytest.importorskip("vllm")
    printed = run_example("vllm_server.py")

    assert printed.count("ok, ") == 3
    traces = list(hotspan.load(tmp_path / "vllm.jsonl"))
    assert len(traces) == 3
    for trace in traces:
        (request,) = trace.roots
        (call,) = trace.children_of(request)
        assert [span.name for span in trace.children_of(call)] == ["llm_request"]

    generation = hotspan.analyse(traces).generation
    in_engine = sum(generation.phases_ns[phase] for phase in ("queue", "prefill", "decode"))
    assert generation.status["ok"] == 3
    assert 0 < in_engine <= sum(value or 0 for value in generation.phases_ns.values())
