"""Public defects in what failures do to the figures of those calls that did not fail."""

from __future__ import annotations

import contextlib

import pytest
from click.testing import CliRunner
from servers import DONE, ScriptedServer, answer, delta, event, stream

import hotspan
from hotspan.cli import main

MESSAGES = [{"role": "user", "content": "Hi"}]
GOOD = stream(event(delta("a")), event(delta("b", finish="stop")), DONE)
EMPTY = stream(event(delta("", role="assistant")))
LIMITED = answer({"error": {"message": "slow down"}}, "429 Too Many Requests", retry_after="30")


def ask_all(path, replies):
    """Ask a server with these replies once for each, every call a request of its own, and write a file."""
    hotspan.configure(file=path)
    with ScriptedServer(replies) as server, hotspan.LLMClient(server.url, model="tiny") as client:
        for _ in replies:
            with contextlib.suppress(hotspan.EngineError, hotspan.StreamError):
                with hotspan.request("ask"):
                    list(client.stream(MESSAGES))
    hotspan.shutdown()
    return len(server.requests)


def test_case_105_tokenless_answers_are_failures_and_touch_no_time(tmp_path):
    """Half of the 200s without a token: all counted as truncated, and the times are those of the others."""
    ask_all(tmp_path / "run.jsonl", [GOOD, EMPTY] * 5)
    found = hotspan.analyse(hotspan.load(tmp_path / "run.jsonl")).to_dict()["generation"]

    assert (found["calls"], found["status"]["ok"], found["status"]["truncated"]) == (10, 5, 5)
    assert found["ttft_ms"]["n"] == 5
    assert found["ttft_ms"]["min"] > 0


@pytest.mark.parametrize(
    ("n_bad", "warned"),
    [
        pytest.param(13, True, id="65-percent"),
        pytest.param(0, False, id="none"),
        pytest.param(2, True, id="at-the-threshold"),
        pytest.param(1, False, id="below-it"),
    ],
)
def test_case_107_the_share_of_failures_is_said_above_the_numbers(tmp_path, n_bad, warned):
    """From a tenth of failed calls on, the report says their share before its table."""
    ask_all(tmp_path / "run.jsonl", [EMPTY] * n_bad + [GOOD] * (20 - n_bad))
    done = CliRunner().invoke(main, ["report", str(tmp_path / "run.jsonl")])
    shown = done.output
    said = f"of the model calls failed or broke off ({n_bad} of 20)"

    assert done.exit_code == 0
    assert (said in " ".join(shown.split())) == warned
    if warned:
        assert shown.index("of the model calls failed") < shown.index("generation")


def test_case_113_a_limit_met_in_the_middle_is_a_rejection_not_a_retry(tmp_path):
    """429 with Retry-After among good answers: one request each, the refused ones errors with a status."""
    n_sent = ask_all(tmp_path / "run.jsonl", [GOOD, LIMITED, GOOD, LIMITED])
    traces = list(hotspan.load(tmp_path / "run.jsonl"))
    found = hotspan.analyse(traces).to_dict()["generation"]
    statuses = [
        span.attributes.get("http.response.status_code")
        for trace in traces
        for span in trace.spans
        if span.status == "error" and span.parent_id
    ]

    assert n_sent == 4
    assert (found["attempts"], found["status"]["ok"], found["status"]["error"]) == (4, 2, 2)
    assert statuses == [429, 429]
    assert found["ttft_ms"]["n"] == 2
