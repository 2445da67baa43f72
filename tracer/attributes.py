"""Attribute values as OTLP can hold them, taken at the moment they are set.

A value that is no plain scalar is copied at once: a list that the program changes later, or a tensor that it
wants to free, must not be held until the background thread comes to it.  Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from hotspan.tracer import semconv

MAX_TEXT: Final = 131_072  # characters of one value; what is cut is said beside it
MAX_ITEMS: Final = 1_024  # items of one list
MAX_DEPTH: Final = 6
UNREADABLE: Final = "<unreadable>"
_INT64: Final = range(-(2**63), 2**63)

# Types that are kept as they are.  `str` is bounded when written; most are far below the bound.
PLAIN: Final = frozenset({bool, float})


def snapshot(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `attributes` with every value as OTLP can hold it."""
    kept: dict[str, Any] = {}
    for key, value in attributes.items():
        kept[str(key)] = coerce(str(key), value, kept)
    return kept


def coerce(key: str, value: Any, beside: MutableMapping[str, Any]) -> Any:
    """Return `value` as a str, bool, int, float, bytes, None, list or dict of such.

    Numbers of numpy and the like become Python's, arrays become lists (long ones their shape), text and
    lists are cut at a bound with the original length set in `beside` under `<key>.hotspan.original_length`,
    and anything else becomes its type's name, since its text may be content, or slow, or raise.
    """
    try:
        kept, original_length = _coerce(value, MAX_DEPTH)
    except Exception:  # noqa: BLE001 - an attribute must never break the program that sets it
        return UNREADABLE
    if original_length is not None:
        beside[f"{key}.{semconv.ORIGINAL_LENGTH}"] = original_length
    return kept


def _coerce(value: Any, depth: int) -> tuple[Any, int | None]:  # noqa: PLR0911 - a table of types
    """Return the kept value, and the original length where it was cut."""
    if value is None or isinstance(value, (bool, float)):
        return (value if value is None or type(value) in PLAIN else float(value)), None
    if isinstance(value, str):
        text = value if type(value) is str else str.__str__(value)
        return (text, None) if len(text) <= MAX_TEXT else (text[:MAX_TEXT], len(text))
    if isinstance(value, int):
        return (int(value) if value in _INT64 else str(int(value))), None
    if isinstance(value, (bytes, bytearray)):
        return (bytes(value), None) if len(value) <= MAX_TEXT else (bytes(value[:MAX_TEXT]), len(value))
    if depth == 0:
        return f"<{type(value).__qualname__}>", None
    if isinstance(value, Mapping):
        items = list(value.items())
        kept = {str(k): _coerce(v, depth - 1)[0] for k, v in items[:MAX_ITEMS]}
        return kept, len(items) if len(items) > MAX_ITEMS else None
    if isinstance(value, (list, tuple, set, frozenset, range)):
        head = [_coerce(v, depth - 1)[0] for v, _ in zip(value, range(MAX_ITEMS), strict=False)]
        return head, len(value) if len(value) > MAX_ITEMS else None
    return _coerce_foreign(value, depth)


def _coerce_foreign(value: Any, depth: int) -> tuple[Any, int | None]:
    """Numbers and arrays of numpy, torch and their like, by what they can do rather than by import."""
    shape = getattr(value, "shape", None)
    if shape == () and hasattr(value, "item"):
        item = value.item()
        return _coerce(item, depth - 1) if item is not value else (UNREADABLE, None)
    if isinstance(shape, tuple) and hasattr(value, "tolist"):
        n_items = 1
        for extent in shape:
            n_items *= int(extent)
        if n_items > MAX_ITEMS:
            return f"<{type(value).__qualname__} {'x'.join(map(str, shape))}>", None
        return _coerce(value.tolist(), depth - 1)
    return f"<{type(value).__qualname__}>", None
