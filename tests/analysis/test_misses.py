"""What is said of conditions that nothing fulfils: what may have been meant, and what there is."""

from __future__ import annotations

import tracemalloc

import pytest
from made_traces import Call, answer, many, request

from hotspan.analysis import parse_where, select
from hotspan.analysis.misses import Misses
from hotspan.testing import build_trace


def run(number):
    """A search and an answer of one of three tenants; one in three is long, and a number."""
    search = Call("retrieval", "search", 0, 10, {"top_k": 20, "mode": "dense"})
    attributes = {"tenant": ("acme", "acme", "the zoo")[number % 3], "id": number, "cached": number % 3 == 0}
    return request(number, 100 * number, search, answer(10, 90), attributes=attributes)


def reasons(where, traces=None):
    """What is said where none of nine such requests, or of others, is left."""
    selected = select(many(9, run) if traces is None else traces, parse_where([where]))
    assert not list(selected)
    return selected.why_nothing()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("stge=retrieval", "No call has the attribute stge. Did you mean stage? Others are: "),
        ("request.tennant=a", "No request has the attribute tennant. Did you mean request.tenant? "),
        ("request.top_k=20", "No request has the attribute top_k. Did you mean top_k? "),
        ("requst.id=1", "Did you mean request.id"),
        ("stage=retrievel", "stage is request (9 calls), retrieval (9 calls), generation (9 calls). Did y"),
        ("request.tenant=zoo", 'tenant is acme (6 requests), "the zoo" (3 requests).'),
        ("request.tenant=ACM", " Did you mean acme?"),
        ("request.tenant='a zoo'|acne", ' Did you mean "the zoo" or acme?'),
        ("top_k='20'", "top_k is 20 (9 calls). Did you mean 20?"),
        ("request.cached=yes", "request.cached is false (6 requests), true (3 requests)."),
        ("request.id=0", "(1 request), others."),
        ("request.id!=1|2|3|4|5|6|7|8|9", "request.id is 1 (1 request), 2 (1 request), 3 "),
        ("request.duration>1s", "request.duration is 100ms to 900ms."),
        ("request.id>9", "request.id is 1 to 9."),
        ("top_k<20", "top_k is 20."),
        ("mode>2", "mode is dense (9 calls)."),
        ("stage=generation and top_k=20", "Each condition is fulfilled, but never all of them together."),
    ],
)
def test_what_there_is_is_said(where, expected):
    """The fields, nearest first, for one that there is not; else its values, most frequent first."""
    (sentence,) = reasons(where)

    assert expected in sentence


def test_each_condition_that_nothing_fulfils_has_its_line():
    """In the order in which they were written, and those that are fulfilled have none."""
    found = reasons("stage=retrieval and nope=1 and request.tenant=nobody and request.duration>0s")

    assert [line.split()[0] for line in found] == ["No", "request.tenant"]


def test_names_of_the_kind_that_was_asked_for_come_first():
    """The writer's own keys are named when they are near, and not listed."""
    (of_calls,), (of_requests,) = reasons("zzz=1"), reasons("request.zzz=1")

    assert "There are: stage, name, outcome, duration, service, tenant, id, cached, top_k, mode, " in of_calls
    assert "There are: request.stage, request.name, " in of_requests
    assert "hotspan." not in of_calls
    assert "Did you mean hotspan.stage" in reasons("hotspan.stags=1")[0]


def test_nothing_is_said_of_nothing():
    """No request was read, or one was kept."""
    kept = select(many(9, run), parse_where(["stage=retrieval"]))

    assert reasons("stage=tool", []) == []
    assert list(kept)
    assert kept.why_nothing() == []


def _memory(n):
    """What is held after `n` calls, all of whose names and values differ."""
    misses = Misses(parse_where(["id=nobody", "nope=1", "long=x"]).conditions)
    tracemalloc.start()
    for number in range(n):
        said = {"id": f"id-{number}", f"key-{number}": 1, "long": f"{number}" * 1000}
        (span,) = build_trace(("call", 0, 1), attributes={"call": said}).spans
        misses.note("tool", [span], of_request=False)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held, misses.reasons()


def test_memory_is_bounded():
    """A million different ids, names or texts are the first thousand, and others."""
    few, _ = _memory(2_000)
    many_more, said = _memory(6_000)

    assert many_more < 1.3 * few
    assert all(len(line) < 500 for line in said)
    assert said[0].startswith("id is id-0 (1 call), ")
    assert said[2] == "long is others."
