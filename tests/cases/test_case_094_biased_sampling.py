"""Case 094: all failures kept and a twentieth of the rest make 5 failures of 100 look like half of them."""

from __future__ import annotations

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse
from hotspan.analysis.requests import weight_of
from hotspan.exporters.reports import console
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, SpanRecord, Trace


def said(trace, *, trace_state="", **attributes):
    """The trace, its root with what a sampler noted."""
    root, *rest = trace.spans
    root = root._replace(attributes={**root.attributes, **attributes}, trace_state=trace_state)
    return Trace(trace.trace_id, [root, *rest])


def kept(ok, error):
    """Five failures, all kept, and five of a hundred successes; each noted as the sampler does it."""
    failures = many(5, lambda k: said(request(k, 100, answer(0, 100), status="error"), **error))
    return [*failures, *(said(request(k, 100, answer(0, 100)), **ok) for k in range(10, 15))]


@pytest.mark.parametrize(
    ("ok", "error"),
    [
        # th: the share of requests that is rejected, here 95 %, in units of 2^-56
        pytest.param({"trace_state": "ot=th:f3333333333333"}, {"trace_state": "ot=th:0"}, id="otel"),
        pytest.param({"SampleRate": 20}, {"SampleRate": 1}, id="honeycomb"),
        pytest.param({"SampleRate": "20"}, {"SampleRate": "1"}, id="as-texts"),
        pytest.param(
            {"sampler.type": "probabilistic", "sampler.param": 0.05},
            {"sampler.type": "probabilistic", "sampler.param": 1.0},
            id="jaeger",
        ),
        pytest.param({"SampleRate": 20}, {}, id="a-request-that-says-nothing-stands-for-itself"),
    ],
)
def test_weights_are_used_and_said(ok, error):
    """Five of a hundred and five: never half, marked as an estimate, with what it means for the rest."""
    report = analyse(kept(ok, error))
    text = console.render(report, Screen(width=250))

    assert report.request.error_ratio == pytest.approx(5 / 105, rel=0.01)
    assert "5 errors (~4.8 %)" in text
    assert "a sampler kept requests that stand for 1 to 20 each" in text
    assert "5 of 10 recorded requests failed, an estimated 4.8 % of all" in text
    assert "50 %" not in text


def test_a_policy_without_weights_gives_no_share():
    """The Collector says why it kept a request, and not how many it stands for: no percentage at all."""
    report = analyse(kept({semconv.TAIL_SAMPLING_POLICY: "rest"}, {semconv.TAIL_SAMPLING_POLICY: "errors"}))
    text = console.render(report, Screen(width=250))

    assert report.request.error_ratio is None
    assert "chosen by a sampling policy that says no weights" in text
    assert "5 errors, 0 cancelled" in text
    assert "50 %" not in text


def test_even_sampling_needs_no_weights():
    """Every request stands for as many: the plain share is right, and no estimate."""
    report = analyse(kept({"SampleRate": 20}, {"SampleRate": 20}))

    assert (report.request.error_ratio, report.request.is_weighted) == (0.5, False)
    assert (report.evidence.sample_ratio, report.evidence.is_sample_ratio_estimated) == (0.05, False)


def written(trace, ratio):
    """The trace as a program wrote it that traces such a part of its requests."""
    resource = Resource({semconv.SAMPLE_RATIO: ratio})
    return Trace(trace.trace_id, [span._replace(resource=resource) for span in trace.spans])


def test_runs_of_several_ratios_are_a_part_by_what_their_requests_stand_for():
    """Ten requests that stand for 10 each, and a hundred that stand for themselves: 110 of about 200."""
    tenth = [written(request(k, 100, answer(0, 100)), 0.1) for k in range(10)]
    whole = [written(request(k, 100, answer(0, 100)), 1.0) for k in range(10, 110)]

    report = analyse([*tenth, *whole])
    evidence = report.to_dict()["evidence"]

    assert evidence["sample_ratio"] == pytest.approx(110 / 200)
    assert (evidence["sampled"], evidence["sample_ratio_estimated"]) == (True, True)
    assert "sampled: about 55.0 % of the requests were traced" in console.render(report, Screen(width=250))


def test_one_ratio_is_said_as_it_is():
    """No estimate: the writer says it."""
    report = analyse([written(request(k, 100, answer(0, 100)), 0.1) for k in range(10)])

    assert "sampled: 10.0 % of the requests were traced" in console.render(report, Screen(width=250))


@pytest.mark.parametrize(
    ("trace_state", "attributes", "resource", "expected"),
    [
        pytest.param("ot=th:8", {}, {}, 2, id="threshold"),
        pytest.param("vendor=x, ot=rv:1;th:c", {}, {}, 4, id="among-others"),
        pytest.param("ot=p:3", {}, {}, 8, id="power-of-two"),
        pytest.param("ot=p:63", {}, {}, None, id="never"),
        pytest.param("ot=th:zz", {}, {}, None, id="garbage"),
        pytest.param("", {"SampleRate": True}, {}, None, id="a-flag"),
        pytest.param("", {"SampleRate": 0}, {}, None, id="zero"),
        pytest.param("", {"SampleRate": 10**400}, {}, None, id="beyond-all-numbers"),
        pytest.param("", {"SampleRate": "often"}, {}, None, id="a-word"),
        pytest.param("", {"SampleRate": float("nan")}, {}, None, id="no-number"),
        pytest.param("", {"sampler.type": "const", "sampler.param": True}, {}, None, id="all"),
        pytest.param("", {}, {semconv.SAMPLE_RATIO: 0.25}, 4, id="hotspan"),
        pytest.param("", {}, {}, None, id="nothing"),
    ],
)
def test_what_samplers_write(trace_state, attributes, resource, expected):
    """How many requests a recorded one stands for, as each kind says it."""
    root = SpanRecord(
        "1", "1", None, "ask", 1, 2, attributes, trace_state=trace_state, resource=Resource(resource)
    )

    assert weight_of(root) == expected
