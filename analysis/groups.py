"""Which group a request belongs to, by the value of an attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.classify import is_entry_span, outcome_of
from hotspan.analysis.collect import Collector
from hotspan.analysis.engine import EngineJoin
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError, UnusableTraceError
from hotspan.tracer.record import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hotspan.analysis.engine import AccountsById
    from hotspan.tracer.record import SpanRecord

OTHER: Final = "other values"
MAX_GROUPS: Final = 20
_MOST_KEYS: Final = 200
_LISTED: Final = 12
_OWN: Final = "hotspan."  # keys that describe spans, not requests
_FIELDS: Final = ("name", "outcome", "service")


class Grouping:
    """Collects the requests of each value of an attribute apart.

    The value is the root's; else that of the first span of the request that has one, in order of start; else
    that of the process.  The first 20 values have a group each, all others are one.

    Args:
        attribute: An attribute's key, or `name`, `outcome` (of the root) or `service`.

    Raises:
        ConfigurationError: The attribute is `stage`, which is what the rows are.
    """

    def __init__(self, attribute: str) -> None:
        if attribute == "stage":
            msg = "--by stage: every row is a stage already. Give an attribute of requests, such as service."
            raise ConfigurationError(msg)
        self.attribute = attribute
        self._collectors: dict[str | None, Collector] = {}
        self._others: set[str] = set()
        self._keys: dict[str, None] = dict.fromkeys(_FIELDS)
        self._accounts: AccountsById = {}  # of engines, in traces of their own

    def add(self, trace: Trace) -> None:
        """Take in one trace; the requests that enter the program in it are grouped one by one."""
        for part in _apart(trace):
            self._add(part)

    def _add(self, trace: Trace) -> None:
        value = self._value_of(trace)
        if value is not None and value not in self._collectors and len(self._collectors) >= MAX_GROUPS:
            self._others.add(value)
            value = OTHER
        collector = self._collectors.get(value)
        if collector is None:
            collector = self._collectors[value] = Collector(engines=EngineJoin(by_id=self._accounts))
        collector.add(trace)

    @property
    def n_other_values(self) -> int:
        """Values without a group of their own."""
        return len(self._others)

    def groups(self, who: str = "request") -> Iterator[tuple[str | None, Collector]]:
        """Yield each value and what was collected for it, most requests first, those without a value last.

        A value of calls outside every request (an index being built, a partial trace) is one too.

        Args:
            who: What has no such attribute, for the message.

        Raises:
            UnusableTraceError: No request has the attribute; the message lists some that there are.
        """
        if not any(value is not None for value in self._collectors):
            listed = ", ".join(list(self._keys)[:_LISTED])
            msg = f"--by {self.attribute}: no {who} has such an attribute. There are: {listed}."
            raise UnusableTraceError(msg)
        for collector in self._collectors.values():
            collector.finish()
        EngineJoin.part([collector.engines for collector in self._collectors.values()])
        ordered = sorted(self._collectors.items(), key=lambda item: _rank(*item))
        yield from ((value, collector) for value, collector in ordered if collector.stages)

    def _value_of(self, trace: Trace) -> str | None:
        spans = sorted(trace.spans, key=lambda span: (not _is_root(span), span.start_ns))
        if not spans:
            return None
        if self.attribute == "name":
            return spans[0].name
        if self.attribute == "outcome":
            return outcome_of(spans[0])
        key = semconv.SERVICE_NAME if self.attribute == "service" else self.attribute
        self._note_keys(spans[0])
        found = (span.attributes.get(key) for span in spans)
        value = next((value for value in found if value is not None), None)
        value = spans[0].resource.attributes.get(key) if value is None else value
        return None if value is None else str(value)

    def _note_keys(self, root: SpanRecord) -> None:
        if len(self._keys) < _MOST_KEYS:
            self._keys.update(dict.fromkeys(key for key in root.attributes if not key.startswith(_OWN)))


def _apart(trace: Trace) -> Iterable[Trace]:
    """Return each top span of a trace in which requests enter the program, with all below it."""
    if not any(map(is_entry_span, trace.spans)):
        return (trace,)
    parts: dict[str, list[SpanRecord]] = {}
    top_of: dict[str, str] = {}
    for span in trace.spans:
        parts.setdefault(_top(span, trace.by_id, top_of), []).append(span)
    return [Trace(trace.trace_id, spans) for spans in parts.values()]


def _top(span: SpanRecord, by_id: Mapping[str, SpanRecord], top_of: dict[str, str]) -> str:
    path = []
    while span.span_id not in top_of:
        path.append(span.span_id)
        top_of[span.span_id] = span.span_id  # so that a loop ends where it was entered
        span = by_id.get(span.parent_id or "", span)
    top = top_of[span.span_id]
    top_of.update(dict.fromkeys(path, top))
    return top


def _is_root(span: SpanRecord) -> bool:
    return span.parent_id is None or is_entry_span(span)


def _rank(value: str | None, collector: Collector) -> tuple[bool, bool, int]:
    return value is None, value == OTHER, -collector.n_requests
