"""`hotspan show`."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    ("args", "head"),
    [
        pytest.param([], "answer · 1.00 s · the slowest of 10 requests", id="slowest"),
        pytest.param(
            ["--percentile", "50"], "answer · 500 ms · at percentile 50 of 10 requests", id="median"
        ),
        pytest.param([f"{3:032x}"], "answer · 300 ms · the one asked for", id="by-id"),
        pytest.param(
            ["0000000000000000000000000000000A"], "answer · 1.00 s · the one asked for", id="in-capitals"
        ),
    ],
)
def test_one_request(cli, trace_file, args, head):
    """The slowest, the one at a percentile, or the one with an id, as a waterfall with its critical path."""
    result = cli("show", trace_file, *args)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(head)
    assert "\n generation: chat " in result.stdout
    assert result.stdout.split("Critical path")[1].count("80.0 %") == 1


def test_json_is_the_contract(cli, trace_file):
    """`--format json` has the promised keys; the critical path tiles the request."""
    document = json.loads(cli("show", "--format", "json", trace_file).stdout)
    assert {"trace_id", "duration_ms", "critical_path", "spans"} <= document.keys()
    assert document["duration_ms"] == 1000.0
    assert document["critical_path"] == [
        {"span_id": f"{2:016x}", "name": "search", "stage": "retrieval", "start_ms": 0.0, "end_ms": 200.0},
        {"span_id": f"{3:016x}", "name": "chat", "stage": "generation", "start_ms": 200.0, "end_ms": 1000.0},
    ]


def test_an_unknown_id_lists_what_exists(cli, trace_file):
    """Exit code 2, and the ids that there are on standard error."""
    result = cli("show", trace_file, "beef")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error: No trace with an id that begins with 'beef'. Here are 10 traces" in result.stderr
    assert f"{10:032x}  1.00 s" in result.stderr


def test_an_ambiguous_id_asks_for_more(cli, trace_file):
    """A beginning that several share is not a choice."""
    result = cli("show", trace_file, "0000")
    assert result.exit_code == 2
    assert "10 traces have an id that begins with '0000': give more of it." in result.stderr


@pytest.mark.parametrize("percentile", ["0", "101", "-5", "nan", "many"])
def test_a_percentile_is_between_0_and_100(cli, trace_file, percentile):
    """Anything else is misuse."""
    result = cli("show", trace_file, "--percentile", percentile)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "percentile" in result.stderr


def test_an_id_and_a_percentile_exclude_each_other(cli, trace_file):
    """Two ways to choose are one too many."""
    result = cli("show", trace_file, "0a", "--percentile", "50")
    assert result.exit_code == 2
    assert "TRACE and --percentile" in result.stderr


def test_clocks_are_adjusted_when_asked(cli, write, spans):
    """A span of another process is drawn where it can have been, and the shift is said beside it."""
    root, search, chat = spans["request"](7, 100)
    path = write([root, search, chat])
    document = json.loads(path.read_text("utf-8"))
    far = {"attributes": [{"key": "service.name", "value": {"stringValue": "far"}}]}
    chat |= {key: str(int(chat[key]) + 10**10) for key in ("startTimeUnixNano", "endTimeUnixNano")}
    document["resourceSpans"][0]["scopeSpans"][0]["spans"] = [root, search]
    document["resourceSpans"].append({"resource": far, "scopeSpans": [{"scope": {}, "spans": [chat]}]})
    path.write_text(json.dumps(document), encoding="utf-8")

    plain, adjusted = cli("show", path), cli("show", "--skew-adjust", path)

    assert ("goes on after the request" in plain.stdout, plain.stderr) == (True, "")
    assert "goes on after the request" not in adjusted.stdout
    assert "! the clock of far was shifted by -10010.000 ms, once, as asked" in adjusted.stderr
