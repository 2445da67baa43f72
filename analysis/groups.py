"""Which group a request belongs to, by the value of an attribute."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.classify import is_entry_span, outcome_of
from hotspan.analysis.collect import Collector
from hotspan.analysis.engine import EngineJoin
from hotspan.analysis.misses import listed
from hotspan.analysis.parts import NO_VALUE, OTHER, WHOLE
from hotspan.analysis.spelling import Word, is_number, quoted, spelt
from hotspan.analysis.unstaged import Beginnings
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError, UnusableTraceError
from hotspan.tracer.record import Trace

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from hotspan.analysis.engine import AccountsById
    from hotspan.tracer.record import AttributeValue, SpanRecord

MAX_GROUPS: Final = 20
_MOST_KEYS: Final = 200
_RESERVED: Final = frozenset({WHOLE, NO_VALUE, OTHER})
_QUOTES: Final = ("", '"', "'")  # how a text begins that is seen in quotes alone
_FIELDS: Final = ("name", "outcome", "service")


class _Without(Enum):
    """What a group has that is not of one value."""

    VALUE = NO_VALUE
    ONE_VALUE = OTHER


class _Group(NamedTuple):
    """The requests of a value; of a number as it was written first."""

    value: AttributeValue | _Without
    collector: Collector


class Grouping:
    """Collects the requests of each value of an attribute apart.

    The value is the root's; else that of the first span of the request that has one, in order of start; else
    that of the process.  The first 20 values have a group each, all others are one.  Numbers are one value
    where they are equal, a text and a number or a boolean that is spelt so are two.

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
        self._groups: dict[Hashable, _Group] = {}
        self._others: set[Hashable] = set()
        self._keys: dict[str, None] = dict.fromkeys(_FIELDS)
        self._accounts: AccountsById = {}  # of engines, in traces of their own
        self._beginnings = Beginnings()

    def add(self, trace: Trace) -> None:
        """Take in one trace; the requests that enter the program in it are grouped one by one."""
        for part in _apart(trace):
            self._add(part)

    def _add(self, trace: Trace) -> None:
        value = self._value_of(trace)
        key: Hashable = _Without.VALUE if value is None else _key(value)
        if value is not None and key not in self._groups and len(self._groups) >= MAX_GROUPS:
            self._others.add(key)
            key = _Without.ONE_VALUE
        group = self._groups.get(key)
        if group is None:
            what = key if isinstance(key, _Without) else value
            group = self._groups[key] = _Group(what, self._collector())
        group.collector.add(trace)

    def _collector(self) -> Collector:
        return Collector(engines=EngineJoin(by_id=self._accounts), beginnings=self._beginnings)

    @property
    def n_other_values(self) -> int:
        """Values without a group of their own."""
        return len(self._others)

    def groups(self, who: str = "request") -> Iterator[tuple[str | None, Collector]]:
        """Yield each value and what was collected for it, most requests first, those without a value last.

        A value of calls outside every request (an index being built, a partial trace) is one too.  Values are
        spelt as in a condition of `--where`; a text that would be taken for another group's is in quotes.

        Args:
            who: What has no such attribute, for the message.

        Raises:
            UnusableTraceError: No request has the attribute; the message lists some that there are.
        """
        groups = list(self._groups.values())
        for group in groups:
            group.collector.sum_up()
        for group in groups:
            group.collector.finish()
        groups = [group for group in groups if group.collector.stages]
        if groups and all(group.value is _Without.VALUE for group in groups):
            msg = (
                f"--by {self.attribute}: no {who} has such an attribute. {listed(self.attribute, self._keys)}"
            )
            raise UnusableTraceError(msg)
        EngineJoin.part([group.collector.engines for group in self._groups.values()])
        values = [group.value for group in groups]
        for group in sorted(groups, key=_rank):
            yield _label(group.value, values), group.collector

    def _value_of(self, trace: Trace) -> AttributeValue:
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
        return spans[0].resource.attributes.get(key) if value is None else value

    def _note_keys(self, root: SpanRecord) -> None:
        if len(self._keys) < _MOST_KEYS:
            self._keys.update(dict.fromkeys(root.attributes))


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


def _key(value: AttributeValue) -> Hashable:
    """Return what values share that are one: numbers that are equal, all else that is spelt alike."""
    if is_number(value) and value == value:  # noqa: PLR0124 - NaN is no number, and one value
        return value
    return isinstance(value, str | bytes), spelt(value)


def _label(value: AttributeValue | _Without, there: Iterable[AttributeValue | _Without]) -> str | None:
    if isinstance(value, _Without):
        return None if value is _Without.VALUE else OTHER
    text = spelt(value)
    if not isinstance(value, str | bytes):
        return text
    word = Word.bare(text)
    others = (other for other in there if not isinstance(other, str | bytes | _Without))
    is_plain = text not in _RESERVED and text[:1] not in _QUOTES and not any(map(word.stands_for, others))
    return text if is_plain else quoted(text)


def _rank(group: _Group) -> tuple[bool, bool, int]:
    value = group.value
    return value is _Without.VALUE, value is _Without.ONE_VALUE, -group.collector.n_requests
