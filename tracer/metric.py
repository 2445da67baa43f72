"""One measured value of a process at one moment: what a sampler writes and an analysis reads.

Shaped as OTLP's data points: a gauge holds what is now, a sum what was added up since the process began, a
histogram the sum and the number of its observations.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from hotspan.tracer.record import NO_ATTRIBUTES, Attributes, Resource

MetricKind = Literal["gauge", "sum", "histogram"]


class MetricPoint(NamedTuple):
    """One value; `value` of a histogram is the sum of what was observed, `count` how many there were."""

    name: str
    kind: MetricKind
    time_ns: int  # Unix time
    value: float
    count: int | None = None
    unit: str = ""  # UCUM: "s", "By", "1", …
    attributes: Attributes = NO_ATTRIBUTES
    resource: Resource = Resource()
