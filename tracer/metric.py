"""One measured value of a process at one moment: what a sampler writes and an analysis reads.

Shaped as OTLP's data points: a gauge holds what is now, a sum what was added up since the process began, a
histogram the sum and the number of its observations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from hotspan.tracer.record import NO_ATTRIBUTES, Attributes, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hotspan.tracer.settings import Settings

MetricKind = Literal["gauge", "sum", "histogram"]


class MetricPoint(NamedTuple):
    """One value; of a histogram `value` is the sum of what was observed."""

    name: str
    kind: MetricKind
    time_ns: int  # Unix time
    value: float
    n_observed: int | None = None
    unit: str = ""  # UCUM: "s", "By", "1", …
    attributes: Attributes = NO_ATTRIBUTES
    resource: Resource = Resource()


class MetricSink(Protocol):
    """Where points go."""

    def write(self, points: Sequence[MetricPoint], /) -> None:
        """Deliver the points, or raise `OSError`."""


# Each makes a sink from the settings, `None` when they ask for none.  The package's face hands them in, since
# capture does not know exporters.
sink_factories: list[Callable[[Settings], MetricSink | None]] = []
