"""One request laid out to be looked at: its spans in order, and its critical path through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hotspan.analysis.calls import NO_OWNER, Calls, attempts_of, calls_of
from hotspan.analysis.classify import outcome_of
from hotspan.analysis.copies import distinct
from hotspan.analysis.critical_path import Segment, critical_path, slacks
from hotspan.analysis.engine import EngineJoin, account_in_response
from hotspan.analysis.generation import ModelCall
from hotspan.analysis.model import PHASES
from hotspan.analysis.phases import phases_of
from hotspan.analysis.repair import is_valid, repair
from hotspan.analysis.tail import UNATTRIBUTED
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.analysis.unstaged import Beginning, beginning_of
from hotspan.tracer.semconv import ENVELOPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hotspan.tracer.record import SpanRecord, Trace


class PathSegment(NamedTuple):
    """A stretch of the critical path; offsets from the start of the request."""

    span_id: str
    name: str
    stage: str | None  # whose time it is: the nearest stage at or above the span
    start_ns: int
    end_ns: int


class Phase(NamedTuple):
    """A part of a model call's time."""

    name: str  # one of the phases of docs/definitions.md
    ns: int
    source: str  # where it was read


class ViewSpan(NamedTuple):
    """One span of the request, as measured; offsets from the start of the request."""

    span: SpanRecord
    stage: str | None  # the nearest stage at or above the span
    is_staged: bool  # whether that is the span itself
    outcome: str
    depth: int  # 0 for the root
    start_ns: int | None  # None for an inference server's span: its clock is its own
    end_ns: int | None
    path: tuple[tuple[int, int], ...] = ()  # where the critical path lies on the span itself
    is_engine: bool = False  # an inference server wrote it: its times are durations only
    phases: tuple[Phase, ...] = ()  # of a model call that succeeded, in order; they sum to its duration
    slack_ns: int | None = None  # by how much it could grow before it would lie on the critical path

    @property
    def path_ns(self) -> int:
        """Time on the critical path that is the span's own."""
        return sum(end - start for start, end in self.path)


@dataclass(frozen=True, slots=True)
class RequestView:
    """One request: what `hotspan show` renders."""

    trace_id: str
    name: str
    duration_ns: int
    outcome: str
    root_fault: str  # what is wrong with the true root, where this is a part of a request; else empty
    why: str  # how it was chosen: "the slowest of 50 requests"
    spans: tuple[ViewSpan, ...]  # depth first, siblings in order of start
    left_out: tuple[SpanRecord, ...]  # below the root, without a time that could be drawn
    path: tuple[PathSegment, ...]  # tiles the request: no gap, no overlap


@dataclass(frozen=True, slots=True)
class Root:
    """The root of a request, of a part of one whose true root cannot be had, or of spans without a stage."""

    trace: Trace
    tree: Tree
    index: int
    fault: str  # of the true root, where this is the root of a part of a request; else empty
    is_request: bool  # there is a stage at or below it
    begins: Beginning | None = None  # where that tells requests from others

    @property
    def duration_ns(self) -> int:
        """Duration of the request."""
        return self.tree.duration_ns(self.index)


def roots_of(trace: Trace) -> Iterator[Root]:
    """Yield the roots in a trace, partial ones last."""
    tree, _ = repair(trace)
    calls = calls_of(tree)
    for index in (*tree.roots, *tree.partial_roots):
        is_request = calls.has_stages[index]
        tells = calls.stages[index] in ENVELOPES if is_request else not tree.engine_spans
        begins = beginning_of(tree.spans[index]) if tells else None
        yield Root(trace, tree, index, tree.partial_roots.get(index, ""), is_request, begins)


def view(root: Root, why: str) -> RequestView:
    """Return a request as it is shown."""
    tree, span = root.tree, root.tree.spans[root.index]
    calls = calls_of(tree)
    segments = critical_path(tree, root.index)
    return RequestView(
        trace_id=tree.trace_id,
        name=span.name,
        duration_ns=root.duration_ns,
        outcome=outcome_of(span),
        root_fault=root.fault,
        why=why,
        spans=tuple(_spans(tree, calls, root.index, segments)),
        left_out=tuple(_left_out(root.trace, span)),
        path=tuple(_path(tree, calls, root.index, segments)),
    )


