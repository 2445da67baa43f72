"""Spans as lines of OTLP/JSON, one `{"resourceSpans": […]}` object per line, as trace files hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from hotspan.exporters.otlp_json import attributes_json, quoted, span_json
from hotspan.exporters.otlp_json_plain import plain_json
from hotspan.tracer.record import Resource, Scope, SpanBatch, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_LINE_CHARS: Final = 1 << 20  # a line is closed before the span that would make it longer
_MAX_CACHED: Final = 4096

_Owner = TypeVar("_Owner", Resource, Scope)
_Groups = dict[tuple[str, str], dict[tuple[str, str], list[str]]]
_resources: dict[int, tuple[Resource, tuple[str, str]]] = {}
_scopes: dict[int, tuple[Scope, tuple[str, str]]] = {}


def lines(spans: Iterable[SpanRecord]) -> Iterator[str]:
    """Yield the spans as lines of OTLP/JSON, each ending in a newline, grouped by resource and scope.

    A line holds up to `MAX_LINE_CHARS` characters of spans; a span that is larger has a line of its own.
    """
    groups: _Groups = {}
    n_chars = 0
    group: list[str] = []
    resource = scope = None
    for text, resource_, scope_ in _texts_of_batch(spans) if isinstance(spans, SpanBatch) else _texts(spans):
        if n_chars and n_chars + len(text) > MAX_LINE_CHARS:
            yield _line(groups)
            groups, n_chars, resource = {}, 0, None
        if resource_ is not resource or scope_ is not scope:
            resource, scope = resource_, scope_
            scopes = groups.setdefault(_frame(_resources, resource, _resource_frame), {})
            group = scopes.setdefault(_frame(_scopes, scope, _scope_frame), [])
        group.append(text)
        n_chars += len(text)
    if groups:
        yield _line(groups)


def _texts(spans: Iterable[SpanRecord]) -> Iterator[tuple[str, Resource, Scope]]:
    for span in spans:
        yield span_json(span), span.resource, span.scope


def _texts_of_batch(batch: SpanBatch) -> Iterator[tuple[str, Resource, Scope]]:
    # Hot: spans of one trace mostly end one after the other, so its id is written as text once.
    resource, scope, anchor_ns = batch.resource, batch.scope, batch.anchor_ns
    trace_id, trace_text = 0, ""
    for span in batch.items:
        if type(span) is SpanRecord:
            yield span_json(span), span.resource, span.scope
            continue
        if span.trace_id != trace_id:
            trace_id = span.trace_id
            trace_text = trace_id.to_bytes(16).hex()
        text = plain_json(span, anchor_ns, trace_text)
        yield span_json(batch.to_record(span)) if text is None else text, resource, scope


def resource_line(resource: Resource) -> str:
    """Return a line that says something of a process and holds no span."""
    return _line({_resource_frame(resource): {}})


def _line(groups: _Groups) -> str:
    # One list and one join: a line is up to a megabyte, and each copy of it costs as much as a field.
    pieces = ['{"resourceSpans":[']
    for (resource, resource_tail), scopes in groups.items():
        pieces.append(resource)
        for (scope, tail), spans in scopes.items():
            pieces += (scope, ",".join(spans), tail, ",")
        if scopes:
            pieces.pop()
        pieces += (resource_tail, ",")
    if groups:
        pieces.pop()
    pieces.append("]}\n")
    return "".join(pieces)


# --- Resource and scope: what stands before and after the spans of a group ----------------------------
def _frame(
    cache: dict[int, tuple[_Owner, tuple[str, str]]], owner: _Owner, make: Callable[[_Owner], tuple[str, str]]
) -> tuple[str, str]:
    # By identity: all spans of a process share one object, and attributes have no hash.  The cache holds the
    # object, so its id is not given to another one.
    found = cache.get(id(owner))
    if found is None:
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        found = cache[id(owner)] = (owner, make(owner))
    return found[1]


def _resource_frame(resource: Resource) -> tuple[str, str]:
    attributes = f'"attributes":{attributes_json(resource.attributes)}' if resource.attributes else ""
    return f'{{"resource":{{{attributes}}},"scopeSpans":[', f"]{_schema(resource.schema_url)}}}"


def _scope_frame(scope: Scope) -> tuple[str, str]:
    fields = [f'"name":{quoted(scope.name)}'] if scope.name else []
    if scope.version:
        fields.append(f'"version":{quoted(scope.version)}')
    if scope.attributes:
        fields.append(f'"attributes":{attributes_json(scope.attributes)}')
    return f'{{"scope":{{{",".join(fields)}}},"spans":[', f"]{_schema(scope.schema_url)}}}"


def _schema(url: str) -> str:
    return f',"schemaUrl":{quoted(url)}' if url else ""
