"""Setting up and ending: `configure`, `flush`, `shutdown`, and the environment behind them.

Every argument of `configure` has an environment variable and a default; an argument wins.  A program that
never calls `configure` is traced when the environment says where to, and costs next to nothing otherwise.
Exporters are passed in by the package's face: capture does not know them.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import clock, overhead, semconv, streaming
from hotspan.tracer import recorder as recording_
from hotspan.tracer import span as spans
from hotspan.tracer.channel import Channel, Exporter
from hotspan.tracer.record import Resource
from hotspan.tracer.recorder import FlushResult, Recorder
from hotspan.tracer.settings import (
    Settings,
    checked,
    from_environment,
    is_disabled,
    path_text,
    processors_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_log = logging.getLogger("hotspan")

EXIT_TIMEOUT_S: Final = 2.0

# HOTSPAN_DISABLED as it was when Hotspan was imported: then decorators return what they were given.
DISABLED: Final = is_disabled(say=True)

# name -> maker of an exporter from the settings, or None when the settings do not ask for it
factories: dict[str, Callable[[Settings], Exporter | None]] = {}

_settings = Settings()
_inherited: Settings | None = None  # in a child: what the parent had configured
_configured = False
_called = False  # `configure` was called in this very process
_capturing = False  # a test has the recording
is_active = False  # whether stages are recorded, once `recording` has been asked
_lock = threading.RLock()


def settings() -> Settings:
    """Return what is in force."""
    return _settings


def recording() -> bool:
    """Return whether stages are recorded at all; the first call reads the environment."""
    if _configured:
        return is_active
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
    provider: Any = None,
) -> None:
    """Say where spans go.  Optional: every argument also has an environment variable.

    May be called again: what was recorded so far is delivered first, then the new settings hold.  Inside of
    `hotspan.testing.capture()` the arguments are checked, and what is recorded still goes to the test.

    Args:
        service_name: Name of the program in every backend (`OTEL_SERVICE_NAME`).
        file: Path of an OTLP/JSON lines file that is appended to, by one process or many (`HOTSPAN_FILE`).
        otlp: Base URL of an OTLP receiver, e.g. "http://127.0.0.1:4318" (`OTEL_EXPORTER_OTLP_ENDPOINT`).
        protocol: "http/protobuf" or "grpc" (`OTEL_EXPORTER_OTLP_PROTOCOL`).
        capture_content: Record prompts, documents, answers and exception messages
            (`HOTSPAN_CAPTURE_CONTENT`); off by default.
        sample_ratio: Share of requests to record, in [0, 1], decided at the root (`HOTSPAN_SAMPLE_RATIO`).
        span_processors: OpenTelemetry span processors.  Their `on_start` is called where a stage starts,
            their `on_end` later, from a thread of Hotspan's; they are shut down with it.
        provider: The application's own OpenTelemetry SDK tracer provider, if its processors are to receive
            every stage too.  It is used, and never changed or shut down.

    Raises:
        ConfigurationError: A value cannot be used; what was configured before stays in force.
    """
    global _called  # noqa: PLW0603 - one configuration per process
    given = {
        "service_name": service_name,
        "file": None if file is None else path_text(file),
        "otlp": otlp,
        "protocol": protocol,
        "capture_content": capture_content,
        "sample_ratio": sample_ratio,
        "span_processors": processors_of(span_processors) or None,
        "provider": provider,
    }
    chosen = from_environment(os.environ) | {key: value for key, value in given.items() if value is not None}
    new = checked(Settings(**chosen))
    if not _capturing:
        _apply(new)
        _called = True


def _apply(new: Settings) -> None:
    global _settings, _configured, is_active  # noqa: PLW0603 - one configuration per process
    with _lock:
        exporters = {} if is_disabled() else _make_exporters(new)
        n_open = _retire()
        _settings = new
        spans.keep_messages = new.capture_content
        spans.sample_bound = round(new.sample_ratio * 2**64)
        _configured = True
        if exporters:
            resource = _resource(new)
            channels = [Channel(exporter, name) for name, exporter in exporters.items()]
            born_ns = clock.now_ns() if _inherited is not None else 0
            recording_.install(Recorder(resource, channels, born_ns=born_ns, n_carried=n_open))
            is_active = True
            _end_with_worker_process()


def _make_exporters(new: Settings) -> dict[str, Exporter]:
    made: dict[str, Exporter] = {}
    try:
        for name, make in factories.items():
            exporter = make(new)
            if exporter is not None:
                made[name] = exporter
    except BaseException:
        for exporter in made.values():
            exporter.shutdown()
        raise
    return made


def _retire() -> int:
    """Deliver what the present recorder has, and return how many spans are still open."""
    global is_active  # noqa: PLW0603 - one configuration per process
    is_active = False
    recorder = recording_.installed()
    if recorder is None:
        return 0
    recording_.install(None)
    recorder.shutdown(EXIT_TIMEOUT_S, carry_on=True)
    return recorder.n_open()


def _end_with_worker_process() -> None:
    # A worker of `multiprocessing` leaves by os._exit: its own finalizers run, those of `atexit` do not.
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util  # noqa: PLC0415 - such a worker has imported it

        util.Finalize(None, _at_exit, exitpriority=100)


def _configure_from_environment() -> bool:
    with _lock:
        if not _configured:
            _apply_unasked(lambda: _inherited or checked(Settings(**from_environment(os.environ))))
        return is_active


def _apply_unasked(make: Callable[[], Settings]) -> None:
    global _configured  # noqa: PLW0603 - one configuration per process
    try:
        _apply(make())
    except Exception as exc:  # noqa: BLE001 - of exporters too
        # The program did not call us: it must not fail for a setting of ours, but has to be told.
        _configured = True
        recording_.warn(f"tracing is off: {exc}")


def for_worker() -> Settings | None:
    """Return what a process that does work for this one records with; None: this one records nothing."""
    return _without_objects(_settings) if recording() else None


def _without_objects(of: Settings) -> Settings:
    # Span processors and a provider belong to their process.
    return replace(of, span_processors=(), provider=None) if of.span_processors or of.provider else of


def adopt(parent: Settings) -> None:
    """Record where the process that gave this one work does, unless this one called `configure` itself."""
    global _inherited  # noqa: PLW0603 - one configuration per process
    with _lock:
        known = _inherited or (_settings if _configured else None)
        if _called or (known is not None and _without_objects(known) == parent):
            return
        _inherited = parent
        if _configured:
            _apply_unasked(lambda: parent)


def _resource(new: Settings, *, measure_cost: bool = True) -> Resource:
    import uuid  # noqa: PLC0415 - this and the next cost more to import than the rest of Hotspan
    from importlib import metadata  # noqa: PLC0415 - as above

    measures = {semconv.OVERHEAD_NS: overhead.span_cost_ns, semconv.CHUNK_OVERHEAD_NS: overhead.chunk_cost_ns}
    cost = {key: measure() for key, measure in measures.items()} if measure_cost else {}
    return Resource(
        {
            semconv.SERVICE_NAME: new.service_name,
            semconv.SERVICE_INSTANCE_ID: str(uuid.uuid4()),
            semconv.PROCESS_PID: os.getpid(),
            semconv.HOST_NAME: os.uname().nodename,
            semconv.SDK_NAME: "hotspan",
            semconv.SDK_LANGUAGE: "python",
            semconv.SDK_VERSION: metadata.version("hotspan"),
            semconv.CONVENTION: semconv.GENAI_CONVENTION_VERSION,
            semconv.SAMPLE_RATIO: float(new.sample_ratio),
            **cost,
        }
    )


def flush(timeout: float = EXIT_TIMEOUT_S) -> FlushResult:
    """Deliver every span that has ended so far, waiting at most `timeout` seconds.

    Returns:
        Whether all of it was delivered, and how many spans were delivered and lost since `configure`.
    """
    recorder = recording_.installed()
    return recorder.flush(timeout) if recorder is not None else FlushResult(ok=True, exported=0, lost=0)


def drain() -> None:
    """Hand every span that has ended to the exporters' queues, and wait for none of them."""
    recorder = recording_.installed()
    if recorder is not None:
        recorder.drain()


