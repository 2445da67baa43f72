"""One logical model call and its span: attempts, the times around sending, and the way it ended.  No I/O.

start     attempt 1       back-off      attempt 2   send                          first byte
|---------|---------------|-------------|-----------|---------------|-------------|------ … end
connect     write, headers  TTFB from send
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import propagate

from hotspan.tracer import clock, config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.context import attach, detach
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.generation import TokenClock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.context import Context

    from hotspan.tracer.clients.urls import Endpoint

OPEN: Final = "open"
_FIRST_ERROR_STATUS: Final = 400
_REQUEST_KEYS: Final = {
    "max_tokens": semconv.REQUEST_MAX_TOKENS,
    "max_completion_tokens": semconv.REQUEST_MAX_TOKENS,
    "max_output_tokens": semconv.REQUEST_MAX_TOKENS,
    "temperature": semconv.REQUEST_TEMPERATURE,
    "top_k": semconv.REQUEST_TOP_K,
}
_CHAT: Final = semconv.OPERATION_OF_STAGE[semconv.GENERATION]


class Attempt:
    """The stamps of one HTTP request (monotonic ns; 0 where the transport did not say).

    Attributes:
        failed_connects: Error and duration (ns) of each connection that the transport tried before, and then
            tried again by itself; the stamps are those of the last try.
    """

    __slots__ = ("_failure", "failed_connects", "headers_ns", "send_ns", "started_ns", "written_ns")

    def __init__(self) -> None:
        self.started_ns = clock.now_ns()
        self.failed_connects: list[tuple[str, int]] = []
        self._failure = ""
        self.send_ns = 0
        self.written_ns = 0
        self.headers_ns = 0

    def trace(self, event: str, info: Any) -> None:
        """Take one of httpx's `trace` events, e.g. `http11.send_request_headers.started`."""
        step = event.partition(".")[2]
        if step == "send_request_headers.started":
            self.send_ns = clock.now_ns()
        elif step == "send_request_body.complete":
            self.written_ns = clock.now_ns()
        elif step == "receive_response_headers.complete":
            self.headers_ns = clock.now_ns()
        elif step in {"connect_tcp.failed", "start_tls.failed"}:
            self._failure = type(info["exception"]).__qualname__
        elif step == "retry.started":
            self.failed_connects.append((self._failure, clock.now_ns() - self.started_ns))
        elif step == "retry.complete":  # it has waited
            self.started_ns = clock.now_ns()

    async def trace_async(self, event: str, info: object) -> None:
        """`trace`, as httpx's asynchronous client wants it."""
        self.trace(event, info)


