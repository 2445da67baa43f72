"""Whether others moved while a call ran: in its own process, and while they had work open."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, request

from hotspan.analysis import analyse


def overlapping(*, pid_of=lambda _user: 1, n=40, step=100, inner=False):
    """Requests that begin every `step` ms: 50 ms of reranking, then a model call of 350."""
    found = []
    for number in range(1, n + 1):
        calls = [Call("rerank", "rerank", 0, 50), answer(50, 400)]
        calls += [Call(None, "POST", 1, 49, inside="rerank")] if inner else []
        found.append(request(number, 400, *calls, at=step * number, pid=pid_of(number)))
    return found


def stall(traces):
    """Events seen and expected while reranking; None where it is not told."""
    found = [stall for stall in analyse(traces).patterns.stalls if stall.stage == "rerank"]
    return (found[0].n_seen, found[0].n_calls) if found else None


def test_nothing_moved_while_it_ran():
    """At 100 ms between requests all starts and ends fall outside of the reranking of the others."""
    seen, n_calls = stall(overlapping())

    assert (seen, n_calls) == (0, 39)


def test_others_moved():
    """Every 20 ms somebody begins: several starts and ends during each call."""
    seen, n_calls = stall(overlapping(step=20))

    assert seen > 2 * n_calls


def test_another_process_says_nothing():
    """Each request in a process of its own: there is nobody else in it to move."""
    assert stall(overlapping(pid_of=lambda user: user)) is None


def test_spans_inside_the_call_are_no_others():
    """A blocking HTTP request inside it is the innermost span, and nothing moves during that."""
    seen, _ = stall(overlapping(inner=True))

    assert seen == 0


@pytest.mark.parametrize("stage", ["generation", "agent", "step"])
def test_what_waits_for_others_blocks_nobody(stage):
    """A model call, an agent and a step are no computation of the process."""
    traces = [
        request(k, 400, Call(stage, "x", 0, 50), Call("tool", "t", 50, 400), at=100 * k) for k in range(1, 20)
    ]

    assert stage not in {stall.stage for stall in analyse(traces).patterns.stalls}
