"""Metric points of an OTLP/JSON document, `{"resourceMetrics": […]}`: gauges, sums and histograms.

Of a histogram its sum and count are read; points without a value, and other kinds, are passed over.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from hotspan.tracer.metric import MetricKind, MetricPoint
from hotspan.tracer.record import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.tracer.record import Attributes, AttributeValue

_Integer = int | str | float  # 64-bit integers are strings in OTLP/JSON; some writers send numbers

MARK = b'"resourceMetrics"'  # in every document that holds some


class _Value(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    int_value: _Integer | None = None
    double_value: _Integer | None = None
    bool_value: bool | None = None


class _KeyValue(msgspec.Struct):
    key: str = ""
    value: _Value | None = None


class _Point(msgspec.Struct, rename="camel"):
    time_unix_nano: _Integer = 0
    attributes: list[_KeyValue] = []
    as_double: _Integer | None = None
    as_int: _Integer | None = None
    count: _Integer | None = None
    sum: _Integer | None = None


class _Data(msgspec.Struct, rename="camel"):
    data_points: list[_Point] = []


class _Metric(msgspec.Struct):
    name: str = ""
    unit: str = ""
    gauge: _Data | None = None
    sum: _Data | None = None
    histogram: _Data | None = None


class _ScopeMetrics(msgspec.Struct):
    metrics: list[_Metric] = []


class _Resource(msgspec.Struct):
    attributes: list[_KeyValue] = []


class _ResourceMetrics(msgspec.Struct, rename="camel"):
    resource: _Resource | None = None
    scope_metrics: list[_ScopeMetrics] = []


class _Export(msgspec.Struct, rename="camel"):
    resource_metrics: list[_ResourceMetrics] = []


_decode = msgspec.json.Decoder(_Export | list[_Export]).decode


def metric_points(document: bytes) -> Iterator[MetricPoint]:
    """Yield the points of one document; nothing for one that holds no metrics.

    Raises:
        msgspec.DecodeError: It is not JSON, or its metrics are not OTLP's.
        ValueError: A number is none.
    """
    if MARK not in document:
        return
    exports = _decode(document)
    for export in exports if isinstance(exports, list) else [exports]:
        for group in export.resource_metrics:
            resource = Resource(_attributes(group.resource.attributes if group.resource else []))
            for scoped in group.scope_metrics:
                for metric in scoped.metrics:
                    yield from _points(metric, resource)


def _points(metric: _Metric, resource: Resource) -> Iterator[MetricPoint]:
    kinds: tuple[tuple[MetricKind, _Data | None], ...] = (
        ("gauge", metric.gauge),
        ("sum", metric.sum),
        ("histogram", metric.histogram),
    )
    for kind, data in kinds:
        for point in data.data_points if data else ():
            value = _value_of(point, kind)
            if value is not None:
                yield MetricPoint(
                    metric.name,
                    kind,
                    int(point.time_unix_nano),
                    value,
                    int(point.count or 0) if kind == "histogram" else None,
                    metric.unit,
                    _attributes(point.attributes),
                    resource,
                )


def _value_of(point: _Point, kind: MetricKind) -> float | None:
    found = point.sum if kind == "histogram" else point.as_double if point.as_int is None else point.as_int
    value = None if found is None else float(found)
    return value if value is not None and math.isfinite(value) else None


def _attributes(pairs: list[_KeyValue]) -> Attributes:
    return {pair.key: _plain(pair.value) for pair in pairs if pair.value is not None}


def _plain(value: _Value) -> AttributeValue:
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return int(value.int_value)
    return value.bool_value if value.double_value is None else float(value.double_value)
