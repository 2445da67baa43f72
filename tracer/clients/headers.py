"""The headers of every request, checked before any is sent: what is wrong in one may be a secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hotspan.tracer.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

# What HTTP lets through: visible ASCII, with spaces and tabs between (RFC 9110, 5.5; older bytes left out).
_VALUE: Final = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?", re.ASCII)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)


def request_headers(api_key: str | None, extra: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of every request, names in lower case.

    Args:
        api_key: Sent as a bearer token; None for none.
        extra: Further headers; they win over those that are sent anyway.

    Raises:
        ConfigurationError: One that cannot be sent as it is.  The message does not show it.
    """
    # A compressed body would be held back until a block is full; it is asked for by nobody here.
    found = {"content-type": "application/json", "accept-encoding": "identity"}
    if api_key is not None:
        found["authorization"] = f"Bearer {_sendable(api_key, 'api_key', may_be_empty=False)}"
    for name, value in (extra or {}).items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            msg = f"headers: {name!r} is no name of a header; it may have letters, digits and hyphens"
            raise ConfigurationError(msg)
        found[name.lower()] = _sendable(value, f"headers[{name!r}]", may_be_empty=True)
    return found


def _sendable(value: object, shown: str, *, may_be_empty: bool) -> str:
    if isinstance(value, str) and _VALUE.fullmatch(value) and (value or may_be_empty):
        return value
    msg = f"{shown}: {_reason(value)}. Nothing was sent, and the value is not shown here."
    raise ConfigurationError(msg)


def _reason(value: object) -> str:
    if not isinstance(value, str):
        return f"expected a str, not {type(value).__name__}"
    if not value:
        return "it is empty; give None for none"
    if value != value.strip():
        return "it begins or ends with white space, as what is read from a file may; .strip() it"
    if not value.isascii():
        return "it has characters that are not ASCII, which a header cannot carry"
    return "it has control characters, which a header cannot carry"