def shutdown(timeout: float = EXIT_TIMEOUT_S) -> FlushResult:
    """Deliver what can be delivered within `timeout` seconds, count the rest as lost, and stop recording.

    Called at the end of the interpreter by itself.  `configure` starts again.
    """
    global is_active  # noqa: PLW0603 - one configuration per process
    with _lock:
        is_active = False
        recorder = recording_.installed()
        if recorder is None:
            return FlushResult(ok=True, exported=0, lost=0)
        streaming.end_open_streams()
        recording_.install(None)
        return recorder.shutdown(timeout)


def _at_exit() -> None:
    try:
        shutdown()
    except KeyboardInterrupt:
        _log.warning("hotspan: interrupted while it delivered the last spans; what had not arrived is lost")


@contextmanager
def recording_to(exporter: Exporter, new: Settings) -> Iterator[Recorder]:
    """Record to `exporter` alone inside the `with` block, then restore what was configured before."""
    global _settings, _configured, is_active, _capturing
    before = (_capturing, _settings, _configured, is_active, recording_.installed())
    kept = (spans.keep_messages, spans.sample_bound)
    recorder = Recorder(_resource(new, measure_cost=False), [Channel(exporter, "memory")])
    recording_.install(recorder)
    _settings, _configured, is_active, _capturing = checked(new), True, True, True
    spans.keep_messages, spans.sample_bound = new.capture_content, round(new.sample_ratio * 2**64)
    try:
        yield recorder
    finally:
        recorder.shutdown(EXIT_TIMEOUT_S)
        _capturing, _settings, _configured, is_active, outer = before
        spans.keep_messages, spans.sample_bound = kept
        recording_.install(outer)


def _forget_parent() -> None:
    """Start clean in a forked child: the parent's spans are the parent's to write."""
    global _lock, is_active, _configured, _called, _capturing, _inherited  # noqa: PLW0603 - one configuration per process
    _lock = threading.RLock()  # another thread of the parent may have held the old one
    _called = _capturing = False
    streaming.forget_open_streams()
    if is_active:
        recording_.install(None)
        # Threads and exporters are made at the first span.
        is_active, _configured, _inherited = False, False, _settings


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
atexit.register(_at_exit)
