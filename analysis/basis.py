"""What a report rests on, as its first part says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the figures rest on: what was read, what was missing, and what was repaired."""

    files: tuple[str, ...] = ()
    n_spans: int = 0  # distinct valid and invalid spans, after duplicates were dropped
    n_traces: int = 0
    n_requests: int = 0  # complete requests: what the request figures are about
    n_partial_traces: int = 0  # traces whose root is not in the files, or cannot be measured
    n_unfinished_roots: int = 0  # of these, whose root is in the files and never ended
    n_invalid_roots: int = 0  # of these, whose root is in the files and has an impossible time
    n_unstaged_traces: int = 0  # without any stage (an engine's own start-up, …): no requests
    n_dropped_spans: int = 0  # spans that the writer says it lost
    n_unended_spans: int = 0  # of these, spans that had not ended when their program did
    n_duplicate_spans: int = 0  # copies, dropped
    n_same_id_spans: int = 0  # different spans under one id, kept
    n_orphan_spans: int = 0  # spans whose parent is not in the files, entries apart
    n_entry_requests: int = 0  # requests that begin below another library's span, which is not in the files
    n_twin_spans: int = 0  # calls written by two instrumentations, one of them left out
    n_late_spans: int = 0  # spans that reach beyond their parent's end
    n_early_spans: int = 0  # spans that start before their parent
    n_invalid_spans: int = 0  # spans that end before they start, or have no usable id or time
    n_unfinished_spans: int = 0  # spans without an end
    n_other_lines: int = 0  # lines that a program printed between the spans on its console, passed over
    n_cycles_cut: int = 0  # self-parents and loops of parents
    n_engine_spans: int = 0  # spans that an inference server wrote for a model call
    n_engine_joined: int = 0  # of these, joined to the call they belong to
    n_engine_clipped: int = 0  # of these, with an account longer than the client's own measure: cut to it
    is_sampled: bool = False
    sample_ratio: float | None = None  # share of the requests that was traced; None: nobody says
    is_sample_ratio_estimated: bool = False  # chosen at several ratios: from what each stands for
    overhead_per_span_ns: float | None = None  # the writer's own measure of one span, on the traced thread
    overhead_per_chunk_ns: float | None = None  # the same of one item of a traced stream
    overhead_ratio: float | None = None  # these times the spans and the chunks, over the time of the requests
    services: tuple[str, ...] = ()  # service.name of every writer, sorted
    engines: tuple[str, ...] = ()  # vllm, transformers, …: what answered the model calls, sorted
    models: tuple[str, ...] = ()  # names of the models that answered, sorted
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "files": list(self.files),
            "spans": self.n_spans,
            "traces": self.n_traces,
            "requests": self.n_requests,
            "partial_traces": self.n_partial_traces,
            "unfinished_roots": self.n_unfinished_roots,
            "invalid_roots": self.n_invalid_roots,
            "unstaged_traces": self.n_unstaged_traces,
            "dropped_spans": self.n_dropped_spans,
            "unended_spans": self.n_unended_spans,
            "duplicate_spans": self.n_duplicate_spans,
            "same_id_spans": self.n_same_id_spans,
            "orphan_spans": self.n_orphan_spans,
            "entry_requests": self.n_entry_requests,
            "twin_spans": self.n_twin_spans,
            "late_spans": self.n_late_spans,
            "early_spans": self.n_early_spans,
            "invalid_spans": self.n_invalid_spans,
            "unfinished_spans": self.n_unfinished_spans,
            "other_lines": self.n_other_lines,
            "cycles_cut": self.n_cycles_cut,
            "engine_spans": self.n_engine_spans,
            "engine_spans_joined": self.n_engine_joined,
            "engine_spans_clipped": self.n_engine_clipped,
            "sampled": self.is_sampled,
            "sample_ratio": self.sample_ratio,
            "sample_ratio_estimated": self.is_sample_ratio_estimated,
            "overhead": {
                "per_span_us": _us(self.overhead_per_span_ns),
                "per_chunk_us": _us(self.overhead_per_chunk_ns),
                "share_ratio": self.overhead_ratio,
            },
            "services": list(self.services),
            "engines": list(self.engines),
            "models": list(self.models),
            "warnings": list(self.warnings),
        }


def _us(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else duration_ns / 1000
