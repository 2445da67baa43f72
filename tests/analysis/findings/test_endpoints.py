"""Endpoints that ask a model beside others that do not: what is said of the model is said of the first."""

from __future__ import annotations

import pytest
from made_traces import Call, many, request

from hotspan.analysis import analyse


def staged(number, **ms):
    """A request whose stages follow each other."""
    calls, cursor = [], 0
    for stage, duration in ms.items():
        calls.append(Call(stage, stage, cursor, cursor + duration))
        cursor += duration
    return request(number, cursor, *calls)


def endpoints(search, chat, *, n_search=30, n_chat=10):
    """Requests of two endpoints, by the ms of their stages: a search without a model, and a chat."""
    return [
        *many(n_search, lambda k: staged(k, **search)),
        *(staged(k, **chat) for k in range(n_search + 1, n_search + n_chat + 1)),
    ]


@pytest.mark.parametrize("rule", ["retrieval-side-dominates", "rerank-dominates"])
def test_a_search_without_a_model_says_nothing_of_the_requests_that_ask_one(rule):
    """Most of the time is the search endpoint's: a faster model would help the chat all the same."""
    runs = endpoints({"retrieval": 50, "rerank": 80}, {"rerank": 5, "generation": 200})

    assert rule not in {finding.id for finding in analyse(runs).findings}


def test_the_time_beside_the_model_is_that_of_the_requests_that_ask_one():
    """A chat that searches for long, among quick searches: shares and words are of the chats."""
    runs = endpoints({"retrieval": 10}, {"retrieval": 300, "rerank": 400, "generation": 300})
    found = {finding.id: finding for finding in analyse(runs).findings}
    side, rerank = found["retrieval-side-dominates"], found["rerank-dominates"]

    assert side.text.startswith(
        "70.0 % of the time of the 10 requests that ask a model passes before or beside the model; rerank"
    )
    assert side.next_step.endswith("a faster model makes these requests at most 30.0 % shorter.")
    assert side.evidence["requests_with_a_model_call"] == 10
    assert side.evidence["retrieval_ratio"] == pytest.approx(0.3)
    assert rerank.text.startswith(
        "Reranking takes 40.0 % of the time of the 10 requests that ask a model, more"
    )


def test_reranking_without_a_model_is_compared_with_none():
    """A search endpoint alone: what it waits for is said, and nothing of an answer."""
    (found,) = [
        finding
        for finding in analyse(many(25, lambda k: staged(k, retrieval=50, rerank=60))).findings
        if finding.id == "rerank-dominates"
    ]

    assert found.text == "Reranking takes 54.5 % of request time."
