"""The example of vLLM in the program's own process, with the real engine."""

from __future__ import annotations

import pytest

import hotspan

pytestmark = [pytest.mark.integration, pytest.mark.rag]


def test_prompts_that_wait_are_seen_to_wait(run_example, tmp_path):
    """Eight calls in one request; with two at a time, most of them had to wait in the queue."""
    pytest.importorskip("vllm")
    printed = run_example("vllm_in_process.py")

    assert printed.count("Count to ") == 8
    (trace,) = hotspan.load(tmp_path / "vllm-in-process.jsonl")
    generation = hotspan.analyse([trace]).generation
    assert (generation.n_calls, generation.status["ok"]) == (8, 8)
    assert generation.phases_ns["queue"] > generation.phases_ns["prefill"]
