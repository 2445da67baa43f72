"""What the figures rest on, in words: one quiet line when all is well, a line a trouble when not."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from hotspan.analysis.parts import NO_VALUE
from hotspan.analysis.tree import INVALID, MISSING, UNFINISHED
from hotspan.exporters.reports import figures
from hotspan.exporters.reports.figures import counted
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.report import Evidence, Groups, Report, RequestSummary
    from hotspan.exporters.reports.marks import Marks

_MOST_WARNINGS: Final = 10
_NOTABLE_OVERHEAD_RATIO: Final = 0.01
_MANY_FAILED: Final = 0.1  # of the requests, or of the model calls: the percentiles are flattered
_NOTABLE_SHIFT: Final = 0.1  # of the tokens an answer


def summary(evidence: Evidence) -> list[str]:
    """Return the parts of the evidence line; the first names the files."""
    parts = [_files(evidence), _requests(evidence)]
    spans = counted(evidence.n_spans, "span")
    parts.append(f"{spans}, all complete" if _is_complete(evidence) else spans)
    if n := evidence.n_other_lines:
        parts.append(f"{counted(n, 'line')} of other output skipped")
    if evidence.overhead_per_span_ns is not None:
        cost = figures.duration(evidence.overhead_per_span_ns)
        ratio = evidence.overhead_ratio or 0.0
        share = f" ({figures.percent(ratio)} of request time)" if ratio >= _NOTABLE_OVERHEAD_RATIO else ""
        parts.append(f"tracing cost {cost} a span{share}")
    return [part for part in parts if part]


def troubles(evidence: Evidence) -> list[str]:
    """Return what makes the figures less than they should be, the worst first; empty when all is well."""
    counted_troubles = [sentence for sentence in _incomplete(evidence) if sentence]
    counted_troubles += [sentence for sentence in _repaired(evidence) if sentence]
    warnings = list(evidence.warnings[:_MOST_WARNINGS])
    hidden = len(evidence.warnings) - len(warnings)
    if hidden:
        warnings.append(f"{counted(hidden, 'more warning')}: --format json lists all")
    return counted_troubles + warnings


def all_troubles(report: Report) -> list[str]:
    """Return what has to be known before a figure is read: failures, what was selected, what was lost."""
    return [*_failed(report), *_held(report), *_selected(report), *troubles(report.evidence)]


def _failed(report: Report) -> Iterator[str]:
    request, generation = report.request, report.generation
    if (ratio := request.error_ratio or 0.0) >= _MANY_FAILED:
        yield (
            f"{figures.percent(ratio)} of the requests failed ({request.n_errors:,} of {request.n:,}): "
            f"percentiles are of those that did not, and may look far too good{_endless(request)}"
        )
    n_bad = generation.status.get("error", 0) + generation.status.get("truncated", 0)
    if n_bad and n_bad >= _MANY_FAILED * generation.n_calls:
        yield (
            f"{figures.percent(n_bad / generation.n_calls)} of the model calls failed or broke off "
            f"({n_bad:,} of {generation.n_calls:,}): their percentiles are of the others"
        )


def _held(report: Report) -> Iterator[str]:
    if n := report.generation.n_held:
        yield (
            f"{counted(n, 'model call')} went on while the consumer held the stream: when tokens came is not "
            "known, and the TTFT, chunk gaps, TPOT and speed of these calls are left out or too good"
        )


def _endless(request: RequestSummary) -> str:
    """Return what the percentiles are when a failed request counts as one that never ends."""
    found = {name: ns for name, ns in request.with_failures_ns.items() if name in ("p50", "p95")}
    shown = (f"{name} {'a failure' if ns is None else figures.duration(ns)}" for name, ns in found.items())
    return f" (with failures as the slowest: {', '.join(shown)})" if found else ""


def _selected(report: Report) -> Iterator[str]:
    if (found := report.selection) is not None:
        kept = f"{found.n_kept:,} of {figures.counted(found.n_read, 'request')}"
        of = "of the selected calls" if found.has_calls else "of these requests"
        yield f"where {found.where}: {kept}; figures are {of}, shares are of these requests' whole time"


def request(report: Report, marks: Marks) -> list[str]:
    """Return the parts of the line about the requests."""
    summary = report.request
    if summary.n == 0:
        return ["no complete request in the file: shares of a request cannot be computed"]
    outcome = f"{_errors(summary, marks)}, {summary.n_cancelled:,} cancelled"
    if summary.duration_ns is None:
        return ["no request succeeded", outcome]
    percentiles = [f"{name} {marks.percentile(summary.duration_ns, name)}" for name in ("p50", "p95", "p99")]
    return [*percentiles, outcome]


def _errors(summary: RequestSummary, marks: Marks) -> str:
    errors = figures.counted(summary.n_errors, "error")
    if not summary.n_errors or summary.error_ratio is None:
        return errors
    ratio = figures.percent(summary.error_ratio)
    return f"{errors} ({marks.estimated(ratio, when=summary.is_weighted)})"


def group_name(groups: Groups, value: str | None) -> str:
    """Return which group a report is about."""
    return f"{groups.attribute} = {NO_VALUE if value is None else value}"


def group_notes(groups: Groups) -> list[str]:
    """Return what has to be known before groups are compared."""
    notes = []
    if groups.n_other_values:
        notes.append(f"{figures.counted(groups.n_other_values, 'more value')}: together in one group")
    lengths = [length for _, report in groups.reports if (length := _output_per_call(report))]
    if lengths and max(lengths) > (1 + _NOTABLE_SHIFT) * min(lengths):
        notes.append(
            f"answers are {figures.significant(min(lengths))} to {figures.significant(max(lengths))} tokens "
            f"long: compare {_by_token(groups)}, not that of a call"
        )
    return notes


def _by_token(groups: Groups) -> str:
    """Return what to compare: where no stream says when its tokens came, the call's time by its tokens."""
    if any(report.generation.tpot_ns is not None for _, report in groups.reports):
        return "the time per token (TPOT)"
    times = [
        row.duration_ns.mean / length
        for _, report in groups.reports
        for row in report.stages
        if row.stage == semconv.GENERATION and row.duration_ns and (length := _output_per_call(report))
    ]
    spread = f" ({figures.duration(min(times))} to {figures.duration(max(times))})" if times else ""
    return f"the time of a call by its output tokens{spread}"


