"""The model calls in words: speed, tokens, outcomes, and how many of them a request costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.exporters.reports import figures
from hotspan.exporters.reports.figures import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.report import (
        Amplification,
        Distribution,
        GenerationSummary,
        PerRequest,
        TokenCounts,
    )
    from hotspan.exporters.reports.marks import Marks

Line = list[str]  # parts that belong on one line, where they fit on it


def generation(summary: GenerationSummary, marks: Marks) -> list[Line]:
    """Return the lines about the model calls, as far as something is known of them."""
    n_ok = summary.status.get("ok", 0)
    speed = list(_speed(summary, n_ok, marks)) if n_ok else []
    lines = [speed, list(_tokens(summary.tokens, n_ok, marks)), list(_outcomes(summary))]
    return [line for line in lines if line]


def _speed(summary: GenerationSummary, n_ok: int, marks: Marks) -> Iterator[str]:
    is_estimated = summary.tokens.is_estimated
    if summary.ttft_ns is None and summary.first_chunk_ns is not None:
        # Not the first token: a server may send an empty chunk at once.
        yield f"first chunk {_first(summary.first_chunk_ns, n_ok, marks)}"
    else:
        yield f"TTFT {_first(summary.ttft_ns, n_ok, marks)}"
    tpot = summary.tpot_ns
    yield f"TPOT {marks.estimated(figures.duration(tpot.p50 if tpot else None), when=is_estimated)}"
    if speed := summary.output_tokens_per_s:
        yield marks.estimated(figures.tokens_per_second(speed.p50), when=is_estimated)


def _first(times: Distribution | None, n_ok: int, marks: Marks) -> str:
    if times is None:
        return marks.duration(None)
    streamed = "" if times.n == n_ok else f", {times.n:,} of {n_ok:,} calls streamed"
    return f"{marks.percentile(times, 'p50')} (p95 {marks.percentile(times, 'p95')}{streamed})"


def _tokens(tokens: TokenCounts, n_ok: int, marks: Marks) -> Iterator[str]:
    if (prompt := figures.per_call(tokens.prompt, tokens.n_prompt)) is not None:
        cached = ""
        if tokens.cached_prompt is not None and tokens.prompt:
            cached = f", {figures.percent(tokens.cached_prompt / tokens.prompt)} from the prefix cache"
        yield f"{figures.mean(prompt)} prompt tokens a call{_of_those(tokens.n_prompt, n_ok)}{cached}"
    if (mean := figures.per_call(tokens.output, tokens.n_output)) is not None:
        output = marks.estimated(figures.mean(mean), when=tokens.is_estimated)
        yield f"{output} output tokens{_of_those(tokens.n_output, n_ok)}"


def _of_those(n_saying: int, n_ok: int) -> str:
    return "" if n_saying == n_ok else f" ({n_saying:,} of {n_ok:,} say)"


def _outcomes(summary: GenerationSummary) -> Iterator[str]:
    if summary.n_attempts > summary.n_calls:
        yield f"{counted(summary.n_attempts, 'attempt')} for {counted(summary.n_calls, 'call')}"
    if n := summary.status.get("error", 0):
        yield counted(n, "error")
    for status in ("truncated", "cancelled", "abandoned"):
        if n := summary.status.get(status, 0):
            yield f"{n:,} {status}"
    if n := summary.n_buffered:
        yield f"{counted(n, 'stream')} arrived all at once: the TTFT is the whole wait, or none"


def amplification(summary: Amplification, marks: Marks) -> list[Line]:
    """Return the lines about calls per request; none where every request makes at most one model call."""
    calls = summary.model_calls
    if calls is None or (not summary.is_agent and calls.max <= 1):
        return []
    depth = summary.sequential_depth
    sequence = f", {figures.mean(depth.mean)} of them in sequence" if depth else ""
    spread = f"{figures.mean(calls.mean)} model calls a request (max {calls.max:,.0f})"
    details = list(_details(summary, calls, marks))
    return [line for line in ([spread + sequence], details) if line]


def _details(summary: Amplification, calls: PerRequest, marks: Marks) -> Iterator[str]:
    if (attempts := summary.attempts) and attempts.mean > calls.mean:
        yield f"{figures.mean(attempts.mean)} attempts a request"
    if (time := summary.time_amplification) is not None:
        # Without a call that succeeded a request has none: how long one takes is not known there.
        some = 0 < summary.n_timed < summary.n_requests
        of_them = f" (in {summary.n_timed:,} of {summary.n_requests:,} requests)" if some else ""
        yield f"{figures.significant(time.mean)}\N{MULTIPLICATION SIGN} the time of one call{of_them}"
    if (ratio := summary.prompt_tokens_resent_ratio) is not None:
        yield f"{marks.estimated(figures.percent(ratio))} of prompt tokens sent again"