class Call:
    """One model call: its request, its span, and every attempt at it.

    Args:
        target: The server.
        body: The request's JSON object; `model` and `messages` are in it.
        context: The OpenTelemetry context of whoever made the call; the span becomes its child.
    """

    operation = _CHAT
    stage = semconv.GENERATION

    def __init__(self, target: Endpoint, body: Mapping[str, Any], context: Context) -> None:
        self.body = dict(body)
        self.content = b""
        self.tokens = TokenClock(0)
        self.attempt = Attempt()
        self.n_attempts = 0
        self.status = OPEN
        self._target = target
        self._engine: str | None = None
        self._context = context
        self._first_attempt_ns = 0
        self._http_status: int | None = None
        self._span: spans.Span = spans.NOOP_SPAN

    # --- Start --------------------------------------------------------------------------------------------

    def start(self, engine: str | None) -> None:
        """Start the span below the one that was current where the call was made; `engine` is what answers."""
        try:
            self.content = json.dumps(self.body, allow_nan=False).encode()
        except ValueError as exc:  # Python would write NaN, which is no JSON: the server gets the blame
            msg = f"the request cannot be written as JSON: {exc}. Look at its numbers"
            raise ConfigurationError(msg) from exc
        self._engine = engine
        self._start_span()

    def _start_span(self) -> None:
        token = attach(self._context)
        try:
            name = f"{self.operation} {self.body['model']}"
            self._span = spans.start_span(name, self.stage, self._request_attributes(), kind="client")
        finally:
            detach(token)

    def _request_attributes(self) -> dict[str, Any]:
        body = self.body
        found: dict[str, Any] = {
            semconv.OPERATION: self.operation,
            semconv.PROVIDER: self._provider(),
            semconv.REQUEST_MODEL: body["model"],
            semconv.REQUEST_STREAM: bool(body.get("stream")),
            semconv.SERVER_ADDRESS: self._target.host,
            semconv.SERVER_PORT: self._target.port,
        }
        if self._engine is not None:
            found[semconv.ENGINE] = self._engine
        found.update({key: body[name] for name, key in _REQUEST_KEYS.items() if body.get(name) is not None})
        if config.settings().capture_content:
            found[semconv.INPUT_MESSAGES] = json.dumps([_as_parts(m) for m in self._messages()], default=str)
        return found

    def _messages(self) -> list[Any]:
        messages: list[Any] = self.body["messages"]
        return messages

    def _provider(self) -> str:
        if self._engine is not None:
            return self._engine
        return "openai" if self._target.host.endswith("openai.com") else "openai-compatible"

    def headers(self) -> dict[str, str]:
        """Return the headers that make the server's spans children of this call's span."""
        found: dict[str, str] = {}
        token = self.enter()
        try:
            propagate.inject(found)
        finally:
            self.leave(token)
        return found

    def enter(self) -> object:
        """Make the call's span (the caller's context, when nothing is traced) current."""
        return attach(self._context if self._span is spans.NOOP_SPAN else self._span)

    def leave(self, token: object) -> None:
        """Undo `enter`."""
        detach(token)

    # --- Attempts -----------------------------------------------------------------------------------------

    def begin_attempt(self) -> Attempt:
        """Note that the request is about to be sent, again perhaps, and return the attempt's stamps."""
        self.attempt = attempt = Attempt()
        self.n_attempts += 1
        if self.n_attempts == 1:
            self._first_attempt_ns = attempt.started_ns
        self._http_status = None
        return attempt

    def answered(self, status: int, headers: Mapping[str, str], read_ns: int) -> None:
        """Note that the response's headers are here; the answer's clock starts at this attempt's send.

        Args:
            status: HTTP status.
            headers: The response's headers.
            read_ns: When the read that completed them returned, 0 where the transport does not know.
        """
        self._note_failed_connects()
        attempt = self.attempt
        attempt.headers_ns = read_ns or attempt.headers_ns
        self._http_status = status
        if status >= _FIRST_ERROR_STATUS:
            self._note_failed_attempt(clock.now_ns() - attempt.started_ns, {semconv.HTTP_STATUS: status})
        self.tokens = TokenClock(attempt.send_ns or attempt.started_ns)
        if self._engine is None and headers.get("server", "").startswith("llama.cpp"):
            self._engine = "llamacpp"
            self._span.set(semconv.ENGINE, self._engine).set(semconv.PROVIDER, self._engine)

    def unanswered(self, exc: BaseException) -> None:
        """Note that the attempt met no answer: no connection, a lost one, a timeout."""
        self._note_failed_connects()
        duration_ns = clock.now_ns() - self.attempt.started_ns
        self._note_failed_attempt(duration_ns, {semconv.ERROR_TYPE: type(exc).__qualname__})

    def _note_failed_connects(self) -> None:
        """Count the connections that the transport tried by itself before the last: each is an attempt."""
        for why, duration_ns in self.attempt.failed_connects:
            self._note_failed_attempt(duration_ns, {semconv.ERROR_TYPE: why})
            self.n_attempts += 1
        self.attempt.failed_connects.clear()

    def _note_failed_attempt(self, duration_ns: int, why: dict[str, Any]) -> None:
        account = {semconv.ATTEMPT_NUMBER: self.n_attempts, semconv.ATTEMPT_DURATION_NS: duration_ns, **why}
        self._span.add_event(semconv.ATTEMPT_EVENT, account)

    # --- End ----------------------------------------------------------------------------------------------

    def end_ok(self) -> None:
        """End the span of an answer that came whole."""
        self._end(self.tokens.status)

    def end_truncated(self, exc: Exception) -> None:
        """End the span of an answer that broke off."""
        if self.status == OPEN:
            self._span.set(semconv.ERROR_TYPE, type(exc).__qualname__)
            self._span.outcome(semconv.TRUNCATED)
        self._end(semconv.TRUNCATED)

    def end_by(self, exc: BaseException) -> None:
        """End the span of a call that an exception ended: an error, a cancelled task, an abandoned stream."""
        if self.status == OPEN:
            self._span.fail(exc)
            if isinstance(exc, Exception) and self.tokens.error_name is not None:
                self._span.set(semconv.ERROR_TYPE, self.tokens.error_name)  # says more than the class
        outcome = self._span.attributes.get(semconv.OUTCOME)
        self._end(str(outcome) if outcome is not None else _status_of(exc))

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes that only the way of consuming knows; before the end."""
        self._span.set_many(attributes)

    def note_answer(self, text: str, finish_reason: str | None) -> None:
        """Keep the answer's text, if content is to be kept."""
        if config.settings().capture_content and text:
            part = {"type": "text", "content": text}
            message = {"role": "assistant", "parts": [part], "finish_reason": finish_reason}
            self._span.set(semconv.OUTPUT_MESSAGES, json.dumps([message]))

    def _end(self, status: str) -> None:
        if self.status != OPEN:
            return
        self.status = status
        if self._span.recording:
            if status == "error" and self._span.status == "unset":  # the server said so without an exception
                self._span.set(semconv.ERROR_TYPE, self.tokens.error_name or "finish_reason")
                self._span.status = "error"
            self._span.set_many(self._timing_attributes())
            self._span.set_many(self.tokens.attributes())
        self._span.end()

    def _timing_attributes(self) -> dict[str, Any]:
        attempt, start_ns = self.attempt, self._span.start_ns
        found: dict[str, Any] = {semconv.ATTEMPTS: self.n_attempts}
        if self.n_attempts > 1:
            found[semconv.BACKOFF_NS] = attempt.started_ns - self._first_attempt_ns
        if self._http_status is not None:
            found[semconv.HTTP_STATUS] = self._http_status
        if self.tokens.is_whole and self.body.get("stream"):
            found[semconv.BUFFERED] = True
        if attempt.send_ns:
            found[semconv.SEND_OFFSET_NS] = attempt.send_ns - start_ns
            found[semconv.CONNECT_NS] = attempt.send_ns - attempt.started_ns
            if attempt.written_ns:
                found[semconv.REQUEST_WRITE_NS] = attempt.written_ns - attempt.send_ns
            if attempt.headers_ns:
                found[semconv.HEADERS_NS] = attempt.headers_ns - attempt.send_ns
        elif self._http_status is not None:  # a transport of the user's own: the send is where we called it
            found[semconv.SEND_OFFSET_NS] = attempt.started_ns - start_ns
        return found


def _status_of(exc: BaseException) -> str:
    """Return the status by the kind of exception, for a call that is not recorded."""
    if isinstance(exc, GeneratorExit):
        return semconv.ABANDONED
    if isinstance(exc, Exception):
        return "error"
    return semconv.INTERRUPTED if isinstance(exc, (KeyboardInterrupt, SystemExit)) else semconv.CANCELLED


def _as_parts(message: Any) -> dict[str, Any]:
    """Return one message in the shape of OpenTelemetry's conventions."""
    if not hasattr(message, "get"):
        return {"role": "user", "parts": [{"type": "text", "content": str(message)}]}
    content = message.get("content")
    parts: Sequence[Any] = content if isinstance(content, list) else [{"type": "text", "content": content}]
    return {"role": message.get("role"), "parts": parts}
