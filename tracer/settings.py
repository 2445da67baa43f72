"""What can be configured: the settings, the environment variables behind them, and what is accepted."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_log = logging.getLogger("hotspan")

PROTOCOLS: Final = ("http/protobuf", "grpc")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def is_disabled(*, say: bool = False) -> bool:
    """Return whether HOTSPAN_DISABLED says that nothing is to be traced.

    Args:
        say: Log what it cannot mean, which is taken for false.
    """
    text = os.environ.get("HOTSPAN_DISABLED", "").strip().lower()
    if say and text and text not in _TRUE + _FALSE:
        _log.warning("hotspan: HOTSPAN_DISABLED=%r is taken for false: expected true or false", text)
    return text in _TRUE


@dataclass(frozen=True, slots=True)
class Settings:
    """What `configure` was told, the environment and the defaults filled in.

    Attributes:
        service_name: Name of the traced program in every backend.
        file: Path of the OTLP/JSON lines file, or None.
        otlp: Base URL of an OTLP receiver, or None.
        protocol: How OTLP is sent: "http/protobuf" or "grpc".
        capture_content: Whether prompts, documents, answers and exception messages are recorded.
        sample_ratio: Share of requests that are recorded, in [0, 1], decided at the root.
        span_processors: OpenTelemetry span processors that receive every finished span.
        provider: The application's tracer provider, whose processors receive every finished span, or None.
    """

    service_name: str = "unknown_service"
    file: str | None = None
    otlp: str | None = None
    protocol: str = "http/protobuf"
    capture_content: bool = False
    sample_ratio: float = 1.0
    span_processors: tuple[Any, ...] = ()
    provider: Any = None


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that the environment makes; an empty variable is as good as none."""
    found: dict[str, Any] = {}
    for key, variables, parse in _VARIABLES:
        for variable in variables:
            text = environ.get(variable, "").strip()
            if text:
                found[key] = parse(variable, text)
                break
    return found


def _text(_variable: str, text: str) -> str:
    return text


def _flag(variable: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    msg = f"{variable}={text!r}: expected true or false"
    raise ConfigurationError(msg)


def _ratio(variable: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"{variable}={text!r}: expected a number from 0 to 1"
        raise ConfigurationError(msg) from None


_VARIABLES: Final[tuple[tuple[str, tuple[str, ...], Callable[[str, str], Any]], ...]] = (
    ("service_name", ("OTEL_SERVICE_NAME",), _text),
    ("file", ("HOTSPAN_FILE",), _text),
    ("otlp", ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"), _text),
    ("protocol", ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"), _text),
    ("capture_content", ("HOTSPAN_CAPTURE_CONTENT",), _flag),
    ("sample_ratio", ("HOTSPAN_SAMPLE_RATIO",), _ratio),
)


def path_text(file: Any) -> str:
    """Return the path of a trace file as text.

    Raises:
        ConfigurationError: It is no path.
    """
    try:
        text = os.fsdecode(file)
    except TypeError as error:
        msg = f"file={file!r}: expected a path such as 'run.jsonl'"
        raise ConfigurationError(msg) from error
    if "\0" in text:
        msg = f"file={file!r}: a path has no null character"
        raise ConfigurationError(msg)
    return text


def processors_of(given: Any) -> tuple[Any, ...]:
    """Return the span processors.

    Raises:
        ConfigurationError: It is no sequence.
    """
    try:
        return tuple(given)
    except TypeError as error:
        msg = f"span_processors={given!r}: expected a list of OpenTelemetry span processors"
        raise ConfigurationError(msg) from error


def _is_ratio(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= 1.0


# A setting, what tells that its value can be used, and what was expected.
_CHECKS: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    ("service_name", lambda value: isinstance(value, str), "a text"),
    ("capture_content", lambda value: isinstance(value, bool), "True or False"),
    ("sample_ratio", _is_ratio, "a number from 0 to 1, e.g. 0.1"),
    ("protocol", lambda value: value in PROTOCOLS, " or ".join(map(repr, PROTOCOLS))),
    (
        "otlp",
        lambda value: value is None or (isinstance(value, str) and value.startswith(("http://", "https://"))),
        "a URL such as 'http://127.0.0.1:4318'",
    ),
)


def checked(new: Settings) -> Settings:
    """Return the settings, the file's path made absolute.

    Raises:
        ConfigurationError: A value cannot be used; says which, and what was expected.
    """
    for name, is_usable, expected in _CHECKS:
        value = getattr(new, name)
        if not is_usable(value):
            msg = f"{name}={value!r}: expected {expected}"
            raise ConfigurationError(msg)
    # A child process may start in another folder, or after a change of it.
    return replace(new, file=os.path.abspath(new.file)) if new.file else new  # noqa: PTH100 - keeps a link
