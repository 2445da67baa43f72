"""LangSmith's runs: rows of its API, its SDK or its bulk export, with their children inside or beside them.

A run's UUID gives the span its id.  Numbers for times are milliseconds; a time without a zone is in UTC.  The
attributes have the names that LangSmith's own OpenTelemetry export gives them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.tracer import semconv
from hotspan.tracer.record import AttributeValue, Event, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hotspan.analysis.readers.items import RefusedSpan

_SCOPE: Final = Scope("langsmith")
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


def _decode(document: Any) -> Iterator[SpanRecord | RefusedSpan]:
    pending = [values.mapping(document)]
    for run in pending:  # grows while it is read: children are handed to the end
        yield record_of(_record, run)
        pending.extend(map(values.mapping, values.listing(run.get("child_runs"))))


read = each(_decode)


def _record(run: Mapping[str, Any]) -> SpanRecord:
    name, run_id = run.get("name"), values.text(run.get("id"))
    trace_id, span_id = values.trace_and_span_id(
        run.get("trace_id") or _root_of(run) or run_id, ids.of_uuid(run_id), name
    )
    end_ns = values.time_ns(run.get("end_time"), values.MILLISECONDS)
    error = values.text(run.get("error"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent_id(run),
        name=values.text(name),
        start_ns=values.start_ns(run.get("start_time"), values.MILLISECONDS),
        end_ns=end_ns,
        attributes=_attributes(run),
        kind="unspecified",
        status="error" if error or run.get("status") == "error" else "ok" if end_ns else "unset",
        status_message=error.partition("\n")[0],
        events=(*_events(run), *_exception(error, end_ns)),
        scope=_SCOPE,
    )


def _ancestors(run: Mapping[str, Any]) -> Sequence[str]:
    """Return the UUIDs of a run's dotted order: those of its ancestors and its own, each behind its time."""
    steps = values.text(run.get("dotted_order")).split(".")
    return [step.rpartition("Z")[2] for step in steps if "Z" in step]


def _root_of(run: Mapping[str, Any]) -> str:
    return next(iter(_ancestors(run)), "")


def _parent_id(run: Mapping[str, Any]) -> str | None:
    above = values.listing(run.get("parent_run_ids"))
    named = (
        run.get("parent_run_id") or (above[-1] if above else None) or next(iter(_ancestors(run)[-2:-1]), "")
    )
    return ids.of_uuid(values.text(named))


def _attributes(run: Mapping[str, Any]) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {
        semconv.LANGSMITH_METADATA + str(key): value
        for key, value in _inner(_inner(run, "extra"), "metadata").items()
        if isinstance(value, str | int | float)
    }
    if run.get("run_type"):
        found[semconv.LANGSMITH_KIND] = values.text(run["run_type"])
    for key, places in _PLACES.items():
        value = next(filter(None, (_at(run, place) for place in places)), None)
        if isinstance(value, str | int | float):
            found[key] = value
    return found


def _at(run: Mapping[str, Any], place: tuple[str, ...]) -> object:
    *path, last = place
    for key in path:
        run = _inner(run, key)
    return run.get(last)


def _inner(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return an object of a run; tables have it as a text."""
    value = found.get(key)
    if isinstance(value, str):
        try:
            value = values.from_json(value.encode())
        except ValueError:
            return {}
    return values.mapping(value)


def _events(run: Mapping[str, Any]) -> Iterator[Event]:
    has_token = has_chunk = False
    for item in map(values.mapping, values.listing(run.get("events"))):
        found = values.event(item.get("name"), item.get("time"), values.MILLISECONDS, None)
        if found is None:
            continue
        yield found
        has_chunk = has_chunk or found.name == _NEW_TOKEN
        if found.name == _NEW_TOKEN and not has_token and values.mapping(item.get("kwargs")).get("token"):
            has_token = True
            yield Event(_FIRST_TOKEN, found.time_ns)
    first = values.event(_NEW_TOKEN, run.get("first_token_time"), values.MILLISECONDS, None)
    if first is not None and not has_chunk:
        yield first


def _exception(error: str, end_ns: int | None) -> Iterator[Event]:
    if not error or end_ns is None:
        return
    named = _ERROR_TYPE.match(error)
    kind = {semconv.EXCEPTION_TYPE: named[0]} if named else {}
    yield Event(semconv.EXCEPTION_EVENT, end_ns, {**kind, semconv.EXCEPTION_MESSAGE: error})
