"""The report for a terminal."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hotspan.analysis.report import (
    Amplification,
    Evidence,
    Finding,
    GenerationSummary,
    Report,
    RequestSummary,
    TokenCounts,
    Unattributed,
    WhatIf,
)
from hotspan.exporters.reports import figures
from hotspan.exporters.reports.console import render
from hotspan.exporters.reports.screen import Screen


@pytest.mark.parametrize(
    ("screen", "name"),
    [
        pytest.param(Screen(), "report-pipe-80.txt", id="pipe"),
        pytest.param(Screen(draws=True), "report-terminal-80.txt", id="terminal"),
        pytest.param(Screen(width=120, draws=True), "report-terminal-120.txt", id="wide-terminal"),
        pytest.param(Screen(width=100, draws=True, encoding="ascii"), "report-ascii-100.txt", id="ascii"),
        pytest.param(Screen(width=40), "report-pipe-40.txt", id="narrow"),
    ],
)
def test_the_whole_report(full_report, golden, screen, name):
    """Evidence, request, stages, generation, agent, what would help: in this order, fitted to the screen."""
    golden(render(full_report, screen), name)


@pytest.mark.parametrize("width", [20, 33, 40, 60, 72, 80, 100, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_wider_than_the_screen(full_report, width, encoding):
    """From a watch to a wall: every line fits, and nothing but ASCII reaches an ASCII screen."""
    text = render(full_report, Screen(width=width, draws=True, encoding=encoding))
    # Below 40 cells a name and its share still have to be told; the terminal breaks those lines.
    assert max(map(cell_len, text.splitlines())) <= max(width, 40)
    text.encode(encoding)


def test_80_columns_hold_every_figure(by_hand):
    """With long phase names and a mark on every percentile, no column is lost in a pipe of 80."""
    phases = tuple(
        dataclasses.replace(phase, weak=("p50", "p95"))
        for phase in (
            by_hand.phase("server_before_engine", 0.45, 0.46, 0.2),
            by_hand.phase("decode", 119, 120, 0.7),
        )
    )
    few = by_hand.dist(402, 911, n=3)
    few = dataclasses.replace(few, weak=("p50", "p95", "p99"))
    stages = (
        by_hand.stage("generation", 3, few, 0.9, phases=phases),
        by_hand.stage("context_assembly", 1500, few, 0.1),
    )
    text = render(Report(stages=stages, unattributed=Unattributed(0, 0.0)), Screen())
    titles = text.split("Stage")[1].splitlines()[0].split()
    assert titles[:6] == ["calls", "each", "p50", "p95", "p99", "self"]


def test_the_time_of_failed_calls_is_the_rest_of_the_phases(by_hand):
    """Phases are those of calls that succeeded; what they do not explain of the stage's share is `rest`."""
    phases = (by_hand.phase("queue", 3, 4, 0.2), by_hand.phase("decode", 100, 110, 0.3))
    stages = (by_hand.stage("generation", 9, by_hand.dist(402, 911), 0.9, phases=phases, n_errors=5),)
    text = render(Report(stages=stages, unattributed=Unattributed(0, 0.1)), Screen())
    assert re.search(r"\n rest +40\.0 %\n", text)


def test_phases_that_explain_nothing_are_not_printed(by_hand):
    """A call of which only the duration is known has no phases to show."""
    phases = (by_hand.phase("unattributed", 402, 911, 0.9), by_hand.phase("decode", 0, 0, 0.0))
    stages = (by_hand.stage("generation", 9, by_hand.dist(402, 911), 0.9, phases=phases),)
    text = render(Report(stages=stages, unattributed=Unattributed(0, 0.1)), Screen())
    assert "\n " not in text.split("Stage")[1]


def test_a_percentile_that_no_call_of_a_phase_has_is_a_dash(by_hand):
    """Not measured is no zero."""
    phases = (
        by_hand.phase("decode", 402, 911, 0.8),
        dataclasses.replace(by_hand.phase("queue", 1, 1, 0.1), p50_ns=None, p95_ns=None),
    )
    stages = (by_hand.stage("generation", 9, by_hand.dist(402, 911), 0.9, phases=phases),)
    text = render(Report(stages=stages, unattributed=Unattributed(0, 0.1)), Screen(width=100))
    (line,) = (line.split() for line in text.splitlines() if line.startswith(" queue"))
    assert line == ["queue", figures.ABSENT, figures.ABSENT, "10.0", "%"]
    assert f"{figures.ABSENT} not measured" in text


def test_a_percentile_of_a_phase_that_few_samples_carry_is_marked(by_hand):
    """As one of a stage is, and the legend says what it means."""
    phases = (
        dataclasses.replace(by_hand.phase("queue", 3, 345, 0.5), weak=("p95",)),
        by_hand.phase("decode", 300, 311, 0.4),
    )
    stages = (by_hand.stage("generation", 9, by_hand.dist(402, 911), 0.9, phases=phases),)
    text = render(Report(stages=stages, unattributed=Unattributed(0, 0.1)), Screen(width=100))
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith(" ")}

    assert "3.00 ms" in lines["queue"]
    assert "345 ms*" in lines["queue"]
    assert "*" not in lines["decode"]
    assert "* fewer than 10 samples lie beyond it" in text


