"""Case 088: recursion errors and quadratic time at ten thousand levels and a hundred thousand siblings."""

from __future__ import annotations

import time

import pytest

from hotspan.analysis import analyse
from hotspan.exporters.reports import json, waterfall
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord, Trace

STAGED = {semconv.STAGE: "tool"}


def chain(n):
    """Each span inside the one before."""
    spans = [
        SpanRecord("1", f"{k:x}", f"{k - 1:x}" if k else None, "deep", 1 + k, 2 + 2 * n - k, STAGED)
        for k in range(n)
    ]
    return Trace("1", spans)


def siblings(n, stage="tool"):
    """All spans below one, one after the other."""
    said = {semconv.STAGE: stage}
    spans = [SpanRecord("1", f"{k + 1:x}", "0", "wide", 1 + 2 * k, 2 + 2 * k, said) for k in range(n)]
    return Trace("1", [SpanRecord("1", "0", None, "root", 1, 2 + 2 * n, STAGED), *spans])


def calls(n):
    """The same, all of them model calls, any of which might be another writer's as well."""
    return siblings(n, semconv.GENERATION)


def seconds(work, trace):
    """Seconds of processor time."""
    start = time.process_time()
    work(trace)
    return time.process_time() - start


def report(trace):
    """What `hotspan report` does."""
    found = analyse([trace])
    assert found.evidence.n_spans == len(trace)
    assert found.request.n == 1


def show(trace):
    """What `hotspan show` does, in both formats."""
    view = choose([trace])
    assert len(view.spans) == len(trace)
    waterfall.render(view, Screen())
    json.render_request(view)


@pytest.mark.parametrize("work", [report, show])
@pytest.mark.parametrize(
    ("make", "n"),
    [(chain, 10_000), (siblings, 100_000), (calls, 20_000)],
    ids=["deep", "wide", "calls"],
)
def test_no_recursion_and_no_quadratic_time(make, n, work):
    """Ten times the spans take about ten times as long: far from the hundred of a quadratic walk."""
    small, large = make(n // 10), make(n)
    work(small)  # what is imported and cached at the first use is no part of it

    tenth = min(seconds(work, small) for _ in range(3))

    assert seconds(work, large) < 40 * tenth
