"""OTLP/JSON documents to `SpanRecord`s, as the protocol has it and as writers bend it.

Ids are hex or base64, enums numbers or names, 64-bit integers strings or numbers, keys camelCase or
snake_case, the outer list `resourceSpans` or `batches`.  The usual form is decoded by type, only the fields
that are needed; a document that does not fit is decoded again, span by span and field by
field, so that what is bad costs itself only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final

import msgspec

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.items import Flaw, Item, LostNote, RefusedSpan
from hotspan.analysis.readers.otlp_documents import (
    Count,
    Integer,
    JsonAttributed,
    JsonEvent,
    JsonLink,
    JsonResourceSpans,
    JsonSpan,
    LooseJsonResourceSpans,
    LooseJsonSpan,
    decode_attributed,
    decode_body,
    decode_export,
    decode_loosely,
    decode_span,
    wrapped,
)
from hotspan.analysis.readers.otlp_salvage import elements, salvage
from hotspan.analysis.readers.otlp_values import KnownAttributes, attributes_of
from hotspan.tracer.record import (
    KINDS,
    STATUSES,
    Attributes,
    Event,
    Kind,
    Link,
    Resource,
    Scope,
    SpanRecord,
    Status,
)

# Enums by number, by number in a string, and by name.
_KINDS: Final[dict[int | str, Kind]] = {
    spelling: kind
    for number, kind in enumerate(KINDS)
    for spelling in (number, str(number), f"SPAN_KIND_{kind.upper()}")
}
_STATUSES: Final[dict[int | str, Status]] = {
    spelling: status
    for number, status in enumerate(STATUSES)
    for spelling in (number, str(number), f"STATUS_CODE_{status.upper()}")
}


_Decoded = JsonSpan | LooseJsonSpan


class Decoder:
    """Decodes documents; keeps what documents of one file share (resources, scopes, attributes)."""

    def __init__(self) -> None:
        self._resources: dict[tuple[bytes, str | None], Resource] = {}
        self._scopes: dict[tuple[bytes, str | None], Scope] = {}
        self._attributes = KnownAttributes()
        self._flaws: list[str] = []  # of the document that is being read

    def decode(self, document: bytes) -> Iterator[Item]:
        """Yield what one OTLP/JSON document holds.

        Raises:
            msgspec.DecodeError: It is not JSON, or not OTLP's outer structure.
        """
        return iter(self.items(document))

    def items(self, document: bytes) -> list[Item]:
        """Return what one OTLP/JSON document holds.

        Raises:
            msgspec.DecodeError: It is not JSON, or not OTLP's outer structure.
        """
        if b'"resource_spans"' in document:
            document = msgspec.json.encode(_camel(msgspec.json.decode(document)))
        exports: Any
        try:
            exports = decode_export(document)
        except msgspec.ValidationError:
            exports = decode_loosely(document)
        found: list[Item] = []
        self._flaws.clear()
        for export in exports if isinstance(exports, list) else [exports]:
            for group in (*(export.resource_spans or ()), *(export.batches or ())):
                self._read_group(group, found)
        found.extend(map(Flaw, self._flaws))
        if not found and (inner := wrapped(document)):
            return self.items(inner)
        return found

    def owners(self, frame: Sequence[str]) -> list[tuple[Resource, Scope]]:
        """Return whose the spans of a document are, list by list; none if in doubt.

        Args:
            frame: The text around the lists' spans, one piece more than there are lists.
        """
        self._flaws.clear()
        # A span for those of each list shows that they are where spans belong.
        stand_ins = [f'{{"spanId":"{number}"}}' for number in range(len(frame) - 1)]
        document = "".join(chain.from_iterable(zip_longest(frame, stand_ins, fillvalue="")))
        try:
            export: Any = decode_export(document)
        except (ValueError, RecursionError):
            return []
        groups = [] if isinstance(export, list) or export.batches else export.resource_spans or []
        found, seen = [], []
        for group in groups:
            resource = self._resource(bytes(group.resource), group.schema_url)
            for scoped in group.scope_spans or ():
                found.append((resource, self._scope(bytes(scoped.scope), scoped.schema_url)))
                seen.append([span.span_id for span in scoped.spans or ()])
        if seen != [[str(number)] for number in range(len(stand_ins))] or self._flaws:
            return []
        return [] if any(not group.scope_spans for group in groups) else found

    def body(self, text: str, resource: Resource, scope: Scope) -> SpanRecord | None:
        """Return a span without ids and times from the rest of its object; `None` if in doubt."""
        self._flaws.clear()
        try:
            span = decode_body(text)
            if any((span.trace_id, span.span_id, span.parent_span_id)):
                return None
            if span.start_time_unix_nano or span.end_time_unix_nano:
                return None
            found = self._made(("", "", None), span, resource, scope)
        except (ValueError, RecursionError):
            return None
        return None if self._flaws else found

    def _read_group(self, group: JsonResourceSpans | LooseJsonResourceSpans, found: list[Item]) -> None:
        resource = self._resource(bytes(group.resource), group.schema_url)
        n_before = len(found)
        for scoped in (*(group.scope_spans or ()), *(group.instrumentation_library_spans or ())):
            scope = self._scope(bytes(scoped.scope), scoped.schema_url)
            found.extend([self._span(span, resource, scope) for span in scoped.spans or ()])
        if len(found) == n_before:
            found.append(LostNote(resource))

    def _resource(self, raw: bytes, schema_url: str | None) -> Resource:
        found = self._resources.get((raw, schema_url))
        if found is None:
            found = Resource(self._read(_attributed(raw).attributes), schema_url or "")
            self._resources[raw, schema_url] = found
        return found

    def _scope(self, raw: bytes, schema_url: str | None) -> Scope:
        found = self._scopes.get((raw, schema_url))
        if found is None:
            scope = _attributed(raw)
            attributes = self._read(scope.attributes)
            found = Scope(scope.name or "", scope.version or "", attributes, schema_url or "")
            self._scopes[raw, schema_url] = found
        return found

    def _read(self, raw: msgspec.Raw) -> Attributes:
        try:
            return self._attributes.read(bytes(raw))
        except ValueError:
            pairs = elements(raw, lambda pair: attributes_of(b"[%b]" % bytes(pair)), "attributes", self._say)
            return {key: value for pair in pairs for key, value in pair.items()}

    def _say(self, flaw: str) -> None:
        self._flaws.append(flaw)

    def _span(self, span: _Decoded | msgspec.Raw, resource: Resource, scope: Scope) -> Item:
        try:
            return self._record(span if isinstance(span, JsonSpan) else self._fields(span), resource, scope)
        except ValueError as exc:  # msgspec's errors are ValueErrors too
            return RefusedSpan(str(exc))

    def _fields(self, span: msgspec.Raw) -> LooseJsonSpan:
        try:
            return decode_span(span)
        except msgspec.ValidationError:
            return salvage(span, LooseJsonSpan, self._say)

    def _record(self, span: _Decoded, resource: Resource, scope: Scope) -> SpanRecord:
        trace_id, span_id = ids.trace_id(span.trace_id), ids.span_id(span.span_id)
        if trace_id is None or span_id is None:
            msg = f"span {span.name!r} has no usable id (trace {span.trace_id!r}, span {span.span_id!r})"
            raise ValueError(msg)
        parent = span.parent_span_id
        parent_id = (ids.span_id(parent) or self._parent(parent)) if parent else None
        return self._made((trace_id, span_id, parent_id), span, resource, scope)

    def _made(
        self, span_ids: tuple[str, str, str | None], span: _Decoded, resource: Resource, scope: Scope
    ) -> SpanRecord:
        status = span.status
        # By position and without the class's own checks: once for every span of a file.
        return SpanRecord._make((
            *span_ids,
            span.name,
            _time_ns(span.start_time_unix_nano),
            _time_ns(span.end_time_unix_nano) or None,
            self._read(span.attributes),
            _KINDS.get(span.kind) or self._kind(span.kind),
            (_STATUSES.get(status.code) or self._status(status.code)) if status else STATUSES[0],
            status.message if status else "",
            self._events(span.events) if span.events else (),
            tuple([self._link(link) for link in span.links]) if span.links else (),
            resource,
            scope,
            span.trace_state,
            _count(span.flags) if span.flags else 0,
            _count(span.dropped_attributes_count) if span.dropped_attributes_count else 0,
            _count(span.dropped_events_count) if span.dropped_events_count else 0,
            _count(span.dropped_links_count) if span.dropped_links_count else 0,
        ))  # fmt: skip

    def _parent(self, text: str) -> str | None:
        found = ids.parent_id(text)
        if found is not None:
            self._say(f"the parent's id {values.shown(text)} of a span is none, so its parent is missing")
        return found

    def _kind(self, value: int | str) -> Kind:
        kind: Kind = self._spelled("kind", value, KINDS)
        return kind

    def _status(self, value: int | str) -> Status:
        status: Status = self._spelled("status", value, STATUSES)
        return status

    def _spelled(self, what: str, value: int | str, members: Sequence[Any]) -> Any:
        found = values.member(value, members)
        if found is None and value != "":
            self._say(f"the {what} {values.shown(value)} of a span is not known")
        return found or members[0]

    def _events(self, events: list[JsonEvent]) -> tuple[Event, ...]:
        found = []
        for event in events:
            try:
                found.append(self._event(event))
            except ValueError:
                self._say(f"the time {values.shown(event.time_unix_nano)} of an event is none")
        return tuple(found)

    def _event(self, event: JsonEvent) -> Event:
        time_ns, n_dropped = _time_ns(event.time_unix_nano), _count(event.dropped_attributes_count)
        return Event(event.name, time_ns, self._read(event.attributes), n_dropped)

    def _link(self, link: JsonLink) -> Link:
        trace_id, span_id = ids.trace_id(link.trace_id), ids.span_id(link.span_id)
        return Link(trace_id or "", span_id or "", self._read(link.attributes), link.trace_state)


def _attributed(raw: bytes) -> JsonAttributed:
    return JsonAttributed() if raw == b"null" else decode_attributed(raw)


def _time_ns(value: Integer | None) -> int:
    if type(value) is int:
        return value
    try:
        return int(value or 0)
    except (ValueError, OverflowError):
        pass
    try:  # "1.79e18", which JSON's own numbers may be, too
        return int(float(value or 0))
    except (ValueError, OverflowError):
        pass
    try:  # in ISO 8601, as whoever made the document with a library for JSON may have it
        return values.time_ns(value, values.NANOSECONDS) or 0
    except ValueError:
        msg = f"the time {values.shown(value)} of a span is none"
        raise ValueError(msg) from None


def _count(value: Count) -> int:
    # Unsigned in the protocol; some writers put -1 where they do not know.
    try:
        return max(int(value or 0), 0)
    except ValueError:
        return 0


def _camel(document: Any) -> Any:
    # Only the protocol's own keys: attribute keys are values in OTLP and stay what they are.
    if isinstance(document, list):
        return [_camel(item) for item in document]
    if isinstance(document, Mapping):
        return {_camel_key(key): _camel(value) for key, value in document.items()}
    return document


def _camel_key(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
