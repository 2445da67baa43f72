"""What the spans do not say, and a reader of the report would take for said."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hotspan.analysis.calls import NO_OWNER
from hotspan.analysis.classify import outcome_of
from hotspan.analysis.dialects import makes_no_call, read
from hotspan.analysis.dialects.failures import has_exception
from hotspan.analysis.dialects.first_token import is_unbelievable
from hotspan.analysis.dialects.transport import endpoint_stage
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.calls import Calls
    from hotspan.analysis.tree import Tree
    from hotspan.tracer.record import SpanRecord

_MOST_NAMES: Final = 4
_MOST_LETTERS: Final = 30
_NUMBER: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # of a run, in its name: CrewAI's
_SEARCHES: Final = frozenset({semconv.RETRIEVAL, semconv.RERANK})
_MOST_TOKENS_PER_MS: Final = 5  # of one answer, by far
_NS_PER_MS: Final = 1_000_000
_FIRST: Final = frozenset({semconv.TTFB_NS, semconv.TTFT_NS, semconv.FIRST_CHUNK_NS})


@dataclass(slots=True)
class Gaps:
    """Counts guessed stages, agents and model calls over traces."""

    n_guessed: int = 0
    n_agents: int = 0
    n_idle_agents: int = 0  # below whose spans no model call lies
    n_model_spans: int = 0
    n_alone: int = 0  # traces that are one model call
    n_hiding: int = 0  # spans that calls were written onto which have no spans
    n_searches: int = 0  # traces that retrieve or rerank, and call no model
    n_too_fast: int = 0  # other writers' model calls with more tokens than their duration has room for
    n_unanswered: int = 0  # model spans that made no call, by what they do not say
    n_exceptions: int = 0  # other writers' calls that recorded one, and say no failure
    n_cut_short: int = 0  # model calls whose span ended before their first chunk
    n_bare: int = 0  # model calls of which nothing but an HTTP request is known
    n_unbelieved: int = 0  # model spans whose first token is said to have come at once, or after their end
    _names: dict[str, None] = field(default_factory=dict)  # of guessed spans, the first few

    def add(self, tree: Tree, calls: Calls) -> None:
        """Take in one trace."""
        self.add_stages(calls, 1)
        self.n_guessed += len(calls.guessed)
        self.n_unbelieved += sum(
            stage == semconv.GENERATION and _FIRST.isdisjoint(span.attributes) and is_unbelievable(span)
            for stage, span in zip(calls.stages, tree.spans, strict=True)
        )
        too_fast = {
            top
            for top, span in zip(calls.tops, tree.spans, strict=True)
            if top != NO_OWNER
            and calls.stages[top] == semconv.GENERATION
            and _is_too_fast(span, tree.spans[top])
        }
        self.n_too_fast += len(too_fast)
        self.n_unanswered += sum(
            stage is None and makes_no_call(span) and read(span).stage == semconv.GENERATION
            for stage, span in zip(calls.stages, tree.spans, strict=True)
        )
        self.n_exceptions += sum(
            bool(span.events) and calls.is_call(index) and _survived(span)
            for index, span in enumerate(tree.spans)
        )
        cut_short = {
            top
            for top, span in zip(calls.tops, tree.spans, strict=True)
            if semconv.CUT_SHORT in span.attributes
        }
        self.n_cut_short += len(cut_short)
        self.n_bare += sum(_is_bare(tree.spans[index]) for index in calls.guessed)
        self.n_hiding += sum(semconv.HIDDEN_CALLS in span.attributes for span in tree.spans)
        for index in calls.guessed:
            if len(self._names) < _MOST_NAMES:
                self._names[_NUMBER.sub("…", tree.spans[index].name)[:_MOST_LETTERS]] = None

    def add_stages(self, calls: Calls, n_traces: int) -> None:
        """Take in the stages of traces that have the same."""
        stages = [stage for index, stage in enumerate(calls.stages) if calls.is_call(index)]
        self.n_agents += stages.count(semconv.AGENT) * n_traces
        if semconv.AGENT in stages:
            self.n_idle_agents += _n_idle_agents(calls) * n_traces
        n_model_spans = calls.stages.count(semconv.GENERATION)
        self.n_model_spans += n_model_spans * n_traces
        self.n_alone += (stages == [semconv.GENERATION]) * n_traces
        self.n_searches += (not n_model_spans and not _SEARCHES.isdisjoint(stages)) * n_traces

    def warnings(self) -> Iterator[str]:
        """Yield what the report has to say before its figures."""
        if self.n_guessed:
            names = ", ".join(repr(name) for name in self._names)
            yield f"stages guessed from the name or address of a span: {self.n_guessed} ({names})"
        yield from self._of_calls()
        if self.n_hiding:
            yield (
                f"spans that a library wrote its model calls onto, without any for these: {self.n_hiding}; "
                "they are not counted, and their time is the span's"
            )
        fewer, more = sorted((self.n_alone, self.n_searches))
        if 0 < more <= 2 * fewer:
            yield (
                f"traces that are one model call and nothing else: {self.n_alone}, beside {self.n_searches} "
                "that retrieve and call no model: what one question did lies in several traces, which are a "
                "request each; put a span around it"
            )
        if self.n_idle_agents and self.n_model_spans:
            yield (
                f"agent runs in which no model call lies, out of {self.n_agents}: {self.n_idle_agents}; "
                "their spans ended before their calls or do not hold them: their durations are too short, or "
                "calls are missing"
            )
        if self.n_agents and not self.n_model_spans:
            yield (
                f"agent runs without a single model call: {self.n_agents}; nothing wrote spans of the calls, "
                "and their time is unattributed: instrument the model's client, too"
            )

    def _of_calls(self) -> Iterator[str]:
        """Yield what the spans of single calls leave out, or get wrong."""
        if self.n_unbelieved:
            yield (
                f"model calls whose first token came after 0 ms, or after their end, by what the spans say: "
                f"{self.n_unbelieved}; it is not believed, and they have none"
            )
        if self.n_too_fast:
            yield (
                f"model calls with more tokens than any model writes in their time: {self.n_too_fast}; their "
                "spans ended before the answer was read, and took longer, or it came from a cache"
            )
        if self.n_unanswered:
            yield (
                f"model spans that tell of no answer and of no failure: {self.n_unanswered}; "
                "they are not counted as calls"
            )
        if self.n_exceptions:
            yield (
                f"calls that recorded an exception and do not say that they failed: {self.n_exceptions}; "
                "they are counted as successes"
            )
        if self.n_cut_short:
            yield (
                f"model calls whose spans ended before their first chunk came: {self.n_cut_short}; they are "
                "counted until the last chunk that is known, or until the end of the span around them where "
                "nothing else follows there: what is missing is time of the spans around them"
            )
        if self.n_bare:
            yield (
                f"model calls known from their HTTP requests alone: {self.n_bare}; most clients end the span "
                "of a streamed answer with its headers, and such a call took longer than is counted"
            )


def _is_bare(span: SpanRecord) -> bool:
    """Return whether a guessed call is an HTTP client's span that got an answer and tells nothing of it."""
    return (
        span.kind == "client"
        and semconv.OUTPUT_TOKENS not in span.attributes
        and endpoint_stage(span) == semconv.GENERATION
        and outcome_of(span) == "ok"
    )


