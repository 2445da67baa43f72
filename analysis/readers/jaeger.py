"""Jaeger's JSON: an answer of its API, what its user interface saves, a bare trace, or a span by itself.

Times are in microseconds.  The parent is the reference `CHILD_OF`; `FOLLOWS_FROM` is a link.  What
OpenTelemetry has as a field of its own (kind, status, scope) is a tag in Jaeger: it becomes the field again.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.analysis.readers.fields import Fields
from hotspan.tracer import semconv
from hotspan.tracer.record import (
    AttributeValue,
    Event,
    Link,
    Resource,
    Scope,
    SpanRecord,
    Status,
)

if TYPE_CHECKING:
    from hotspan.analysis.readers.fields import Say
    from hotspan.analysis.readers.items import RefusedSpan

_CHILD_OF: Final = "CHILD_OF"
_REFERENCES: Final = (_CHILD_OF, "FOLLOWS_FROM")
_PROCESS: Final = "a process"
_NO_RESOURCE: Final = Resource()
_SCOPE_TAGS: Final = (
    (semconv.JAEGER_SCOPE_NAME, semconv.JAEGER_SCOPE_NAME_OLD),
    (semconv.JAEGER_SCOPE_VERSION, semconv.JAEGER_SCOPE_VERSION_OLD),
)


def _decode(document: Any, say: Say) -> Iterator[SpanRecord | RefusedSpan]:
    trace = Fields(document, say, "a trace")
    if isinstance(trace.get("data"), Mapping):  # the user interface's own state
        trace = trace.inner("data")
    processes = trace.inner("processes")
    resources = {key: _resource(processes.inner(key, of=_PROCESS)) for key, _ in processes.items()}
    scopes: dict[tuple[str, str], Scope] = {}
    for span in trace.spans("spans") if trace.has("spans") else (Fields(document, say),):
        yield record_of(_record, span, trace.get("traceID"), resources, scopes)


read = each(_decode)


def _resource(process: Fields) -> Resource:
    name = {semconv.SERVICE_NAME: service} if (service := process.text("serviceName")) else {}
    return Resource({**name, **_tags(process, "tags")})


def _record(
    span: Fields,
    trace: object,
    resources: Mapping[str, Resource],
    scopes: dict[tuple[str, str], Scope],
) -> SpanRecord:
    name = span.get("operationName")
    trace_id, span_id = values.trace_and_span_id(span.get("traceID") or trace, span.get("spanID"), name)
    start_ns = span.start(values.MICROSECONDS, "startTime")
    duration_ns = span.time(values.MICROSECONDS, "duration")
    tags = _tags(span, "tags")
    parent_id, links = _references(span, trace_id, span_id)
    status, message = _status(span, tags)
    process = span.inner("process", of=_PROCESS)
    resource = _resource(process) if span.has("process") else resources.get(span.text("processID"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=span.text("operationName"),
        start_ns=start_ns,
        end_ns=None if duration_ns is None else start_ns + duration_ns,
        kind=span.inside({"kind": tags.pop(semconv.JAEGER_KIND, None)}).kind("kind"),
        status=status,
        status_message=message,
        scope=_scope(tags, scopes),
        trace_state=values.text(tags.pop(semconv.JAEGER_TRACE_STATE, None)),
        attributes=tags,
        events=tuple(_events(span)),
        links=links,
        resource=resource or _NO_RESOURCE,
        flags=values.count(span.get("flags")),
    )


def _references(span: Fields, trace_id: str, span_id: str) -> tuple[str | None, tuple[Link, ...]]:
    """Return the parent and the links; of several parents the first, if it can be not the span itself."""
    parent = span.parent("parentSpanID")  # an older spelling
    links: list[Link] = []
    for reference in span.objects("references", of="a reference"):
        link = Link(ids.trace_id(reference.text("traceID")) or "", reference.parent("spanID") or "")
        if not link.span_id:
            continue
        kind = reference.text("refType")
        if kind not in _REFERENCES:
            reference.bad("the type")
        is_parent = kind == _CHILD_OF and link.trace_id in ("", trace_id)
        if is_parent and parent in (None, span_id):
            parent = link.span_id
        elif link.span_id not in (parent, span_id):
            links.append(link)
    return parent, tuple(links)


def _status(span: Fields, tags: dict[str, AttributeValue]) -> tuple[Status, str]:
    said = span.inside({"status": tags.pop(semconv.JAEGER_STATUS, None)}).status("status")
    message = values.text(tags.pop(semconv.JAEGER_STATUS_MESSAGE, None))
    error = tags.get(semconv.JAEGER_ERROR)
    if error in (True, False, "true", "false"):
        del tags[semconv.JAEGER_ERROR]
    return ("error" if error in (True, "true") else said), message


def _scope(tags: dict[str, AttributeValue], scopes: dict[tuple[str, str], Scope]) -> Scope:
    tags.pop(semconv.JAEGER_FORMAT, None)
    name, version = (_first_of(tags, keys) for keys in _SCOPE_TAGS)
    return scopes.setdefault((name, version), Scope(name, version))


def _first_of(tags: dict[str, AttributeValue], keys: tuple[str, ...]) -> str:
    found = [values.text(tags.pop(key, None)) for key in keys]
    return next(filter(None, found), "")


def _events(span: Fields) -> Iterator[Event]:
    for log in span.objects("logs", of="a log"):
        at_ns = log.time(values.MICROSECONDS, "timestamp")
        fields = _tags(log, "fields")
        name = fields.pop("event", "log")
        if at_ns is not None:
            yield Event(values.text(name), at_ns, fields)


def _tags(found: Fields, key: str) -> dict[str, AttributeValue]:
    return {
        values.text(tag.get("key")): _value(tag.get("type"), tag.get("value")) for tag in found.mappings(key)
    }


def _value(kind: object, value: object) -> AttributeValue:
    """Return a tag's value as its type has it; numbers may come as texts."""
    convert = _TYPES.get(kind) if isinstance(kind, str) else None
    if convert is None or not isinstance(value, str | int | float):
        return values.attribute(value)
    try:
        return convert(value)
    except (ValueError, OverflowError):
        return value


_TYPES: Final[Mapping[str, Callable[[Any], AttributeValue]]] = {
    "int64": int,
    "float64": float,
    "bool": lambda value: value in (True, "true"),
    "binary": lambda value: base64.b64decode(value, validate=True) if isinstance(value, str) else value,
}
