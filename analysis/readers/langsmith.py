"""LangSmith's runs: rows of its API, its SDK or its bulk export, with their children inside or beside them.

A run's UUID gives the span its id.  Numbers for times are milliseconds; a time without a zone is in UTC.  The
attributes have the names that LangSmith's own OpenTelemetry export gives them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.analysis.readers.fields import Fields
from hotspan.tracer import semconv
from hotspan.tracer.record import AttributeValue, Event, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hotspan.analysis.readers.fields import Say
    from hotspan.analysis.readers.items import RefusedSpan

_SCOPE: Final = Scope("langsmith")
_RUN: Final = "a run"
_NEW_TOKEN, _FIRST_TOKEN = "new_token", "first_token"
_ERROR_TYPE: Final = re.compile(r"[\w.]+(?=\()")

# Attribute -> the places where runs have it; the first one counts.
_PLACES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    semconv.REQUEST_MODEL: (
        ("extra", "metadata", "ls_model_name"),
        ("extra", "invocation_params", "model"),
        ("extra", "invocation_params", "model_name"),
    ),
    semconv.PROVIDER: (("extra", "metadata", "ls_provider"),),
    semconv.INPUT_TOKENS: (
        ("prompt_tokens",),
        ("outputs", "usage_metadata", "input_tokens"),
        ("outputs", "llm_output", "token_usage", "prompt_tokens"),
        ("outputs", "usage", "prompt_tokens"),
    ),
    semconv.OUTPUT_TOKENS: (
        ("completion_tokens",),
        ("outputs", "usage_metadata", "output_tokens"),
        ("outputs", "llm_output", "token_usage", "completion_tokens"),
        ("outputs", "usage", "completion_tokens"),
    ),
    semconv.CACHED_TOKENS: (
        ("prompt_token_details", "cache_read"),
        ("outputs", "usage_metadata", "input_token_details", "cache_read"),
    ),
    semconv.REASONING_TOKENS: (
        ("completion_token_details", "reasoning"),
        ("outputs", "usage_metadata", "output_token_details", "reasoning"),
    ),
}

_METADATA: Final = ("extra", "metadata")
_PATHS: Final = sorted(
    {place[:n] for places in _PLACES.values() for place in places for n in range(1, len(place))} | {_METADATA}
)  # those of objects, each behind what it lies in


def _decode(document: Any, say: Say) -> Iterator[SpanRecord | RefusedSpan]:
    pending = [Fields(document, say, _RUN)]
    for run in pending:  # grows while it is read: children are handed to the end
        yield record_of(_record, run)
        if run.has("child_runs"):
            pending.extend(run.spans("child_runs"))


read = each(_decode)


def _record(run: Fields) -> SpanRecord:
    run_id = run.text("id")
    trace_id, span_id = values.trace_and_span_id(
        run.get("trace_id") or _root_of(run) or run_id, ids.of_uuid(run_id), run.get("name")
    )
    end_ns = run.time(values.MILLISECONDS, "end_time")
    error = run.text("error")
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent_id(run),
        name=run.text("name"),
        start_ns=run.start(values.MILLISECONDS, "start_time"),
        end_ns=end_ns,
        attributes=_attributes(run),
        kind="unspecified",
        status="error" if error or run.get("status") == "error" else "ok" if end_ns else "unset",
        status_message=error.partition("\n")[0],
        events=(*_events(run), *_exception(error, end_ns)),
        scope=_SCOPE,
    )


def _ancestors(run: Fields) -> Sequence[str]:
    """Return the UUIDs of a run's dotted order: those of its ancestors and its own, each behind its time."""
    steps = run.text("dotted_order").split(".")
    return [step.rpartition("Z")[2] for step in steps if "Z" in step]


def _root_of(run: Fields) -> str:
    return next(iter(_ancestors(run)), "")


def _parent_id(run: Fields) -> str | None:
    above = run.listing("parent_run_ids")
    places = {
        "parent_run_id": run.get("parent_run_id"),
        "parent_run_ids": above[-1] if above else None,
        "dotted_order": next(iter(_ancestors(run)[-2:-1]), None),
    }
    return run.inside(places).parent(*places, read=ids.of_uuid)


def _attributes(run: Fields) -> dict[str, AttributeValue]:
    inside = _objects_of(run)
    found: dict[str, AttributeValue] = {
        semconv.LANGSMITH_METADATA + str(key): value
        for key, value in inside[_METADATA].items()
        if isinstance(value, str | int | float)
    }
    if kind := run.text("run_type"):
        found[semconv.LANGSMITH_KIND] = kind
    for key, places in _PLACES.items():
        value = next(filter(None, (inside[place[:-1]].get(place[-1]) for place in places)), None)
        if isinstance(value, str | int | float):
            found[key] = value
        elif value is not None:
            run.bad(key)
    return found


def _objects_of(run: Fields) -> dict[tuple[str, ...], Fields]:
    """Return the objects of a run in which a place may be, by their paths."""
    nothing = run.inside({})
    inside: dict[tuple[str, ...], Fields] = {(): run}
    for path in _PATHS:
        above, key = inside[path[:-1]], path[-1]
        inside[path] = above.unpacked(key).inner(key) if above.has(key) else nothing
    return inside


def _events(run: Fields) -> Iterator[Event]:
    has_token = has_chunk = False
    for item in run.objects("events", of="an event"):
        name, at_ns = item.text("name"), item.time(values.MILLISECONDS, "time")
        if at_ns is None:
            continue
        yield Event(name, at_ns)
        has_chunk = has_chunk or name == _NEW_TOKEN
        if name == _NEW_TOKEN and not has_token and item.inner("kwargs").get("token"):
            has_token = True
            yield Event(_FIRST_TOKEN, at_ns)
    first_ns = run.time(values.MILLISECONDS, "first_token_time")
    if first_ns is not None and not has_chunk:
        yield Event(_NEW_TOKEN, first_ns)


def _exception(error: str, end_ns: int | None) -> Iterator[Event]:
    if not error or end_ns is None:
        return
    named = _ERROR_TYPE.match(error)
    kind = {semconv.EXCEPTION_TYPE: named[0]} if named else {}
    yield Event(semconv.EXCEPTION_EVENT, end_ns, {**kind, semconv.EXCEPTION_MESSAGE: error})
