"""Samples an engine's metrics endpoint while a run goes on: how many requests run and wait, and why.

    with hotspan.sample_engine("http://127.0.0.1:8000"):
        run()

What it reads goes into the trace file as OTLP metrics, beside the spans of the run.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from hotspan.tracer import clock, config, metric, recorder, semconv
from hotspan.tracer.engines import ENGINES, prometheus
from hotspan.tracer.errors import ConfigurationError, HotspanError
from hotspan.tracer.gpu import Gpus
from hotspan.tracer.metric import MetricPoint
from hotspan.tracer.record import Resource

if TYPE_CHECKING:
    from types import TracebackType

    import httpx

    from hotspan.tracer.engines.prometheus import Reading
    from hotspan.tracer.metric import MetricSink
    from hotspan.tracer.record import AttributeValue

_TIMEOUT_S: Final = 2.0  # for the endpoint to answer
_SETTLE_S: Final = 0.2  # a server counts a request some moments after its answer
_FIRST_S: Final = 1.0  # that entering waits for it
_MAX_BYTES: Final = 16 << 20
_PATHS: Final = tuple(dict.fromkeys(path for engine in ENGINES for path in engine.metrics_paths))
_UNITS: Final = {10**9: "s", 10**3: "us"}
_OPTIONS: Final = "Some servers have metrics only when they are told to: " + ", ".join(
    f"{engine.name} by {engine.metrics_option}" for engine in ENGINES if engine.metrics_option
)


class EngineSampler:
    """Samples a server's metrics, and this machine's GPUs, in a thread of its own while its block runs.

    Never in the traced program's way: a server that does not answer is one warning.  Only entering and
    leaving wait, for the first and the last sample, so that what the engine counts covers the run: a second
    and some seconds at most.  Samples are written while `configure` has a trace file; without one nothing is
    sampled.

    Args:
        url: The server's address, with or without `/v1`, or that of its metrics endpoint itself: vLLM,
            SGLang, llama.cpp, TensorRT-LLM, Triton (which has it on a port of its own).
        interval_s: Seconds between two samples, over 0.
        gpu: True samples the GPUs of this machine and refuses where it cannot; None does where the server is
            on this machine, it has GPUs, and nvidia-ml-py is installed; False does not.

    Raises:
        ConfigurationError: The address or the interval cannot be used, or `gpu=True` without a GPU.
        MissingDependencyError: `gpu=True` without nvidia-ml-py.

    Attributes:
        n_samples: How many times the endpoint was read.
        url: The endpoint that answers, once one did.
    """

    def __init__(self, url: str, *, interval_s: float = 1.0, gpu: bool | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            msg = f"{url!r} is no address of a server. Give one such as http://127.0.0.1:8000."
            raise ConfigurationError(msg)
        is_number = isinstance(interval_s, int | float) and not isinstance(interval_s, bool)
        if not is_number or not 0 < interval_s <= threading.TIMEOUT_MAX:
            msg = f"interval_s={interval_s!r} is no time between samples. Give seconds over 0, such as 1.0."
            raise ConfigurationError(msg)
        self.n_samples = 0
        self.url: str | None = None
        self._interval_s = interval_s
        self._address = f"{parts.scheme}://{parts.netloc}"
        self._candidates = _candidates(self._address, parts.path)
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        is_local = self._host in {"localhost", "::1"} or self._host.startswith("127.")
        self._gpus = _gpus(required=gpu is True) if gpu or (gpu is None and is_local) else None
        self._is_local = is_local
        self._resources: dict[str, Resource] = {}
        self._sinks: tuple[object, list[MetricSink]] = (None, [])
        self._warned = False
        self._begun, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="hotspan-sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.wait(_FIRST_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take a last sample, so that what the engine counted covers the run, and stop."""
        self._stopping.set()
        self._thread.join(2 * _TIMEOUT_S)

    def _run(self) -> None:
        import httpx  # noqa: PLC0415 - in this thread: entering does not wait for the import

        # A proxy cannot reach this machine's own loopback.
        with httpx.Client(timeout=_TIMEOUT_S, trust_env=not self._is_local) as client:
            is_last = False
            while not is_last:
                is_last = self._stopping.is_set()
                if is_last:
                    time.sleep(_SETTLE_S)
                self._sample(client)
                self._begun.set()
                if not is_last:
                    self._stopping.wait(self._interval_s)
        if self._gpus is not None:
            self._gpus.close()

    def _sample(self, client: httpx.Client) -> None:
        try:
            if sinks := self._present_sinks():
                points = [*self._points(client), *self._gpu_points()]
                for sink in sinks:
                    sink.write(points)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the traced program goes on
            self._warn(f"the engine at {self._address} is not sampled: {type(exc).__name__}: {exc}")

    def _present_sinks(self) -> list[MetricSink]:
        # The program may call `configure` while it is sampled.
        if not config.recording():
            return []
        now = config.settings()
        if now is not self._sinks[0]:
            made = [make(now) for make in metric.sink_factories]
            self._sinks = now, [sink for sink in made if sink is not None]
        return self._sinks[1]

    def _points(self, client: httpx.Client) -> list[MetricPoint]:
        problems: list[str] = []
        found: list[Reading] = []
        for url in [self.url] if self.url else self._candidates:
            found, problem = self._read(client, url)
            if found:
                self.url, self.n_samples = url, self.n_samples + 1
                break
            problems.append(problem)
        if problems and not found:
            self._warn(f"the engine at {self._address} is not sampled: {problems[0]}")
        now_ns = clock.to_wall_ns(clock.now_ns())
        return [self._point(reading, now_ns) for reading in found]

    def _read(self, client: httpx.Client, url: str) -> tuple[list[Reading], str]:
        """Return what an address says, or why it says nothing."""
        import httpx  # noqa: PLC0415 - is imported when this is called

        try:
            with client.stream("GET", url) as response:
                if not response.is_success:
                    return [], f"{url} answered {response.status_code}. {_OPTIONS}"
                body = b""
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > _MAX_BYTES:
                        return [], f"{url} does not end"
        except httpx.HTTPError as exc:
            return [], f"{url} does not answer ({type(exc).__name__})"
        found = prometheus.readings(body.decode(errors="replace"))
        return found, "" if found else f"{url} has no metrics of a known engine. {_OPTIONS}"

    def _point(self, reading: Reading, now_ns: int) -> MetricPoint:
        series = reading.series
        return MetricPoint(
            reading.name,
            series.kind,
            now_ns,
            reading.value,
            reading.n_observed,
            _UNITS.get(round(series.scale), "1"),
            dict(reading.labels),
            self._resource(reading.engine.name),
        )

    def _resource(self, engine: str) -> Resource:
        if engine not in self._resources:
            where: dict[str, AttributeValue] = {semconv.ENGINE: engine}
            where |= {semconv.SERVER_ADDRESS: self._host, semconv.SERVER_PORT: self._port}
            self._resources[engine] = Resource(where)
        return self._resources[engine]

    def _gpu_points(self) -> list[MetricPoint]:
        return [] if self._gpus is None else self._gpus.readings(clock.to_wall_ns(clock.now_ns()))

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            recorder.warn(message)


def _candidates(address: str, path: str) -> list[str]:
    """Return where the metrics may be: at a path of the user's own, or where servers have them."""
    path = path.rstrip("/").removesuffix("/v1")
    if path.endswith("/metrics"):
        return [address + path]
    return [address + path + own for own in _PATHS]


def _gpus(*, required: bool) -> Gpus | None:
    if not required and not os.path.exists("/proc/driver/nvidia"):  # noqa: PTH110 - no more than a look
        return None
    try:
        return Gpus()
    except HotspanError:
        if required:
            raise
        return None
