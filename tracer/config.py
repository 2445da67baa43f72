"""Setting up and ending: `configure`, `flush`, `shutdown`, and the environment behind them.

Every argument of `configure` has an environment variable and a default; an argument wins.  A program that
never calls `configure` is traced when the environment says where to, and costs next to nothing otherwise.
Exporters are passed in by the package's face: capture does not know them.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import clock, semconv, streaming
from hotspan.tracer import recorder as recording_
from hotspan.tracer import span as spans
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.record import Resource
from hotspan.tracer.recorder import Channel, Exporter, FlushResult, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

EXIT_TIMEOUT_S: Final = 2.0
PROTOCOLS: Final = ("http/protobuf", "grpc")


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
    """

    service_name: str = "unknown_service"
    file: str | None = None
    otlp: str | None = None
    protocol: str = "http/protobuf"
    capture_content: bool = False
    sample_ratio: float = 1.0
    span_processors: tuple[Any, ...] = ()


# name -> maker of an exporter from the settings, or None when the settings do not ask for it
factories: dict[str, Callable[[Settings], Exporter | None]] = {}

_settings = Settings()
_inherited: Settings | None = None  # in a forked child: what the parent had configured
_configured = False
_active = False
_lock = threading.RLock()


def settings() -> Settings:
    """Return what is in force."""
    return _settings


def recording() -> bool:
    """Return whether stages are recorded at all; the first call reads the environment."""
    if _configured:
        return _active
    return _configure_from_environment()


spans.is_active = recording


def configure(  # noqa: PLR0913 - keyword-only, each a setting of its own
    *,
    service_name: str | None = None,
    file: str | os.PathLike[str] | None = None,
    otlp: str | None = None,
    protocol: str | None = None,
    capture_content: bool | None = None,
    sample_ratio: float | None = None,
    span_processors: Sequence[Any] = (),
) -> None:
    """Say where spans go.  Optional: every argument also has an environment variable.

    May be called again: what was recorded so far is delivered first, then the new settings hold.

    Args:
        service_name: Name of the program in every backend (`OTEL_SERVICE_NAME`).
        file: Path of an OTLP/JSON lines file that is appended to, by one process or many (`HOTSPAN_FILE`).
        otlp: Base URL of an OTLP receiver, e.g. "http://127.0.0.1:4318" (`OTEL_EXPORTER_OTLP_ENDPOINT`).
        protocol: "http/protobuf" or "grpc" (`OTEL_EXPORTER_OTLP_PROTOCOL`).
        capture_content: Record prompts, documents, answers and exception messages
            (`HOTSPAN_CAPTURE_CONTENT`); off by default.
        sample_ratio: Share of requests to record, in [0, 1], decided at the root (`HOTSPAN_SAMPLE_RATIO`).
        span_processors: OpenTelemetry span processors; their `on_end` receives every finished span.

    Raises:
        ConfigurationError: A value cannot be used; what was configured before stays in force.
    """
    given = {
        "service_name": service_name,
        "file": None if file is None else os.fspath(file),
        "otlp": otlp,
        "protocol": protocol,
        "capture_content": capture_content,
        "sample_ratio": sample_ratio,
        "span_processors": tuple(span_processors) or None,
    }
    chosen = _from_environment(os.environ) | {key: value for key, value in given.items() if value is not None}
    _apply(_checked(Settings(**chosen)))


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
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
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
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


def _checked(new: Settings) -> Settings:
    if not (isinstance(new.sample_ratio, (int, float)) and 0.0 <= new.sample_ratio <= 1.0):
        msg = f"sample_ratio={new.sample_ratio!r}: expected a number from 0 to 1, e.g. 0.1"
        raise ConfigurationError(msg)
    if new.protocol not in PROTOCOLS:
        msg = f"protocol={new.protocol!r}: expected {' or '.join(map(repr, PROTOCOLS))}"
        raise ConfigurationError(msg)
    if new.otlp is not None and not new.otlp.startswith(("http://", "https://")):
        msg = f"otlp={new.otlp!r}: expected a URL such as 'http://127.0.0.1:4318'"
        raise ConfigurationError(msg)
    return new


def _disabled() -> bool:
    return os.environ.get("HOTSPAN_DISABLED", "").strip().lower() in ("1", "true", "yes", "on")


