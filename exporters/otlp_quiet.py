"""Takes what OpenTelemetry's exporters log while an export of ours runs, and says why it failed.

They log a line per attempt and give the caller no reason; we want the reason, and one line in all.
"""

from __future__ import annotations

import logging
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from opentelemetry import context

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGERS: Final = (
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.common._internal",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
)
_ERRNO = re.compile(r"\[Errno -?\d+\] ([^'\")\]]+)")
_AFTER_THE_REASON = re.compile(r" encountered while exporting .*?retrying in [\d.]+s\.?( Error details:)?")
# A private name, so it may be gone one day; then who instruments requests or grpc sees our exports traced.
_SUPPRESS_KEY: str | None = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", None)


class _Capture(logging.Filter):
    """Holds back records of the thread that is in `quiet`; the application's own exporters log as before."""

    def __init__(self) -> None:
        super().__init__()
        self.local = threading.local()
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is to be logged."""
        said: list[str] | None = getattr(self.local, "said", None)
        if said is None:
            return True
        said.append(record.getMessage())
        return False


_capture = _Capture()


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Yield a list that receives this thread's log lines of the exporters; keep the export untraced."""
    said: list[str] = []
    _capture.local.said = said
    # Instrumentations of requests and grpc would otherwise trace the export, which is exported, and so on.
    token = context.attach(context.set_value(_SUPPRESS_KEY, True)) if _SUPPRESS_KEY else None
    try:
        yield said
    finally:
        if token is not None:
            context.detach(token)
        _capture.local.said = None


def reason(said: list[str]) -> str:
    """Return the first thing that was said, without connection pools, object addresses and pauses."""
    if not said:
        return "no reason was given"
    cause = _ERRNO.search(said[0])
    return cause.group(1) if cause else _AFTER_THE_REASON.sub(":", said[0]).rstrip(".: ")
