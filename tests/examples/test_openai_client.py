"""The openai example: one traced line, and the retry that nobody sees otherwise."""

from __future__ import annotations

import hotspan


def test_the_silent_retry_is_in_the_report(run_example, tmp_path):
    """Two requests, one model call each, three attempts in all, and the answer as it was streamed."""
    printed = run_example("openai_client.py")

    assert printed.count("A pool keeps connections open") == 2
    traces = list(hotspan.load(tmp_path / "openai.jsonl"))
    assert [[span.name for span in trace.children_of(trace.roots[0])] for trace in traces] == [
        ["chat words"],
        ["chat words"],
    ]
    generation = hotspan.analyse(traces).generation
    assert (generation.n_calls, generation.n_attempts, generation.status["ok"]) == (2, 3, 2)
    assert generation.phases_ns["backoff"] > 0
