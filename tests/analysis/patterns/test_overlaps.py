"""Time on a request by the rule of the critical path, in which one of its calls ran."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, many, request

from hotspan.analysis import analyse
from hotspan.tracer.record import Scope, Trace

MS = 1_000_000
FEW_NS = 1e-6


def report_of(*calls, scope=""):
    """Return the report on requests of 100 ms; those of Hotspan's own scope are summed by their form."""
    traces = many(25, lambda k: request(k, 100, *calls))
    return analyse(
        [Trace(t.trace_id, [span._replace(scope=Scope(scope)) for span in t.spans]) for t in traces]
    )


def finding_of(report):
    """Return the finding on unattributed time, if there is one."""
    return next((finding for finding in report.findings if finding.id == "unattributed-time"), None)


#  request    |----------|
#  embedding  |-----|          reaches a nanosecond into the generation
#  generation      |-----|
@pytest.mark.parametrize("scope", ["", "hotspan"])
def test_a_call_that_overlaps_the_next_one_leaves_nothing_to_wrap(scope):
    """Half the request lies on the request itself, and an embedding ran in all of it."""
    report = report_of(Call("embedding", "embed", 0, 50 + FEW_NS), answer(50, 100), scope=scope)

    assert report.unattributed.critical_path_ratio == 0.5
    assert report.patterns.overlapped_ns == report.unattributed.critical_path_ns == 25 * 50 * MS
    assert finding_of(report) is None


@pytest.mark.parametrize("scope", ["", "hotspan"])
def test_what_no_call_covers_is_still_said(scope):
    """Of half the request 20 ms are the embedding's: the finding is about the other 30."""
    report = report_of(Call("embedding", "embed", 30, 50 + FEW_NS), answer(50, 100), scope=scope)
    found = finding_of(report)

    assert found is not None
    assert found.evidence["unattributed_ratio"] == pytest.approx(0.3)
    assert found.evidence["against"] == {"stages_ratio": 0.5, "overlapped_by_calls_ratio": pytest.approx(0.2)}
    assert found.text.startswith("30")


@pytest.mark.parametrize("scope", ["", "hotspan"])
def test_an_agent_that_runs_is_no_call_that_covers(scope):
    """Its own time is nobody's work, as that of the request is."""
    report = report_of(
        Call("agent", "agent", 0, 50 + FEW_NS),
        Call("tool", "t", 0, 1, inside="agent"),
        answer(50, 100),
        scope=scope,
    )

    assert report.patterns.overlapped_ns == 25 * MS
    assert finding_of(report) is not None


def test_an_agent_inside_a_tool_is_not_overlapped_by_it():
    """The tool has nothing else to do: the agent's own time is unattributed."""
    report = report_of(Call("tool", "t", 0, 50), Call("agent", "a", 0, 50, inside="t"), answer(50, 100))

    assert report.unattributed.critical_path_ratio == 0.5
    assert report.patterns.overlapped_ns == 0


def test_calls_one_behind_another_overlap_nothing():
    """What lies between them is unattributed, and all of it counts."""
    report = report_of(Call("embedding", "embed", 0, 30), answer(50, 100))

    assert report.patterns.overlapped_ns == 0
    assert "overlapped_by_calls_ratio" not in finding_of(report).evidence["against"]
