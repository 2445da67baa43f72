"""Metric points as OTLP/JSON lines, `{"resourceMetrics": […]}`, in the same file as the spans.

The form is that of the OpenTelemetry Collector's file exporter.  A histogram is written with its sum and
count and without buckets, which OTLP allows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from hotspan.exporters.files import FileExporter, Lines
from hotspan.tracer import semconv

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from hotspan.tracer.metric import MetricPoint
    from hotspan.tracer.record import Attributes, Resource

_CUMULATIVE = 2  # aggregation temporality: since the process began


class MetricsFile:
    """Appends metric points to a file of OTLP/JSON lines, a line for each write.

    Args:
        path: The file; made if it is not there.  Its folder must exist.

    Raises:
        ConfigurationError: The file cannot be opened for writing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = FileExporter(path)

    def write(self, points: Sequence[MetricPoint], /) -> None:
        """Append the points, in one write.

        Raises:
            OSError: The file system did not take them.
        """
        if points:
            self._file.export(_MetricLines(points))


class _MetricLines(Lines):
    __slots__ = ()

    def __init__(self, points: Sequence[MetricPoint]) -> None:
        super().__init__(())
        self._n_spans = len(points)  # what waits; an empty batch is not written
        self.data = line(points).encode()


def line(points: Sequence[MetricPoint]) -> str:
    """Return the points as one line of OTLP/JSON, ending in a newline, grouped by resource and name."""
    groups: dict[int, tuple[Resource, dict[str, list[MetricPoint]]]] = {}
    for point in points:
        if math.isfinite(point.value):
            _, by_name = groups.setdefault(id(point.resource), (point.resource, {}))
            by_name.setdefault(point.name, []).append(point)
    document = {
        "resourceMetrics": [_resource_metrics(resource, named) for resource, named in groups.values()]
    }
    return msgspec.json.encode(document).decode() + "\n"


def _resource_metrics(resource: Resource, named: dict[str, list[MetricPoint]]) -> dict[str, Any]:
    return {
        "resource": {"attributes": _attributes(resource.attributes)},
        "scopeMetrics": [
            {
                "scope": {"name": semconv.SCOPE_NAME},
                "metrics": [_metric(name, points) for name, points in named.items()],
            }
        ],
    }


def _metric(name: str, points: Sequence[MetricPoint]) -> dict[str, Any]:
    first = points[0]
    data: dict[str, Any] = {"dataPoints": [_data_point(point) for point in points]}
    if first.kind != "gauge":
        data["aggregationTemporality"] = _CUMULATIVE
    if first.kind == "sum":
        data["isMonotonic"] = True
    return {"name": name, **({"unit": first.unit} if first.unit else {}), first.kind: data}


def _data_point(point: MetricPoint) -> dict[str, Any]:
    said = {"attributes": _attributes(point.attributes)} if point.attributes else {}
    at = {"timeUnixNano": str(point.time_ns), **said}
    if point.kind == "histogram":
        return {**at, "count": str(point.n_observed or 0), "sum": point.value}
    return {**at, "asDouble": float(point.value)}


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"intValue": str(value)}
    return {"stringValue": str(value)}
