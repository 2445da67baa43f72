"""Tokens a call are a mean over the calls that say how many: unknown is not 0."""

from hotspan.analysis import analyse
from hotspan.exporters.reports.console import render
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer import semconv
from hotspan.tracer.testing import build_trace

MS = 1_000_000


def request(number, *, ms=100, prompt=None, output=None):
    """Return a request with one model call, and what it says of its tokens."""
    said = {semconv.INPUT_TOKENS: prompt, semconv.OUTPUT_TOKENS: output}
    return build_trace(
        ("request", 0, ms * MS),
        ("chat", 0, ms * MS, "request"),
        stages={"request": "request", "chat": "generation"},
        attributes={"chat": {key: value for key, value in said.items() if value is not None}},
        trace_id=f"{number:032x}",
    )


def test_calls_that_do_not_say_are_not_zeros():
    """Of six calls one says its 7 prompt tokens: 7 a call, of 1 of 6; output by those that say theirs."""
    report = analyse(
        [request(1, prompt=7, output=4), *(request(n, output=10) for n in range(2, 6)), request(6)]
    )
    tokens = report.generation.tokens

    assert (tokens.prompt, tokens.n_prompt) == (7, 1)
    assert (tokens.output, tokens.n_output) == (44, 5)
    assert report.to_dict()["generation"]["tokens"]["prompt_calls"] == 1
    shown = " ".join(render(report, Screen(width=120)).split())
    assert "7.00 prompt tokens a call (1 of 6 say)" in shown
    assert "8.80 output tokens (5 of 6 say)" in shown


def test_where_all_calls_say_nothing_more_is_said():
    """The number of calls is noise then; where none says, there is no mean."""
    report = analyse([request(n, prompt=n) for n in range(1, 4)])

    assert "2.00 prompt tokens a call" in render(report, Screen(width=120))
    assert "say)" not in render(report, Screen(width=120))
    assert (report.generation.tokens.output, report.generation.tokens.n_output) == (None, 0)


def test_the_slowest_of_which_nothing_is_known_have_no_mean():
    """`null`, not 0; and the others' mean is over those that say."""
    others = [request(n, prompt=8 if n % 2 else None) for n in range(1, 20)]
    tail = analyse([*others, request(20, ms=900)]).tail
    (factor,) = (factor for factor in tail.factors if factor.name == "prompt_tokens")

    assert (factor.all_mean, factor.slow_mean) == (8, None)
    assert factor.to_dict()["slow_mean"] is None
