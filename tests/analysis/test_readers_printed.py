"""What a program printed around the spans of `ConsoleSpanExporter`: the program's own, and counted once."""

from __future__ import annotations

import json

import dialect_files as files
import pytest

from hotspan.analysis import analyse, load
from hotspan.exporters.reports.console import render
from hotspan.exporters.reports.screen import Screen

SPANS = [
    json.loads(text)
    for text in files.console().replace("Listening on port 8000\n", "").split("\nGET / 200\n")
]
LAYOUTS = pytest.mark.parametrize("indent", [4, None], ids=["over-many-lines", "one-line-a-span"])


def _printed(*pieces, indent=4):
    """Return spans as the exporter prints them, and texts as they are."""
    return "".join(
        piece if isinstance(piece, str) else json.dumps(piece, indent=indent) + "\n" for piece in pieces
    )


def _read(tmp_path, text, name="out.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    reader = load(path)
    return sum(len(trace) for trace in reader), reader.evidence


@LAYOUTS
@pytest.mark.parametrize(
    "own",
    [
        pytest.param("hello world\n", id="words"),
        pytest.param("got {x} and [1]\n", id="brackets"),
        pytest.param('{"level": "info", "msg": "x"}\n', id="json"),
        pytest.param('{"name": "Ann", "age": 3}\n', id="json-with-a-name"),
        pytest.param('{\n    "name": "Ann",\n    "age": 3\n}\n', id="json-over-lines"),
        pytest.param('{\n    "level": "info"\n}\n', id="json-over-lines-without-a-name"),
        pytest.param("if (x) {\n", id="an-open-brace"),
        pytest.param("a {'q': 'so \"odd'} [\n", id="odd-quotes"),
        pytest.param("[1, 2\n", id="an-open-bracket"),
        pytest.param("[INFO] one\r\n[INFO] two\r\n", id="log-lines"),
        pytest.param("}\n]\n", id="closing-ones"),
    ],
)
def test_other_output_costs_nothing_and_is_counted_once(tmp_path, own, indent):
    """Whatever a program prints before, between and behind its spans: no warning, and every span is read."""
    text = _printed(own, own, SPANS[0], own, SPANS[1], SPANS[2], own, indent=indent)

    n_spans, evidence = _read(tmp_path, text)

    assert (n_spans, evidence.warnings, evidence.n_other_lines) == (3, [], 4 * own.count("\n"))


@LAYOUTS
def test_a_span_is_found_behind_what_was_printed_without_a_line_end(tmp_path, indent):
    """As a progress bar leaves it; the line is a span's, and no other output."""
    n_spans, evidence = _read(tmp_path, _printed(SPANS[0], "50 %|##  |", *SPANS[1:], indent=indent))

    assert (n_spans, evidence.warnings, evidence.n_other_lines) == (3, [], 0)


def test_any_amount_of_other_output_is_passed_over(tmp_path):
    """Thousands of lines before the first span, and megabytes between two."""
    own = f"[INFO] {{'n': '{500 * 'x'}'}}\n"

    n_spans, evidence = _read(tmp_path, _printed(own * 3_000, SPANS[0], own * 10_000, *SPANS[1:]))

    assert (n_spans, evidence.warnings, evidence.n_other_lines) == (3, [], 13_000)


@LAYOUTS
def test_the_report_says_it_in_its_quiet_line(tmp_path, indent):
    """All spans are complete: what else was printed is no trouble."""
    path = tmp_path / "out.txt"
    path.write_text(_printed("hello\n", *SPANS, indent=indent))

    report = analyse(load(path))
    first = render(report, Screen(width=120)).splitlines()[0]

    assert first == "out.txt · 0 requests · 3 spans, all complete · 1 line of other output skipped"
    assert report.to_dict()["evidence"]["other_lines"] == 1


WHOLE, LINE = _printed(SPANS[1]), _printed(SPANS[1], indent=None)
N_BEFORE = _printed(SPANS[0]).count("\n")


@pytest.mark.parametrize(
    ("broken", "line", "why"),
    [
        pytest.param(WHOLE[:300].rpartition("\n")[0] + "\n", 1, "half-written", id="cut"),
        pytest.param(WHOLE[:30] + "\n", 1, "half-written", id="cut-in-its-name"),
        pytest.param(WHOLE.replace('"context":', '"context";'), 1, "not JSON", id="damaged"),
        pytest.param(
            "".join(WHOLE.splitlines(keepends=True)[-7:]), 1, "the end of a span", id="without-a-begin"
        ),
        pytest.param(LINE[30:], 1, "the end of a span", id="a-line-without-a-begin"),
        pytest.param(LINE[:30] + "\n", 1, "half-written", id="a-line-cut-early"),
        pytest.param(LINE[:300] + "\n", 1, "not JSON: Input data was truncated", id="a-line-cut"),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_a_broken_span_is_said_with_its_line(tmp_path, broken, line, why, is_last):
    """It costs itself only, and the reader of a report hears where it was."""
    behind = "" if is_last else _printed("hello\n", SPANS[2])

    n_spans, evidence = _read(tmp_path, _printed(SPANS[0]) + broken + behind)

    (warning,) = evidence.warnings
    assert n_spans == (1 if is_last else 2)
    assert f"out.txt:{N_BEFORE + line}: " in warning
    assert why in warning


@pytest.mark.parametrize("indent", [4, None])
def test_an_array_of_such_spans_is_read_as_any_json(tmp_path, indent):
    """Whoever put them into one: brackets tell where they begin and end."""
    n_spans, evidence = _read(tmp_path, json.dumps(SPANS, indent=indent))

    assert (n_spans, evidence.warnings, evidence.n_other_lines) == (3, [], 0)


def test_spans_in_one_line_without_an_end_are_told_by_their_brackets(tmp_path):
    """A formatter without a line end."""
    n_spans, evidence = _read(tmp_path, "".join(json.dumps(span) for span in SPANS))

    assert (n_spans, evidence.warnings) == (3, [])


def test_a_span_that_never_ends_takes_a_bounded_amount_of_memory(tmp_path, monkeypatch):
    """It is given up behind the bound, and the next one is read."""
    monkeypatch.setattr("hotspan.analysis.readers.printed.MAX_DOCUMENT_BYTES", 10_000)
    endless = '{\n    "name": "x",\n' + '    "y": 1,\n' * 2_000

    n_spans, evidence = _read(tmp_path, _printed(SPANS[0], endless, *SPANS[1:]))

    (warning,) = evidence.warnings
    assert n_spans == 3
    assert "longer than" in warning