def test_estimates_of_single_changes_have_a_heading_and_columns(full_report):
    """What they are is said once, also without a finding above them; figures stand under each other."""
    changes = (WhatIf("generation x0.5", -0.45, -0.489), WhatIf("rerank x0.5", -0.029, 0.005))
    text = render(dataclasses.replace(full_report, findings=(), what_if=changes), Screen())
    after = text.split("\n\nIf one stage took half the time\n")[1]
    assert after.split("\n\n")[0].splitlines() == [
        "  generation   request p50 ~45.0 % shorter   p95 ~48.9 % shorter",
        "  rerank       request p50  ~2.9 % shorter   p95  ~0.5 % longer",
    ]


def test_calls_at_once_have_a_heading_of_their_own(full_report):
    """A stage that is gone is in the JSON alone; what changes no printed figure is in no block."""
    changes = (
        WhatIf("rerank removed", -0.3, -0.3),
        WhatIf("retrieval in parallel", -0.2, -0.1),
        WhatIf("tool in parallel", 0.0, -0.0001),
    )
    text = render(dataclasses.replace(full_report, findings=(), what_if=changes), Screen())
    after = text.split("\n\nIf one stage's calls ran at once\n")[1]
    assert after.split("\n\n")[0].splitlines() == [
        "  retrieval   request p50 ~20.0 % shorter   p95 ~10.0 % shorter",
    ]
    assert "half the time" not in text
    assert "removed" not in text


def test_printed_shares_add_up_to_100(full_report):
    """Stages and unattributed add up to 100.0 % as printed, phases to their stage."""
    rows = re.findall(
        r"^( ?\w+) .* (\d+\.\d) %$", render(full_report, Screen()).split("Generation")[0], re.MULTILINE
    )
    tenths = {name: round(10 * float(share)) for name, share in rows}
    phases = sum(share for name, share in tenths.items() if name.startswith(" "))
    assert sum(share for name, share in tenths.items() if not name.startswith(" ")) == 1000
    assert phases == tenths["generation"]


def test_nothing_speaks_of_what_is_not_there():
    """A report of nothing says so, in one line, without a table, a legend or a figure."""
    assert render(Report(), Screen(width=100)) == (
        "0 requests · 0 spans, all complete\n"
        "Request      no complete request in the file: shares of a request cannot be computed\n"
    )


def test_losses_stand_above_the_figures(full_report):
    """What was lost, sampled or repaired is said before the first figure."""
    evidence = Evidence(
        files=("a.jsonl", "b.jsonl"),
        n_spans=600,
        n_requests=50,
        n_dropped_spans=12,
        n_partial_traces=4,
        n_unfinished_roots=2,
        n_invalid_roots=1,
        n_orphan_spans=3,
        n_invalid_spans=2,
        n_unfinished_spans=1,
        n_late_spans=4,
        n_twin_spans=1,
        n_duplicate_spans=5,
        n_same_id_spans=2,
        n_cycles_cut=1,
        n_engine_spans=7,
        n_engine_joined=6,
        n_engine_clipped=1,
        is_sampled=True,
        sample_ratio=0.1,
        overhead_per_span_ns=912.0,
        overhead_ratio=0.034,
        warnings=tuple(f"warning {n}" for n in range(12)),
    )
    text = render(dataclasses.replace(full_report, evidence=evidence), Screen(width=120))
    head = text.split("\nRequest ")[0].splitlines()
    assert head == [
        (
            "a.jsonl and 1 more file · 50 requests · 600 spans"
            " · tracing cost 912 ns a span (3.4 % of request time)"
        ),
        "! 12 spans lost by the traced program: calls and times below are too low",
        "! 1 partial trace (the root is missing): counted per stage, in no request figure",
        (
            "! 2 partial traces (the root never ended: the program died or runs on, or the file was cut): "
            "counted per stage, in no"
        ),
        "  request figure",
        "! 1 partial trace (the root has an impossible time): counted per stage, in no request figure",
        "! 3 orphaned spans: the parent is not in the file",
        "! 1 unfinished span (no end): counted, in no percentile",
        "! 2 invalid spans (impossible id or time): counted, in no percentile",
        "! sampled: 10.0 % of the requests were traced, counts below are of those",
        "! 4 late spans: what lies after the parent's end is in no request's 100 %",
        "! 1 call written by two instrumentations, counted once (a guess)",
        "! 5 duplicated spans: copies, counted once",
        "! 2 spans share an id with another that differs: all kept",
        "! 1 loop of parents cut at the span that starts last",
        "! 1 engine span joined to no model call: their phases are in no figure",
        "! 1 engine span longer than the client's own measure: cut to it",
        *(f"! warning {n}" for n in range(10)),
        "! 2 more warnings: --format json lists all",
    ]


