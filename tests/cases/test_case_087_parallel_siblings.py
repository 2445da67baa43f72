"""Case 087: siblings that ran at once, shown as if one had waited for the other."""

from __future__ import annotations

import json

from hotspan.analysis.critical_path import critical_path, slacks
from hotspan.analysis.repair import repair
from hotspan.exporters.reports import waterfall
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.json import render_request
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer.testing import build_trace


def test_only_the_longer_of_two_is_on_the_path_and_the_other_has_slack():
    """Retrieve 0-100 beside embed 0-60, then the model: the path is 100 + 200, embed can grow by 40."""
    #  request  |------------------------------|
    #  retrieve |----------|
    #  embed    |------|
    #  model                |------------------|
    trace = build_trace(
        ("request", 0, 300),
        ("retrieve", 0, 100, "request"),
        ("embed", 0, 60, "request"),
        ("model", 100, 300, "request"),
    )

    tree, _ = repair(trace)
    names = [span.name for span in tree.spans]

    path = [(names[s.span], s.start_ns, s.end_ns) for s in critical_path(tree, 0)]
    assert path == [("retrieve", 0, 100), ("model", 100, 300)]
    slack = {names[index]: ns for index, ns in slacks(tree, 0).items()}
    assert slack == {"request": 0, "retrieve": 0, "embed": 40, "model": 0}


def test_show_has_the_slack_and_says_what_the_path_is_read_from():
    """For people a word, for programs the figure."""
    trace = build_trace(
        ("request", 0, 300),
        ("retrieve", 0, 100, "request"),
        ("embed", 0, 60, "request"),
        ("model", 100, 300, "request"),
        stages={"request": "request", "retrieve": "retrieval", "embed": "embedding", "model": "generation"},
    )

    view = choose([trace])

    slack = {span["name"]: span["slack_ms"] for span in json.loads(render_request(view))["spans"]}
    assert slack == {"request": 0, "retrieve": 0, "embed": 40e-6, "model": 0}
    assert "read from the timing" in waterfall.render(view, Screen())