def _survived(span: SpanRecord) -> bool:
    """Return whether another writer's span recorded an exception, and says that all went well."""
    return span.scope.name != semconv.SCOPE_NAME and has_exception(span) and outcome_of(span) == "ok"


def _n_idle_agents(calls: Calls) -> int:
    inner = {child for children in calls.staged_children for child in children}
    order = [index for index, stage in enumerate(calls.stages) if stage is not None and index not in inner]
    for index in order:
        order.extend(calls.staged_children[index])
    holds = [stage == semconv.GENERATION for stage in calls.stages]
    for index in reversed(order):
        holds[index] = holds[index] or any(holds[child] for child in calls.staged_children[index])
    return sum(
        stage == semconv.AGENT and calls.is_call(index) and not holds[index]
        for index, stage in enumerate(calls.stages)
    )


def _is_too_fast(span: SpanRecord, call: SpanRecord) -> bool:
    """Return whether a span of a call tells more tokens than could come while the call ran."""
    tokens = span.attributes.get(semconv.OUTPUT_TOKENS)
    return (
        isinstance(tokens, int)
        and tokens * _NS_PER_MS > call.duration_ns * _MOST_TOKENS_PER_MS
        and span.scope.name != semconv.SCOPE_NAME
        and semconv.CUT_SHORT not in span.attributes
        and outcome_of(call) == "ok"
    )