def _output_per_call(report: Report) -> float | None:
    tokens = report.generation.tokens
    return figures.per_call(tokens.output, tokens.n_output)


def _files(evidence: Evidence) -> str:
    if not evidence.files:
        return ""
    name = PurePath(evidence.files[0]).name or evidence.files[0]
    others = len(evidence.files) - 1
    return f"{name} and {counted(others, 'more file')}" if others else name


def _requests(evidence: Evidence) -> str:
    requests, n = counted(evidence.n_requests, "request"), evidence.n_entry_requests
    if not n:
        return requests
    those = "each" if n == evidence.n_requests else f"{n:,} of them"
    return f"{requests}, {those} below another library's span, which is not in the file"


def _is_complete(evidence: Evidence) -> bool:
    """Whether nothing is missing: neither spans that are told of, nor lines or fields that were not read."""
    is_of_a_file = [warning.startswith(evidence.files) for warning in evidence.warnings]
    return not any(_incomplete(evidence)) and not any(is_of_a_file)


def _incomplete(evidence: Evidence) -> Iterator[str]:
    if n := evidence.n_unended_spans:
        yield f"{counted(n, 'span')} had not ended when the program did: calls and times below lack them"
    if n := evidence.n_dropped_spans - evidence.n_unended_spans:
        yield f"{counted(n, 'span')} lost by the traced program: calls and times below are too low"
    for n, fault in _partial(evidence):
        yield f"{counted(n, 'partial trace')} (the root {fault}): counted per stage, in no request figure"
    if n := evidence.n_orphan_spans:
        yield f"{counted(n, 'orphaned span')}: the parent is not in the file"
    if n := evidence.n_unfinished_spans:
        yield f"{counted(n, 'unfinished span')} (no end): counted, in no percentile"
    if n := evidence.n_invalid_spans:
        yield f"{counted(n, 'invalid span')} (impossible id or time): counted, in no percentile"
    if evidence.is_sampled:
        ratio = evidence.sample_ratio
        about = "about " if evidence.is_sample_ratio_estimated else ""
        share = "a part" if ratio is None else about + figures.percent(ratio)
        yield f"sampled: {share} of the requests were traced, counts below are of those"


def _partial(evidence: Evidence) -> Iterator[tuple[int, str]]:
    n_unfinished, n_invalid = evidence.n_unfinished_roots, evidence.n_invalid_roots
    found = (
        (evidence.n_partial_traces - n_unfinished - n_invalid, MISSING),
        (n_unfinished, f"{UNFINISHED}: the program died or runs on, or the file was cut"),
        (n_invalid, INVALID),
    )
    return ((n, fault) for n, fault in found if n)


def _repaired(evidence: Evidence) -> Iterator[str]:
    if n := evidence.n_late_spans:
        yield f"{counted(n, 'late span')}: what lies after the parent's end is in no request's 100 %"
    if n := evidence.n_twin_spans:
        yield f"{counted(n, 'call')} written by two instrumentations, counted once (a guess)"
    if n := evidence.n_duplicate_spans:
        yield f"{counted(n, 'duplicated span')}: copies, counted once"
    if n := evidence.n_same_id_spans:
        yield f"{counted(n, 'span')} share an id with another that differs: all kept"
    if n := evidence.n_cycles_cut:
        yield f"{counted(n, 'loop')} of parents cut at the span that starts last"
    if n := evidence.n_engine_spans - evidence.n_engine_joined:
        yield f"{counted(n, 'engine span')} joined to no model call: their phases are in no figure"
    if n := evidence.n_engine_clipped:
        yield f"{counted(n, 'engine span')} longer than the client's own measure: cut to it"
