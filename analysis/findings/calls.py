"""Rules about calls that are made one after the other, again, or with ever more to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import WORTHWHILE, milliseconds, of_request_time, phase_share, printed
from hotspan.analysis.findings.retrieval import is_one_by_one
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import significant
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.analysis.patterns import Run

_USUAL_DEPTH: Final = 2  # a model call that chooses, and one that answers
_GROWN: Final = 2.0  # an agent's last prompt over its first
_LONG: Final = 1_000  # tokens: reading fewer takes no time worth a step
_MOSTLY_CACHED: Final = 0.8  # of the prompt tokens: reading them again costs little
_MAX_NAMES: Final = 3  # that are said
_ONE_STEP: Final = "If no call needs the result of the one before: asyncio.gather, threads, one call for all."
_SEVERAL_STEP: Final = (
    "If none needs the result of the one before, which the timing cannot tell: asyncio.gather, or threads."
)
_FELT: Final = 0.05  # of request time, spent on reading prompts


def sequential_model_calls(report: Report) -> Iterator[Finding]:
    """Say that an agent waits for many model calls in a row."""
    found = report.amplification
    depth, calls = found.sequential_depth, found.model_calls
    if not found.is_agent or depth is None or calls is None or depth.mean <= _USUAL_DEPTH:
        return
    yield Finding(
        "sequential-model-calls",
        "info",
        f"An agent request makes {significant(calls.mean)} model calls and waits for "
        f"{significant(depth.mean)} of them one after the other.",
        {
            "mean_sequential_depth": depth.mean,
            "mean_model_calls": calls.mean,
            "prompt_resent_ratio": found.prompt_tokens_resent_ratio,
            "against": {"parallelism": found.parallelism, "cached_prompt_ratio": found.cached_prompt_ratio},
        },
        "Ask for several tool calls in one step, or stop planning when the question is a look-up.",
    )


def sequential_calls(report: Report) -> Iterator[Finding]:
    """Say that calls of one stage follow each other that may not need each other's results."""
    for run in report.patterns.runs:
        share = of_request_time(report, run.total_ns - run.longest_calls_ns)
        if share > WORTHWHILE and not is_one_by_one(run) and not _is_batched(run):
            yield Finding(
                "sequential-calls",
                "info",
                f"{_named(run.names)} ({run.stage}) {'runs' if len(run.names) == 1 else 'run'} "
                f"{significant(run.n_calls / run.n_runs)} times back to back where "
                f"{'it runs' if len(run.names) == 1 else 'they run'}: at once, requests would be up to "
                f"{printed(report, share)} shorter.",
                {
                    "calls": run.n_calls,
                    "rows": run.n_runs,
                    "mean_call_ms": milliseconds(run.total_ns / run.n_calls),
                    "beyond_longest_call_ratio": share,
                    # The timing cannot tell whether a call needs the result of the one before.
                    "against": {
                        "mean_longest_call_ms": milliseconds(run.longest_calls_ns / run.n_runs),
                        "different_names": len(run.names) if len(run.names) > 1 else None,
                    },
                },
                _SEVERAL_STEP if len(run.names) > 1 else _ONE_STEP,
            )


def _is_batched(run: Run) -> bool:
    """Return whether the calls of a row are the batches of more texts than one call takes."""
    return run.stage == semconv.EMBEDDING and len(run.names) == 1 and run.n_batches > 0


def _named(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:_MAX_NAMES]]
    hidden = len(names) - len(shown)
    *others, last = [*shown, f"{hidden} more"] if hidden else shown
    return f"{', '.join(others)} and {last}" if others else last


def repeated_calls(report: Report) -> Iterator[Finding]:
    """Say that calls were made again with the same input and gave the same output."""
    for repeat in report.patterns.repeats:
        share = of_request_time(report, repeat.repeats_ns)
        if repeat.n_repeats > 1 and share > WORTHWHILE:
            yield Finding(
                "repeated-calls",
                "info",
                f"{repeat.n_repeats} of {repeat.n_known} calls of {repeat.name!r} ({repeat.stage}) had the "
                f"input and the output of one before: {printed(report, share)} of request time.",
                {
                    "repeated_calls": repeat.n_repeats,
                    "repeated_in_one_request": repeat.n_same_request,
                    "repeated_of_request_ratio": share,
                    "against": {"different_calls": repeat.n_known - repeat.n_repeats},
                },
                "Keep the results in a cache, as long as they may be that old.",
            )


def prompt_growth(report: Report) -> Iterator[Finding]:
    """Say that an agent's prompt grows from step to step, where reading it takes time."""
    growth, found = report.patterns.growth, report.amplification
    cached, reading = found.cached_prompt_ratio, _reading_ratio(report)
    if growth is None or growth.growth_p50 < _GROWN or growth.last_tokens_p50 < _LONG:
        return
    if (cached or 0.0) >= _MOSTLY_CACHED:
        return
    if reading is not None and reading < _FELT:
        return
    yield Finding(
        "prompt-growth",
        "info",
        f"An agent's prompt grows {significant(growth.growth_p50)}-fold over its "
        f"{significant(growth.calls_mean)} model calls: each step reads again what the steps before wrote.",
        {
            "first_prompt_tokens_p50": growth.first_tokens_p50,
            "last_prompt_tokens_p50": growth.last_tokens_p50,
            "prompt_resent_ratio": found.prompt_tokens_resent_ratio,
            "against": {
                "cached_prompt_ratio": cached,
                "reading_of_request_ratio": reading,
                # 1: whatever it reads, a call takes as long.
                "longer_prompts_call_time_factor": growth.long_prompts_time_ratio,
                "agent_runs": growth.n_runs,
            },
        },
        "Keep tool results short or summarise them, and leave the prompt's beginning as it is: a prefix "
        "cache answers what has not changed.",
    )


def _reading_ratio(report: Report) -> float | None:
    """Return the share of request time in which prompts are read: prefill, or the wait that contains it."""
    prefill = phase_share(report, "prefill")
    return phase_share(report, "first_token_wait") if prefill is None else prefill
