"""NeMo Agent Toolkit's intermediate steps, as its file exporter writes them: a line for each start and end.

A step is the pair of lines with one UUID; times are in seconds.  The attributes have the names that the
toolkit's own OpenTelemetry export gives them.  A step that was started and never ended is a span without an
end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import Documents, record_of
from hotspan.analysis.readers.fields import Fields
from hotspan.analysis.readers.items import Flaw, Item, RefusedSpan
from hotspan.tracer import semconv
from hotspan.tracer.record import AttributeValue, Event, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCOPE: Final = Scope("nat")
_ROOT: Final = "root"
_STEP: Final = "a step"
_TIME: Final = "event_timestamp"
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

    def __init__(self, line: int, start: Fields, parent: str | None, trace: str) -> None:
        self.line = line
        self.start = start
        self.parent = parent
        self.trace = trace  # UUID of the workflow's step
        self.events: dict[str, Event] = {}

    def note_chunk(self, payload: Fields) -> None:
        at_ns = payload.time(values.SECONDS, _TIME)
        if at_ns is None:
            return
        chunk = payload.inner("data").get("chunk")
        for name in (_CHUNK, _TOKEN) if chunk else (_CHUNK,):
            self.events.setdefault(name, Event(name, at_ns))


def read(documents: Documents) -> Iterator[Item]:
    """Yield the steps as they end, then those that did not."""
    steps, flaws = _Steps(), list[str]()
    for line, document in documents:
        step = Fields(document, flaws.append, _STEP)
        payload = step.inner("payload")
        uuid, event = payload.text("UUID"), payload.text("event_type")
        if ids.of_uuid(uuid) is None:
            yield RefusedSpan(f"a step has no usable UUID ({values.shown(payload.get('UUID'))})", line)
        elif event.endswith(_START):
            steps.start(uuid, line, payload, _parent(step))
        elif event.endswith(_END):
            yield _ended(steps.end(uuid), payload, line)
        elif uuid in steps.open:
            steps.open[uuid].note_chunk(payload)
        yield from (Flaw(flaw, line) for flaw in flaws)
        flaws.clear()
    for begun in steps.open.values():
        yield _ended(begun, Fields({}, flaws.append), begun.line)


def _parent(step: Fields) -> str | None:
    """Return the id of the step above, as its span has it; `None` for the outermost."""
    return None if step.get("parent_id") == _ROOT else step.parent("parent_id", read=ids.of_uuid)


class _Steps:
    """The steps of the workflows that have not ended."""

    def __init__(self) -> None:
        self.open: dict[str, _Step] = {}
        self._trace_of: dict[str, str] = {}  # span of a step -> its workflow's step
        self._steps_of: dict[str, list[str]] = {}

    def start(self, uuid: str, line: int, payload: Fields, parent: str | None) -> None:
        """Begin a step; of the workflow of its parent, which may have ended, or of one of its own."""
        trace = self._trace_of.get(parent or "", uuid)
        self._trace_of[ids.of_uuid(uuid) or ""] = trace
        self._steps_of.setdefault(trace, []).append(uuid)
        self.open[uuid] = _Step(line, payload, parent, trace)

    def end(self, uuid: str) -> _Step | None:
        """End a step, and forget a workflow with its own."""
        for ended in self._steps_of.pop(uuid, ()):
            self._trace_of.pop(ids.of_uuid(ended) or "", None)
        return self.open.pop(uuid, None)


def _ended(step: _Step | None, payload: Fields, line: int) -> Item:
    if step is None:
        return RefusedSpan(f"step {values.shown(payload.get('name'))} ends here and starts nowhere", line)
    found = record_of(_record, step, payload)
    return found._replace(line=step.line) if isinstance(found, RefusedSpan) else found


def _record(step: _Step, end: Fields) -> SpanRecord:
    name, uuid = step.start.text("name"), step.start.text("UUID")
    trace_id, span_id = values.trace_and_span_id(step.trace, ids.of_uuid(uuid), name)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=step.parent,
        name=name,
        start_ns=step.start.start(values.SECONDS, _TIME),
        end_ns=end.time(values.SECONDS, _TIME),
        attributes=_attributes(step.start, end),
        kind="unspecified",
        events=tuple(step.events.values()),
        scope=_SCOPE,
    )


def _attributes(start: Fields, end: Fields) -> dict[str, AttributeValue]:
    kind, name = start.text("event_type").removesuffix(_START), start.text("name")
    found: dict[str, AttributeValue] = {semconv.NAT_KIND: kind, semconv.NAT_SUBSPAN: name}
    if kind == "LLM":
        found[semconv.OPENINFERENCE_MODEL] = name
    usage = end.inner("usage_info").inner("token_usage")
    for key, field in _USAGE:
        if count := usage.get(field):
            found[key] = values.attribute(count)
    return found
