"""Whether an agent's calls take longer when they read more."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, many, request

from hotspan.analysis import analyse


def agent(number, *calls):
    """An agent run of model calls: prompt tokens and ms of each."""
    start, found = 0, [Call("agent", "agent", 0, sum(ms for _, ms in calls))]
    for k, (prompt, ms) in enumerate(calls):
        found.append(answer(start, start + ms, prompt=prompt, output=9, inside="agent", name=f"chat {k}"))
        start += ms
    return request(number, start, *found)


@pytest.mark.parametrize(
    ("times", "ratio"),
    [
        pytest.param((200, 200, 200), 1.0, id="reading-takes-no-time"),
        pytest.param((100, 100, 400), 4.0, id="reading-takes-long"),
    ],
)
def test_growth_is_weighed_against_what_reading_takes(times, ratio):
    """Nothing is known of the cache or of the phases, and the calls' own durations are."""
    calls = list(zip((1000, 2000, 8000), times, strict=True))
    report = analyse(many(25, lambda k: agent(k, *calls)))
    (finding,) = (one for one in report.findings if one.id == "prompt-growth")

    assert finding.evidence["against"] == {
        "longer_prompts_call_time_factor": pytest.approx(ratio),
        "agent_runs": 25,
    }
