"""What servers answered to the attempts that failed: HTTP statuses, or the names of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.generation import ModelCall
    from hotspan.tracer.record import Attributes, SpanRecord

# What clients call an answer with a status, where they do not record the status itself.
_STATUS_OF_ERROR: Final = {
    "RateLimitError": "429",
    "ServiceUnavailableError": "503",
    "OverloadedError": "529",
}
_FAILED_FROM: Final = 400


def refusals_of(call: ModelCall) -> Iterator[str]:
    """Yield why each failed attempt of a call failed: `429`, `503`, `ConnectError`, …; nothing unknown."""
    for span in call.attempts:
        status = span.attributes.get(semconv.HTTP_STATUS)
        if not may_refuse(span, status):
            continue
        failed = [event for event in span.events if event.name == semconv.ATTEMPT_EVENT]
        accounts = [event.attributes for event in failed]
        if not failed and (span.status == "error" or _status(status) is not None):
            accounts = [span.attributes]
        for account in accounts:
            if reason := _status(account.get(semconv.HTTP_STATUS)) or _error(account):
                yield reason


def failure_of(call: ModelCall) -> str | None:
    """Return why a call failed in the end, in the words of `refusals_of`; `None` for one that did not."""
    if call.outcome != "error":
        return None
    spans = [call.last] if call.is_one_span else [call.last, call.span]
    accounts = [s.attributes for s in spans if may_refuse(s, s.attributes.get(semconv.HTTP_STATUS))]
    reasons = (_status(account.get(semconv.HTTP_STATUS)) or _error(account) for account in accounts)
    return next((reason for reason in reasons if reason), None)


def may_refuse(span: SpanRecord, status: object) -> bool:
    """Return whether a call's span may tell of an attempt that failed; `status` is its HTTP status."""
    return bool(span.events) or span.status == "error" or _status(status) is not None


def _status(status: object) -> str | None:
    is_failure = isinstance(status, int) and status >= _FAILED_FROM
    return str(status) if is_failure else None


def _error(attributes: Attributes) -> str | None:
    error = attributes.get(semconv.ERROR_TYPE)
    if not isinstance(error, str) or not error:
        return None
    name = error.rsplit(".", 1)[-1]
    return _STATUS_OF_ERROR.get(name, name)
