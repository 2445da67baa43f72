"""A small OTLP/HTTP receiver: another process's spans (an inference server's) join this one's.

    with hotspan.receiver() as receiver:
        start_server("--otlp-traces-endpoint", f"{receiver.endpoint}/v1/traces")

What arrives goes the way of this process's own spans, so that a request and the engine's part of it land in
the same file and the same backend.
"""

from __future__ import annotations

import errno
import threading
from collections import Counter
from typing import TYPE_CHECKING, Self

from hotspan.tracer import recorder
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.otlp_server import OtlpServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from hotspan.tracer.record import SpanRecord

_POLL_S = 0.05  # how long leaving the block may take to be noticed


class Receiver:
    """Receives OTLP traces over HTTP while its `with` block runs.

    Takes protobuf and JSON, plain or compressed, at `/v1/traces` and at the bare endpoint.  Spans that arrive
    while nothing is configured are counted here and go nowhere.

    Args:
        port: The port to listen on; 0 for any free one.
        host: The address to listen on.  The default takes nothing from other machines.

    Attributes:
        n_spans: How many spans have arrived.
        n_by_name: The same, by the span's name.
    """

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self.n_spans = 0
        self.n_by_name: Counter[str] = Counter()
        self._host, self._port = host, port
        self._arrived = threading.Condition()
        self._server: OtlpServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def endpoint(self) -> str:
        """The address to send to, such as `http://127.0.0.1:43180`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def __enter__(self) -> Self:
        """Begin to listen.

        Raises:
            ConfigurationError: The address cannot be listened on.
        """
        try:
            self._server = OtlpServer((self._host, self._port), self._take)
        except (OSError, OverflowError) as error:
            raise ConfigurationError(self._why_not(error)) from error
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="hotspan-receiver", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening; requests that are being answered are finished."""
        if self._server is not None and self._thread is not None:
            self._server.stop()
            self._thread.join()
            self._server = self._thread = None

    def wait(self, until: int | Callable[[], bool], timeout_s: float = 5.0) -> bool:
        """Wait until so many spans have arrived, or until a condition holds after an arrival.

        Args:
            until: A number of spans, or a function without arguments, such as
                `lambda: receiver.n_by_name["llm_request"] == 3`.
            timeout_s: The longest wait, in seconds.

        Returns:
            Whether it came true in time.
        """
        holds = until if callable(until) else lambda: self.n_spans >= until
        with self._arrived:
            return self._arrived.wait_for(holds, timeout_s)

    def _take(self, spans: list[SpanRecord]) -> None:
        recorder.submit(spans)
        with self._arrived:
            self.n_spans += len(spans)
            self.n_by_name.update(span.name for span in spans)
            self._arrived.notify_all()

    def _why_not(self, error: OSError | OverflowError) -> str:
        if isinstance(error, OverflowError):
            return f"The port {self._port} is not in 0 to 65535. Choose another, or 0 for any free one."
        if error.errno == errno.EADDRINUSE:
            return f"Port {self._port} on {self._host} is in use. Choose another, or 0 for any free one."
        where = f"{self._host}, port {self._port}"
        return f"The receiver cannot listen on {where}: {error.strerror}. Choose another address."
