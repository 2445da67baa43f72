"""Trace and span ids in every spelling that files carry, as lower-case hex of fixed length."""

from __future__ import annotations

import base64
import binascii
import hashlib
from functools import lru_cache

TRACE_DIGITS = 32
SPAN_DIGITS = 16
_DIGITS = "0123456789abcdef"
_HEX = frozenset(_DIGITS)
_UUID_CHARACTERS = 36
_FROM_URL_SAFE = str.maketrans("-_", "+/")
_BY_TIME = "126"  # versions of UUIDs whose last digits are those of a machine


def trace_id(text: str) -> str | None:
    """Return a trace id as 32 hex digits, or `None` where there is none in `text`."""
    if len(text) == TRACE_DIGITS and not text.strip(_DIGITS) and text.strip("0"):
        return text  # the usual form, told without a step into Python for each digit
    return _cached_hex(text, TRACE_DIGITS)


def span_id(text: str) -> str | None:
    """Return a span id as 16 hex digits, or `None` where there is none in `text` (empty, zero or garbage)."""
    if len(text) == SPAN_DIGITS and not text.strip(_DIGITS) and text.strip("0"):
        return text
    if len(text) == _UUID_CHARACTERS:
        return of_uuid(text)
    return _hex(text, SPAN_DIGITS)


def parent_id(text: str) -> str | None:
    """Return a parent's id as 16 hex digits, or `None` where `text` names none: empty or zero.

    An id that is none names a parent nobody can find, and not none: it is taken by its hash.
    """
    found = span_id(text)
    if found is None and text.strip("0x-") and text.strip("A="):
        return hashlib.blake2b(text.encode(errors="replace"), digest_size=SPAN_DIGITS // 2).hexdigest()
    return found


def of_uuid(text: str) -> str | None:
    """Return a span id for a run that is named by a UUID: its last 16 digits; of one by time, the first."""
    digits = text.replace("-", "").lower()
    if len(digits) != TRACE_DIGITS or not _HEX.issuperset(digits):
        return None
    if digits[12] in _BY_TIME and len(text) == _UUID_CHARACTERS:
        return _non_zero(digits[:SPAN_DIGITS])
    return _non_zero(digits[-SPAN_DIGITS:]) or _non_zero(digits[:SPAN_DIGITS])


def _hex(text: str, n_digits: int) -> str | None:
    n_base64 = -(-n_digits // 6) * 4  # 24 characters for a trace id, 12 for a span id, padding included
    if len(text) == n_base64 and text.endswith("="):
        return _from_base64(text, n_digits)
    plain = text
    if len(text) > n_digits or text.startswith("0x"):
        plain = text.removeprefix("0x").replace("-", "")  # as Python prints it; as a UUID
    lowered = plain.lower()
    if lowered and len(lowered) <= n_digits and _HEX.issuperset(lowered):
        return _non_zero(lowered.zfill(n_digits))
    # Base64 without its padding is told from hex by its length and by a character that hex has not.
    if len(text) == -(-n_digits * 4 // 6):
        return _from_base64(text + "=" * (n_base64 - len(text)), n_digits)
    return None


_cached_hex = lru_cache(maxsize=4096)(_hex)  # the spans of one trace mostly lie together


def _from_base64(text: str, n_digits: int) -> str | None:
    try:
        raw = base64.b64decode(text.translate(_FROM_URL_SAFE), validate=True)
    except binascii.Error:
        return None
    return _non_zero(raw.hex()) if len(raw) * 2 == n_digits else None


def _non_zero(digits: str) -> str | None:
    return digits if digits.strip("0") else None
