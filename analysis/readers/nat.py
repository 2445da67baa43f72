"""NeMo Agent Toolkit's intermediate steps, as its file exporter writes them: a line for each start and end.

A step is the pair of lines with one UUID; times are in seconds.  The attributes have the names that the
toolkit's own OpenTelemetry export gives them.  A step that was started and never ended is a span without an
end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import Documents, record_of
from hotspan.analysis.readers.items import Item, RefusedSpan
from hotspan.tracer import semconv
from hotspan.tracer.record import AttributeValue, Event, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SCOPE: Final = Scope("nat")
_ROOT: Final = "root"
_START, _END = "_START", "_END"
_CHUNK, _TOKEN = "new_token", "first_token"
_USAGE: Final = (
    (semconv.OPENINFERENCE_INPUT_TOKENS, "prompt_tokens"),
    (semconv.OPENINFERENCE_OUTPUT_TOKENS, "completion_tokens"),
    (semconv.OPENINFERENCE_CACHED_TOKENS, "cached_tokens"),
    (semconv.OPENINFERENCE_REASONING_TOKENS, "reasoning_tokens"),
)


class _Step:
    """A step that was started: its first line, and what came until its end."""

    __slots__ = ("events", "line", "parent", "start", "trace")

    def __init__(self, line: int, start: Mapping[str, Any], parent: str, trace: str) -> None:
        self.line = line
        self.start = start
        self.parent = parent
        self.trace = trace  # UUID of the workflow's step
        self.events: dict[str, Event] = {}

    def note_chunk(self, payload: Mapping[str, Any]) -> None:
        chunk = values.mapping(payload.get("data")).get("chunk")
        for name in (_CHUNK, _TOKEN) if chunk else (_CHUNK,):
            found = values.event(name, payload.get("event_timestamp"), values.SECONDS, None)
            if found is not None:
                self.events.setdefault(name, found)


def read(documents: Documents) -> Iterator[Item]:
    """Yield the steps as they end, then those that did not."""
    steps = _Steps()
    for line, document in documents:
        step = values.mapping(document)
        payload = values.mapping(step.get("payload"))
        uuid, event = values.text(payload.get("UUID")), values.text(payload.get("event_type"))
        if ids.of_uuid(uuid) is None:
            yield RefusedSpan(f"a step has no usable UUID ({values.shown(payload.get('UUID'))})", line)
        elif event.endswith(_START):
            steps.start(uuid, line, payload, values.text(step.get("parent_id")))
        elif event.endswith(_END):
            yield _ended(steps.end(uuid), payload, line)
        elif uuid in steps.open:
            steps.open[uuid].note_chunk(payload)
    for begun in steps.open.values():
        yield _ended(begun, {}, begun.line)


class _Steps:
    """The steps of the workflows that have not ended."""

    def __init__(self) -> None:
        self.open: dict[str, _Step] = {}
        self._trace_of: dict[str, str] = {}  # step -> its workflow's
        self._steps_of: dict[str, list[str]] = {}

    def start(self, uuid: str, line: int, payload: Mapping[str, Any], parent: str) -> None:
        """Begin a step; of the workflow of its parent, which may have ended, or of one of its own."""
        trace = self._trace_of.get(parent, uuid)
        self._trace_of[uuid] = trace
        self._steps_of.setdefault(trace, []).append(uuid)
        self.open[uuid] = _Step(line, payload, parent, trace)

    def end(self, uuid: str) -> _Step | None:
        """End a step, and forget a workflow with its own."""
        for ended in self._steps_of.pop(uuid, ()):
            self._trace_of.pop(ended, None)
        return self.open.pop(uuid, None)


def _ended(step: _Step | None, payload: Mapping[str, Any], line: int) -> Item:
    if step is None:
        return RefusedSpan(f"step {values.shown(payload.get('name'))} ends here and starts nowhere", line)
    found = record_of(_record, step, payload)
    return found._replace(line=step.line) if isinstance(found, RefusedSpan) else found


def _record(step: _Step, end: Mapping[str, Any]) -> SpanRecord:
    name, uuid = step.start.get("name"), values.text(step.start.get("UUID"))
    trace_id, span_id = values.trace_and_span_id(step.trace, ids.of_uuid(uuid), name)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=None if step.parent == _ROOT else ids.of_uuid(step.parent),
        name=values.text(name),
        start_ns=values.start_ns(step.start.get("event_timestamp"), values.SECONDS),
        end_ns=values.time_ns(end.get("event_timestamp"), values.SECONDS),
        attributes=_attributes(step.start, end),
        kind="unspecified",
        events=tuple(step.events.values()),
        scope=_SCOPE,
    )


def _attributes(start: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, AttributeValue]:
    kind = values.text(start.get("event_type")).removesuffix(_START)
    found: dict[str, AttributeValue] = {
        semconv.NAT_KIND: kind,
        semconv.NAT_SUBSPAN: values.text(start.get("name")),
    }
    if kind == "LLM":
        found[semconv.OPENINFERENCE_MODEL] = values.text(start.get("name"))
    usage = values.mapping(values.mapping(end.get("usage_info")).get("token_usage"))
    for key, field in _USAGE:
        if usage.get(field):
            found[key] = values.attribute(usage[field])
    return found
