"""Reports for other programs: JSON in the form that docs/cli.md promises.

ASCII throughout, so that it survives every pipe and locale; strictly JSON, so an infinite number is null.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from hotspan.analysis.report import Report
    from hotspan.exporters.reports.request_view import PathSegment, RequestView, ViewSpan
    from hotspan.tracer.record import SpanRecord

_NS_PER_MS = 1_000_000
_DEEPEST = 64  # levels of an attribute; below that there is an ellipsis


def render(report: Report) -> str:
    """Return a report as one JSON object, `hotspan report --format json`."""
    return _dump(report.to_dict())


def render_request(view: RequestView) -> str:
    """Return one request as one JSON object, `hotspan show --format json`; offsets from its start, in ms."""
    return _dump(
        {
            "schema": "hotspan.show/1",
            "trace_id": view.trace_id,
            "name": view.name,
            "outcome": view.outcome,
            "partial": bool(view.root_fault),
            "duration_ms": _ms(view.duration_ns),
            "critical_path": [_segment(segment) for segment in view.path],
            "spans": [_span(span) for span in view.spans],
            "left_out": [_left_out(span) for span in view.left_out],
        }
    )


def _segment(segment: PathSegment) -> dict[str, Any]:
    return {
        "span_id": segment.span_id,
        "name": segment.name,
        "stage": segment.stage,
        "start_ms": _ms(segment.start_ns),
        "end_ms": _ms(segment.end_ns),
    }


def _span(shown: ViewSpan) -> dict[str, Any]:
    span = shown.span
    return {
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "name": span.name,
        "stage": shown.stage,
        "kind": span.kind,
        "outcome": shown.outcome,
        "status": span.status,
        "start_ms": _ms(shown.start_ns),
        "end_ms": _ms(shown.end_ns),
        "duration_ms": _ms(span.duration_ns),
        "critical_path_ms": _ms(shown.path_ns),
        "slack_ms": _ms(shown.slack_ns),
        "engine": shown.is_engine,
        "phases": [
            {"phase": phase.name, "ms": _ms(phase.ns), "source": phase.source} for phase in shown.phases
        ],
        "attributes": span.attributes,
    }


def _left_out(span: SpanRecord) -> dict[str, Any]:
    return {
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "name": span.name,
        "reason": "unfinished" if span.end_ns is None else "invalid",
    }


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / _NS_PER_MS


def _dump(document: Mapping[str, Any]) -> str:
    plain = _plain(document)
    try:  # the encoder is ten times as fast when it does not indent
        return msgspec.json.format(json.dumps(plain, allow_nan=False), indent=2) + "\n"
    except msgspec.DecodeError:  # half a character, which JSON can hold and Unicode cannot
        return json.dumps(plain, indent=2, allow_nan=False) + "\n"


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON can hold it: bytes as base64, infinite and undefined numbers as null."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {str(key): _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, Sequence) and depth < _DEEPEST:
        return [_plain(inner, depth + 1) for inner in value]
    return "…"