def test_failed_calls_are_counted_apart(full_report, by_hand):
    """Calls that are in no percentile are told under the table, and the model calls' ends by their kind."""
    generation = dataclasses.replace(
        full_report.generation,
        n_attempts=190,
        status={"ok": 175, "error": 4, "truncated": 1, "cancelled": 1, "abandoned": 1},
        n_buffered=2,
    )
    stages = (
        by_hand.stage("generation", 182, by_hand.dist(402, 911), 0.9, n_errors=5, n_cancelled=1),
        by_hand.stage("tool", 60, by_hand.dist(4, 9), 0.1, n_errors=1),
    )
    report = dataclasses.replace(full_report, generation=generation, stages=stages)
    text = render(report, Screen(width=100))
    assert "Not in the percentiles: generation 5 errors, 1 cancelled; tool 1 error\n" in text
    assert "190 attempts for 182 calls   4 errors   1 truncated   1 cancelled   1 abandoned" in text
    assert "2 streams arrived all at once: the TTFT is the whole wait" in text


def test_estimates_and_absent_figures_are_marked(by_hand):
    """Counted chunks are an estimate, an answer that was not streamed has no TTFT; the legend says both."""
    generation = GenerationSummary(
        n_calls=5,
        n_attempts=5,
        status={"ok": 5},
        tpot_ns=by_hand.dist(4.8, 6),
        output_tokens_per_s=by_hand.dist(208, 300, scale=1),
        tokens=TokenCounts(output=320, is_estimated=True, n_output=5),
    )
    text = render(Report(request=RequestSummary(n=5, n_errors=5), generation=generation), Screen())
    dash = "\N{EN DASH}"
    assert (
        f"Generation   TTFT {dash}   TPOT ~4.80 ms   ~208 tokens/s\n             ~64.0 output tokens\n"
        in text
    )
    assert text.endswith(f"{dash} not measured   ~ an estimate\n")
    assert "Request      no request succeeded   5 errors, 0 cancelled\n" in text


def test_requests_without_an_agent_have_no_agent_block(full_report):
    """One model call a request is nothing to tell; several without an agent are not called an agent's."""
    quiet = dataclasses.replace(full_report.amplification, is_agent=False)
    text = render(dataclasses.replace(full_report, amplification=quiet), Screen())
    assert "\nAgent" not in text
    assert "\nModel calls  3.64 model calls a request" in text
    assert "Agent" not in render(dataclasses.replace(full_report, amplification=Amplification()), Screen())


HOSTILE = "[bold]evil[/]\x1b[2J\x1b]0;title\x07\r\n\u202eabc :smile: " + "x" * 200


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_hostile_names_are_harmless(full_report, by_hand, wide, encoding):
    """No markup, emoji code, escape or line break in any name, file, warning or advice takes effect."""
    report = dataclasses.replace(
        full_report,
        evidence=Evidence(files=(HOSTILE,), models=(HOSTILE,), warnings=(HOSTILE,)),
        stages=(by_hand.stage(HOSTILE, 3, by_hand.dist(1, 2), 1.0, n_errors=1),),
        findings=(Finding("x", "info", HOSTILE, {HOSTILE: HOSTILE, "against": {HOSTILE: 1}}, HOSTILE),),
    )
    text = render(report, Screen(encoding=encoding, wide=wide, draws=True))
    assert all(char == "\n" or char.isprintable() for char in text)
    assert "[bold]" in text
    assert wide == (HOSTILE[-200:] in text.replace("\n", "").split("Stage")[1].split("Not in")[0])


def test_colour_never_carries_meaning_alone(full_report):
    """With colour the same words stand there as without."""
    coloured = render(full_report, Screen(draws=True, colour="truecolor"))
    assert "\x1b[38;2;230;159;0mgeneration" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == render(full_report, Screen(draws=True)).split()


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.text(max_size=50), min_size=1, max_size=8),
    width=st.integers(min_value=40, max_value=160),
    draws=st.booleans(),
    encoding=st.sampled_from(["utf-8", "latin-1", "ascii"]),
)
def test_any_stage_names_make_a_table_that_fits(by_hand, names, width, draws, encoding):
    """Whatever stages are called, every line fits the screen and its encoding."""
    ratio = 0.9 / len(names)
    stages = tuple(by_hand.stage(name, 7, by_hand.dist(402, 911), ratio) for name in names)
    report = Report(stages=stages, unattributed=Unattributed(1, 0.1), evidence=Evidence(files=(names[0],)))
    text = render(report, Screen(width=width, draws=draws, encoding=encoding))
    text.encode(encoding)
    assert all(cell_len(line) <= width for line in text.splitlines())
