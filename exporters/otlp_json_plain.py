"""Plain spans as OTLP/JSON text, straight from what capture keeps.

What spans of one stage have in common is text that is made once: a *plan*, found by the constants that the
spans share.  What is left per span are ids, times and values.  A span that does not fit (text or an integer
out of bounds, a key that is no text) is left to `otlp_json.span_json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hotspan.exporters.otlp_json import attributes_json, quoted, value_json
from hotspan.tracer.record import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotspan.tracer.record import PlainSpan

_MAX_PLANS: Final = 4_096
_MAX_HEADS: Final = 1_024  # of one plan
_MAX_TEXTS: Final = 4_096
_MAX_TEXT_CHARS: Final = 64  # longer text is hardly ever the same twice
_LONG_TEXT_CHARS: Final = 100_000  # below the bound at which capture cuts a text
_MAX_UINT64: Final = (1 << 64) - 1
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


class _Plan(NamedTuple):
    """What all spans with the same constants have in common.

    Attributes:
        constants: The shared attributes, held so that their id stays theirs.
        kind: The kind that `before_start` says.
        flags: The flags that `before_name` says.
        before_name: Text between the span's ids and its name.
        before_start: Text between the name and the start.
        before_values: Text between the end and the values of the span's own attributes.
        heads: For an own key the text before its value, up to the value's type.
    """

    constants: Mapping[str, Any]
    kind: str
    flags: int
    before_name: str
    before_start: str
    before_values: str
    heads: dict[Any, str]


_plans: dict[int, _Plan] = {}  # by the id of the constants
_texts: dict[str, str] = {}  # short text -> the same as a JSON string


def plain_json(  # noqa: C901, PLR0912 - in two, it would take a twentieth longer
    span: PlainSpan, anchor_ns: int, trace_id: str
) -> str | None:
    """Return the span as an OTLP/JSON object, or None for one that is to be made a record first.

    Args:
        span: A finished span.
        anchor_ns: Unix time of zero on the process's clock.
        trace_id: The span's trace id in hex.
    """
    # Hot: text that does not change is found by two look-ups, and each value's exact type is looked at once.
    if not span.constants:  # as every stage has
        return None
    plan = _plans.get(id(span.constants)) or _remember(span)
    _, kind_said, flags_said, before_name, before_start, values, heads = plan
    if span.kind != kind_said or span.flags != flags_said:
        _, _, _, before_name, before_start, values, heads = _remember(span)
    end_ns = span.end_ns + anchor_ns
    if not 0 < end_ns <= _MAX_UINT64:
        return None
    try:
        for key, value in span.own.items():
            try:
                head = heads[key]
            except KeyError:
                head = _new_head(heads, key, span.constants)
            kind = type(value)
            if kind is str:
                values += f'{head}stringValue":{_texts.get(value) or _quoted(value)}}}}}'
            elif kind is int:
                if not _MIN_INT64 <= value <= _MAX_INT64:
                    return None
                values += f'{head}intValue":"{value}"}}}}'
            elif kind is float and value * 0.0 == 0.0:  # neither infinite nor not a number
                values += f'{head}doubleValue":{value!r}}}}}'
            elif kind is bool:
                values += f'{head}boolValue":true}}}}' if value else f'{head}boolValue":false}}}}'
            else:
                values += f"{head[:-2]}{value_json(value)}}}"
        name = _texts.get(span.name) or _quoted(span.name)
    except _NotPlainError:
        return None
    except RuntimeError:  # the dict changed: a thread was setting one more when the span ended
        return None
    parent = f'","parentSpanId":"{span.parent_id.to_bytes(8).hex()}' if span.parent_id else ""
    return (
        f'{{"traceId":"{trace_id}","spanId":"{span.span_id.to_bytes(8).hex()}{parent}'
        f"{before_name}{name}{before_start}{span.start_ns + anchor_ns}"
        f'","endTimeUnixNano":"{end_ns}{values}],"status":{{}}}}'
    )


class _NotPlainError(Exception):
    """Capture has put something off that has to be done first."""


def _quoted(text: str) -> str:
    if len(text) > _LONG_TEXT_CHARS:
        raise _NotPlainError
    made = quoted(text)
    if len(text) <= _MAX_TEXT_CHARS:
        if len(_texts) >= _MAX_TEXTS:
            _texts.clear()
        _texts[text] = made
    return made


def _new_head(heads: dict[Any, str], key: Any, constants: Mapping[str, Any]) -> str:
    if type(key) is not str or key in constants or len(key) > _LONG_TEXT_CHARS:
        raise _NotPlainError
    head = f',{{"key":{quoted(key)},"value":{{"'
    if len(heads) < _MAX_HEADS:
        heads[key] = head
    return head


def _remember(span: PlainSpan) -> _Plan:
    if len(_plans) >= _MAX_PLANS:
        _plans.clear()
    flags = f',"flags":{span.flags}' if span.flags else ""
    shared = attributes_json(span.constants)[:-1]
    plan = _plans[id(span.constants)] = _Plan(
        span.constants,
        span.kind,
        span.flags,
        f'"{flags},"name":',
        f',"kind":{KINDS.index(span.kind)},"startTimeUnixNano":"',
        f'","attributes":{shared}',
        {},
    )
    return plan
