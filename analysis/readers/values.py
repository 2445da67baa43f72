"""Values of anyone's JSON as a span record has them; what cannot be one is a `ValueError` that says so.

The functions take whatever stands in a file: any type, any nesting, any size.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from hotspan.analysis.readers import ids
from hotspan.analysis.readers.framing import TOO_DEEP
from hotspan.tracer.record import NO_ATTRIBUTES, Attributes, AttributeValue

NANOSECONDS: Final = 1
MICROSECONDS: Final = 1_000
MILLISECONDS: Final = 1_000_000
SECONDS: Final = 1_000_000_000

_MAX_DEPTH: Final = 32  # of an attribute's value: what lies deeper is no figure
_MAX_SHOWN: Final = 60
_DIGITS: Final = frozenset("0123456789")
MAX_NS: Final = 1 << 64  # what OTLP can hold
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MALFORMED: Final = "JSON is malformed: "  # how msgspec begins
_PYTHONS_OWN: Final = re.compile(rb"NaN|Infinity|\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile(rb"\\u[dD][89abAB]..(?:\\u[dD][c-fC-F]..)?|\\u[dD][c-fC-F]..")
_PAIR: Final = len(rb"\ud83d\ude00")
_FRACTION: Final = re.compile(r"[.,](\d+)")


class Nanoseconds(int):
    """A time that is in nanoseconds, whatever unit the format has otherwise."""


def shown(value: object) -> str:
    """Return a value for a message: short, on one line."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def from_json(document: bytes) -> Any:
    """Return what a JSON text holds; also NaN and the infinities, which Python writes into it.

    Raises:
        ValueError: It is not JSON, or nested without end.
    """
    try:
        return msgspec.json.decode(document)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        if not _PYTHONS_OWN.search(document):
            msg = f"not JSON: {str(exc).removeprefix(_MALFORMED)}"
            raise ValueError(msg) from None
    try:
        return json.loads(_SURROGATE.sub(_whole_character, document))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError as exc:
        msg = f"not JSON: {exc}"
        raise ValueError(msg) from None


def _whole_character(found: re.Match[bytes]) -> bytes:
    # Half of a character, as JavaScript cuts texts, is none that can be written anywhere.
    return found[0] if len(found[0]) == _PAIR else rb"\ufffd"


def count(value: object) -> int:
    """Return a number that OTLP holds in 32 bits without a sign, and 0 for anything else."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 1 << 32 else 0


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object, or an empty one for what is none."""
    return value if isinstance(value, Mapping) else {}


def listing(value: object) -> Sequence[Any]:
    """Return an array, or an empty one for what is none."""
    return value if isinstance(value, list | tuple) else ()


def text(value: object) -> str:
    """Return a text as it is, nothing for `None`, and anything else in words."""
    if isinstance(value, str):
        return value
    return "" if value is None else shown(value)