def _apply(new: Settings) -> None:
    global _settings, _configured, _active  # noqa: PLW0603 - one configuration per process
    with _lock:
        disabled = _disabled()
        made = {} if disabled else {name: make(new) for name, make in factories.items()}
        exporters = {name: exporter for name, exporter in made.items() if exporter is not None}
        shutdown()
        _settings = new
        spans.keep_messages = new.capture_content
        spans.sample_bound = round(new.sample_ratio * 2**64)
        _configured, _active = True, bool(exporters)
        if exporters:
            channels = [Channel(exporter, name) for name, exporter in exporters.items()]
            born_ns = clock.now_ns() if _inherited is not None else 0
            recording_.install(Recorder(_resource(new), channels, born_ns=born_ns))


def _configure_from_environment() -> bool:
    global _configured  # noqa: PLW0603 - one configuration per process
    with _lock:
        if not _configured:
            try:
                _apply(_inherited or _checked(Settings(**_from_environment(os.environ))))
            except ConfigurationError as exc:
                # The program did not call us: it must not fail for a variable of ours, but has to be told.
                _configured = True
                recording_.warn(f"tracing is off: {exc}")
        return _active


def _resource(new: Settings) -> Resource:
    return Resource(
        {
            semconv.SERVICE_NAME: new.service_name,
            semconv.SERVICE_INSTANCE_ID: str(uuid.uuid4()),
            semconv.PROCESS_PID: os.getpid(),
            semconv.HOST_NAME: socket.gethostname(),
            semconv.SDK_NAME: "hotspan",
            semconv.SDK_LANGUAGE: "python",
            semconv.SDK_VERSION: metadata.version("hotspan"),
            semconv.CONVENTION: semconv.GENAI_CONVENTION_VERSION,
            semconv.SAMPLE_RATIO: float(new.sample_ratio),
        }
    )


def flush(timeout: float = EXIT_TIMEOUT_S) -> FlushResult:
    """Deliver every span that has ended so far, waiting at most `timeout` seconds.

    Returns:
        Whether all of it was delivered, and how many spans were delivered and lost since `configure`.
    """
    recorder = recording_.installed()
    return recorder.flush(timeout) if recorder is not None else FlushResult(ok=True, exported=0, lost=0)


def shutdown(timeout: float = EXIT_TIMEOUT_S) -> FlushResult:
    """Deliver what can be delivered within `timeout` seconds, count the rest as lost, and stop recording.

    Called at the end of the interpreter by itself.  `configure` starts again.
    """
    global _active  # noqa: PLW0603 - one configuration per process
    with _lock:
        recorder = recording_.installed()
        _active = False
        if recorder is None:
            return FlushResult(ok=True, exported=0, lost=0)
        result = recorder.shutdown(timeout)
        recording_.install(None)
        return result


@contextmanager
def recording_to(exporter: Exporter, new: Settings) -> Iterator[Recorder]:
    """Record to `exporter` alone inside the `with` block, then restore what was configured before."""
    global _settings, _configured, _active  # noqa: PLW0603 - one configuration per process
    before = (
        _settings,
        _configured,
        _active,
        recording_.installed(),
        spans.keep_messages,
        spans.sample_bound,
    )
    recorder = Recorder(_resource(new), [Channel(exporter, "memory")])
    recording_.install(recorder)
    _settings, _configured, _active = _checked(new), True, True
    spans.keep_messages, spans.sample_bound = new.capture_content, round(new.sample_ratio * 2**64)
    try:
        yield recorder
    finally:
        recorder.shutdown(EXIT_TIMEOUT_S)
        _settings, _configured, _active, outer, spans.keep_messages, spans.sample_bound = before
        recording_.install(outer)


def _forget_parent() -> None:
    """Start clean in a forked child: the parent's spans are the parent's to write."""
    global _lock, _configured, _inherited  # noqa: PLW0603 - one configuration per process
    _lock = threading.RLock()  # another thread of the parent may have held the old one
    streaming.forget_open_streams()
    if _active:
        recording_.install(None)
        _configured, _inherited = False, _settings  # threads and exporters are made at the first span


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
atexit.register(shutdown)