def _left_out(trace: Trace, root: SpanRecord) -> Iterator[SpanRecord]:
    """Yield the spans below the root that have no end, or an impossible one."""
    children: dict[str, list[SpanRecord]] = {}
    for span in distinct(trace.spans):
        if span.parent_id is not None:
            children.setdefault(span.parent_id, []).append(span)
    waiting = children.pop(root.span_id, [])
    for span in waiting:  # grows while it is read; of a loop every span is taken once
        if not is_valid(span):
            yield span
        waiting.extend(children.pop(span.span_id, ()))


def _path(tree: Tree, calls: Calls, root: int, segments: Sequence[Segment]) -> Iterator[PathSegment]:
    zero = tree.starts[root]
    for index, start, end in segments:
        span = tree.spans[index]
        yield PathSegment(span.span_id, span.name, _stage(calls, index), start - zero, end - zero)


def _spans(tree: Tree, calls: Calls, root: int, segments: Sequence[Segment]) -> Iterator[ViewSpan]:
    zero = tree.starts[root]
    on_path = _path_by_span(segments, zero)
    engines, phases, slack = _engines_by_anchor(tree), _phases_by_call(tree, calls), slacks(tree, root)
    waiting = [(root, 0)]
    while waiting:
        index, depth = waiting.pop()
        span = tree.spans[index]
        start, end = span.start_ns - zero, (span.end_ns or span.start_ns) - zero
        stage, is_staged = _stage(calls, index), calls.owners[index] == index
        found = ViewSpan(span, stage, is_staged, outcome_of(span), depth, start, end)
        yield found._replace(
            path=tuple(on_path.get(index, ())), phases=phases.get(index, ()), slack_ns=slack.get(index)
        )
        for engine in engines.get(index, ()):
            yield ViewSpan(engine, stage, False, outcome_of(engine), depth + 1, None, None, is_engine=True)
        children = sorted(tree.children[index], key=lambda child: tree.spans[child].start_ns, reverse=True)
        waiting.extend((child, depth + 1) for child in children)


def _phases_by_call(tree: Tree, calls: Calls) -> Mapping[int, tuple[Phase, ...]]:
    """Return the phases of each model call that succeeded, by its outermost span; none where none are."""
    attempts = attempts_of(tree, calls)
    model_calls = {
        top: ModelCall(tree.spans[top], [tree.spans[index] for index in inner])
        for top, inner in attempts.items()
    }
    EngineJoin().add(tree, calls, attempts, model_calls)
    return {top: _phases(call) for top, call in model_calls.items() if call.outcome == "ok"}


def _phases(call: ModelCall) -> tuple[Phase, ...]:
    engine = call.engine
    if engine is None or engine.is_empty:
        engine = account_in_response([call.last, call.span]) or engine
    found = phases_of(call.span, call.attempts, engine)
    known = [
        Phase(name, found.ns[name], found.sources.get(name, "")) for name in PHASES if found.ns.get(name)
    ]
    return () if [phase.name for phase in known] == [UNATTRIBUTED] else tuple(known)


def _stage(calls: Calls, index: int) -> str | None:
    owner = calls.owners[index]
    return None if owner == NO_OWNER else calls.stages[owner]


def _path_by_span(segments: Sequence[Segment], zero: int) -> Mapping[int, list[tuple[int, int]]]:
    on_path: dict[int, list[tuple[int, int]]] = {}
    for index, start, end in segments:
        on_path.setdefault(index, []).append((start - zero, end - zero))
    return on_path


def _engines_by_anchor(tree: Tree) -> Mapping[int, list[SpanRecord]]:
    engines: dict[int, list[SpanRecord]] = {}
    for engine in tree.engine_spans:
        if engine.anchor != NO_PARENT:
            engines.setdefault(engine.anchor, []).append(engine.span)
    return engines
