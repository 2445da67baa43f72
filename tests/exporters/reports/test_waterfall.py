"""One request on a time axis."""

from __future__ import annotations

import json
import re

import pytest
from made_traces import Call, answer, engine, request
from rich.cells import cell_len

from hotspan.analysis.engine import BY_TRACE
from hotspan.exporters.reports import waterfall
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.json import render_request
from hotspan.exporters.reports.screen import Screen
from hotspan.testing import build_trace

ZERO_NS = 1_700_000_000 * 10**9


@pytest.mark.parametrize(
    ("screen", "name"),
    [
        pytest.param(Screen(), "show-80.txt", id="80"),
        pytest.param(Screen(width=120), "show-120.txt", id="120"),
        pytest.param(Screen(width=40, encoding="ascii"), "show-ascii-40.txt", id="ascii-40"),
    ],
)
def test_the_whole_request(rag_trace, golden, screen, name):
    """Spans as bars, the critical path through them and in order below, and the engine's account."""
    golden(waterfall.render(choose([rag_trace]), screen), name)


@pytest.mark.parametrize("width", [20, 40, 55, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_wider_than_the_screen(rag_trace, width, encoding):
    """Every line fits, down to a width at which a name, a time and a bar have no room any more."""
    text = waterfall.render(choose([rag_trace]), Screen(width=width, encoding=encoding))
    assert max(map(cell_len, text.splitlines())) <= width
    text.encode(encoding)


def test_printed_shares_add_up_to_100(rag_trace):
    """The stretches of the critical path are the whole request."""
    text = waterfall.render(choose([rag_trace]), Screen()).split("Critical path")[1]
    assert sum(round(10 * float(share)) for share in re.findall(r"(\d+\.\d) %", text)) == 1000


def test_failed_spans_say_so():
    """How a span ended stands behind its name, and how the request ended in the first line."""
    trace = build_trace(
        ("answer", ZERO_NS, ZERO_NS + 100),
        ("chat", ZERO_NS, ZERO_NS + 90, "answer"),
        stages={"answer": "request", "chat": "generation"},
        attributes={"chat": {"hotspan.outcome": "truncated"}, "answer": {"hotspan.outcome": "cancelled"}},
    )
    text = waterfall.render(choose([trace]), Screen())
    assert text.startswith("answer · 100 ns · the slowest of 1 request · cancelled\n")
    assert "\n generation: chat [truncated] " in text


def test_a_large_request_shows_what_tells_most():
    """A hundred lines at most, those of the critical path first; --wide shows all."""
    spans = [(f"s{n:03}", ZERO_NS + 10 * n, ZERO_NS + 10 * n + 5, "answer") for n in range(300)]
    spans[200] = ("slow", ZERO_NS + 2000, ZERO_NS + 2009, "answer")
    trace = build_trace(("answer", ZERO_NS, ZERO_NS + 3000), *spans, stages={"answer": "request"})
    text = waterfall.render(choose([trace]), Screen())
    assert "… 201 shorter spans: --wide shows all\n" in text
    assert "\n slow " in text
    assert len(text.splitlines()) < 150
    assert waterfall.render(choose([trace]), Screen(wide=True)).count("\n s") >= 300


def test_a_request_that_took_no_time():
    """A request of 0 ns is drawn, not divided by."""
    trace = build_trace(("answer", ZERO_NS, ZERO_NS), stages={"answer": "request"})
    assert "answer · 0 ms" in waterfall.render(choose([trace]), Screen())


def test_depth_is_bounded():
    """A thousand levels of spans neither overflow the stack nor push the names off the screen."""
    spans = [(f"s{n}", ZERO_NS, ZERO_NS + 5000 - n, *([f"s{n - 1}"] if n else [])) for n in range(1000)]
    text = waterfall.render(choose([build_trace(*spans, stages={"s0": "request"})]), Screen())
    assert max(map(len, text.splitlines())) <= 80


def test_hostile_names_are_harmless():
    """No escape, markup or line break in a span's name takes effect."""
    name = "[red]x[/]\x1b[2J\n\u202e:smile:"
    trace = build_trace((name, ZERO_NS, ZERO_NS + 9), stages={name: "req\x1buest"})
    for wide in (False, True):
        text = waterfall.render(choose([trace]), Screen(wide=wide))
        assert all(char == "\n" or char.isprintable() for char in text)
        assert "[red]" in text


def test_a_model_call_shows_its_phases_inside_its_bar():
    """Queue, prefill and decode of the engine lie in order within the call that asked it."""
    call = answer(100, 1000, ttft=300, last=800, output=5)
    trace = request(1, 1000, Call("retrieval", "search", 0, 100), call, engine(200, 100, 500))
    lines = waterfall.render(choose([trace]), Screen(width=120)).splitlines()
    bars = {line.split()[0]: line for line in lines if "\N{BOX DRAWINGS LIGHT HORIZONTAL}" in line}

    places = [
        bars[name].index("\N{BOX DRAWINGS LIGHT HORIZONTAL}") for name in ("queue", "prefill", "decode")
    ]
    assert places == sorted(set(places))
    assert [bars[name].split()[1] for name in ("queue", "prefill", "decode")] == ["200", "100", "500"]


def test_the_phases_of_a_call_are_its_duration():
    """A program gets every phase with its source; they add up."""
    call = answer(0, 1000, ttft=300, last=800, output=5)
    view = choose([request(1, 1000, call, engine(200, 90, 500))])

    found = json.loads(render_request(view))["spans"]

    (chat,) = [span for span in found if span["name"] == "chat"]
    assert sum(phase["ms"] for phase in chat["phases"]) == pytest.approx(chat["duration_ms"])
    assert {phase["phase"]: phase["source"] for phase in chat["phases"]}["queue"] == BY_TRACE
    assert [span["name"] for span in found if span["engine"]] == ["llm_request"]


def test_a_call_about_which_nothing_is_known_has_no_phases():
    """Nor has one that failed: its stamps end where it did."""
    failed = answer(0, 1000, ttft=300, attributes={"hotspan.outcome": "truncated"})

    for call in (answer(0, 1000), failed):
        assert all(not span.phases for span in choose([request(1, 1000, call)]).spans)