def time_ns(value: object, unit_ns: int) -> int | None:
    """Return a time in nanoseconds since 1970, or `None` where there is none.

    Args:
        value: A number of the unit, its digits, or a time in ISO 8601 (in UTC if it names no zone).
        unit_ns: The format's unit.

    Raises:
        ValueError: It is none of these, or not within 584 years of 1970.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        found = _from_iso(value) if not _is_number(value) else _scaled(value, unit_ns)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"a time of {shown(value)} is neither a number nor a text"
        raise ValueError(msg)  # noqa: TRY004 - a fault of the file, not of a caller
    elif isinstance(value, float) and math.isnan(value):
        return None  # as data frames have it where nothing is
    elif isinstance(value, float) and math.isinf(value):
        msg = f"a time of {shown(value)} is none"
        raise ValueError(msg)
    else:
        found = _scaled(value, NANOSECONDS if isinstance(value, Nanoseconds) else unit_ns)
    if abs(found) >= MAX_NS:
        raise ValueError(too_large(value, found))
    return found


def too_large(value: object, ns: int) -> str:
    """Return why a time that makes so many nanoseconds is none."""
    year = 1970 + ns // (31_556_952 * SECONDS)
    return f"a time of {shown(value)} would be the year {year}: the writer's unit is not that of the format"


def _is_number(value: str) -> bool:
    return len(value) <= _MAX_SHOWN and value.lstrip("+-").replace(".", "", 1).isdecimal()


def _scaled(value: str | float, unit_ns: int) -> int:
    if isinstance(value, int):
        return int(value) * unit_ns
    # Through the digits that the writer saw: a product of floats is off by hundreds of nanoseconds.
    try:
        return round(Decimal(value if isinstance(value, str) else repr(value)) * unit_ns)
    except ArithmeticError:
        msg = f"a time of {shown(value)} is no number"
        raise ValueError(msg) from None


def _from_iso(value: str) -> int:
    fraction = _FRACTION.search(value)
    whole = value if fraction is None else value[: fraction.start()] + value[fraction.end() :]
    try:
        moment = datetime.fromisoformat(whole.strip())
    except ValueError:
        msg = f"a time of {shown(value)} is neither a number nor in ISO 8601"
        raise ValueError(msg) from None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    nanos = int(fraction[1][:9].ljust(9, "0")) if fraction else 0
    return (since.days * 86_400 + since.seconds) * SECONDS + since.microseconds * MICROSECONDS + nanos


def start_ns(value: object, unit_ns: int) -> int:
    """Return the time at which a span starts.

    Raises:
        ValueError: There is none.
    """
    found = time_ns(value, unit_ns)
    if found is None:
        msg = "it has no start time"
        raise ValueError(msg)
    return found


def trace_and_span_id(trace: object, span: object, name: object) -> tuple[str, str]:
    """Return both ids as lower-case hex.

    Raises:
        ValueError: One of them is none.
    """
    trace_id = ids.trace_id(trace) if isinstance(trace, str) else None
    span_id = ids.span_id(span) if isinstance(span, str) else None
    if trace_id is None or span_id is None:
        msg = f"span {shown(name)} has no usable id (trace {shown(trace)}, span {shown(span)})"
        raise ValueError(msg)
    return trace_id, span_id


def member(value: object, members: Sequence[str]) -> str | None:
    """Return which of OTLP's names is meant: `ERROR`, `StatusCode.ERROR`, `STATUS_CODE_ERROR`, its number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return members[int(value)] if value in range(len(members)) else None
    name = text(value).rpartition(".")[2].strip().lower()
    if name in _DIGITS:
        return member(int(name), members)
    name = name.removeprefix("span_kind_").removeprefix("status_code_")
    return name if name in members else None


def attributes(value: object) -> Attributes:
    """Return an object as attributes; what holds nothing is left out."""
    found = mapping(value)
    return {str(key): attribute(item) for key, item in found.items() if item is not None} or NO_ATTRIBUTES


def key_values(pairs: Sequence[Any], depth: int = 0) -> Attributes:
    """Return a list of OTLP's typed pairs as attributes, whichever way its keys are written."""
    found = map(mapping, pairs)
    return {text(pair.get("key")): _any_value(pair.get("value"), depth) for pair in found} or NO_ATTRIBUTES


def _any_value(found: object, depth: int) -> AttributeValue:
    if depth >= _MAX_DEPTH:
        return "…"
    name, value = next(iter(mapping(found).items()), ("", None))
    inner = listing(mapping(value).get("values"))
    kind_of_value = name.replace("_", "").lower()
    if kind_of_value == "arrayvalue":
        return tuple(_any_value(item, depth + 1) for item in inner)
    if kind_of_value == "kvlistvalue":
        return key_values(inner, depth + 1)
    if kind_of_value == "intvalue" and isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value[:_MAX_SHOWN])
    return attribute(value)


def attribute(value: object, depth: int = 0) -> AttributeValue:
    """Return a value of JSON as a value of an attribute; what is nested beyond 32 levels is left out."""
    if value is None or isinstance(value, str | bool | int | float | bytes):
        return value
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): attribute(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence):
        return tuple(attribute(item, depth + 1) for item in value)
    return str(value)
