"""One call through the openai client: which requests are model calls, their attempts, and how they end."""

from __future__ import annotations

import contextvars
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hotspan.tracer import clock, config, semconv
from hotspan.tracer.clients.call import OPEN, Call
from hotspan.tracer.clients.openai_body import Body
from hotspan.tracer.clients.openai_pace import Pace
from hotspan.tracer.clients.openai_tap import tap
from hotspan.tracer.clients.urls import Endpoint
from hotspan.tracer.context import get_context
from hotspan.tracer.faults import fault
from hotspan.tracer.generation import TokenClock
from hotspan.tracer.span import NOOP_SPAN

if TYPE_CHECKING:
    from collections.abc import Mapping

_RAW_HEADER: Final = "x-stainless-raw-response"  # how the client's raw responses are asked for
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Method(NamedTuple):
    """What a path of the API does, as OpenTelemetry's conventions call it, and its stage."""

    operation: str
    stage: str


METHODS: Final = {
    "/chat/completions": Method("chat", semconv.GENERATION),
    "/completions": Method("text_completion", semconv.GENERATION),
    "/responses": Method("chat", semconv.GENERATION),
    "/embeddings": Method("embeddings", semconv.EMBEDDING),
}


class _Unstamped:
    """A connection of which nothing is known: what it hands out was read now."""

    @property
    def read_ns(self) -> int:
        """Monotonic ns."""
        return clock.now_ns()


_UNSTAMPED: Final = _Unstamped()

# The call whose request is being sent: how the HTTP client's `send` knows whose attempt it carries out.
active: contextvars.ContextVar[OpenAICall | None] = contextvars.ContextVar("hotspan-openai", default=None)


class OpenAICall(Call):
    """One model call of an openai client, from its request to the end of its body.

    Args:
        method: What is called.
        client: The openai client.
        body: The request's JSON object; it is only looked at.
        is_async: Whether the client is an asynchronous one.
        hide_usage: Whether the chunk that only carries usage is kept from the user, who did not ask for it.
    """

    def __init__(
        self, method: Method, client: Any, body: Mapping[str, Any], *, is_async: bool, hide_usage: bool
    ) -> None:
        super().__init__(_endpoint(client.base_url), {"model": None, **body}, get_context())
        self.operation, self.stage = method
        self.is_async = is_async
        self.pace: Pace | None = None
        self.network: Any = _UNSTAMPED
        self._is_azure = "Azure" in type(client).__name__
        self._hide_usage = hide_usage
        self._response: Any = None  # the answer, when its body was read at once
        self._is_tapped = False  # the body is read by the user
        self._reader: Body | None = None
        self._returned_ns = 0
        self._pid = os.getpid()

    @property
    def is_traced(self) -> bool:
        """Whether a span was started: tracing may be off."""
        return self._span is not NOOP_SPAN

    def start(self, engine: str | None = None) -> None:
        """Start the span; `engine` is what answers, where that is known."""
        self._engine = engine
        self._start_span()

    def _request_attributes(self) -> dict[str, Any]:
        found = super()._request_attributes()
        if self.stage == semconv.EMBEDDING:
            del found[semconv.REQUEST_STREAM]
            found.pop(semconv.INPUT_MESSAGES, None)
            found[semconv.BATCH_SIZE] = _n_texts(self.body.get("input"))
        return {key: value for key, value in found.items() if value is not None}

    def _messages(self) -> list[Any]:
        for name in ("messages", "input", "prompt"):
            value = self.body.get(name)
            if value is not None:
                return list(value) if isinstance(value, (list, tuple)) else [value]
        return []

    def _provider(self) -> str:
        if self._is_azure:
            return "azure.ai.openai"
        return super()._provider()

    # --- Attempts -----------------------------------------------------------------------------------------

    def prepare(self, request: Any) -> None:
        """Add the trace's headers to an attempt that is about to be sent, and ask for its moments.

        Headers and hooks that the user has set himself stay as they are.
        """
        attempt = self.begin_attempt()
        for name, value in self.headers().items():
            request.headers.setdefault(name, value)
        request.extensions.setdefault("trace", attempt.trace_async if self.is_async else attempt.trace)

    def take(self, response: Any) -> None:
        """Note an attempt's response; a body that the user will read is read in passing."""
        self.answered(response.status_code, response.headers, 0)
        self._response = self._reader = None
        if not response.is_success:
            return
        if response.is_closed:
            self._response = response
            return
        if "content-encoding" not in response.headers:
            self._reader = self._body(response.headers.get("content-type", ""))
        self._is_tapped = tap(response, self, None if self._reader is None else self._reader.feed)

    def _body(self, content_type: str) -> Body:
        keep_text = config.settings().capture_content
        has_vectors = self.stage == semconv.EMBEDDING
        return Body(self.tokens, content_type, has_vectors=has_vectors, keep_text=keep_text)

    def adopt(self, result: Any) -> None:
        """Take what the client is about to return: a stream is paced, a whole answer ends the call."""
        if self._response is not None:
            self.end_whole()
            return
        self._returned_ns = clock.now_ns()
        if not self.n_attempts:  # they do not pass by us
            self.tokens = TokenClock(self.attempt.started_ns)
        feed = None if self._reader is not None else self.tokens.feed
        self.pace = pace = Pace(self, feed=feed, hide_usage=self._hide_usage)
        # A raw response is paced by its pieces, which its tap hands out; see there.
        if not pace.take_place(result) and not self._is_tapped:
            self.pace = None
            self.tokens.read_whole(result)
            self.end_whole()

    def read_ns(self) -> int:
        """Return when the bytes that were handed out last were read."""
        return int(self.network.read_ns)

    # --- End ----------------------------------------------------------------------------------------------

    def end_whole(self) -> None:
        """End the call of an answer whose body came to its end, whatever it turned out to be."""
        if self.status != OPEN:
            return
        self._read_answer()
        status = self.tokens.status
        if status == semconv.TRUNCATED:
            self._span.set(semconv.ERROR_TYPE, semconv.TRUNCATED)
            self._span.outcome(semconv.TRUNCATED)
        self._end(status)

    def end_broken(self, exc: BaseException) -> None:
        """End the call whose body could not be read to its end."""
        if self.tokens.complete:
            self.end_whole()
        elif isinstance(exc, Exception) and self.tokens.framed and "Timeout" not in type(exc).__name__:
            self.end_truncated(exc)
        elif not self._is_pulled:
            self.end_by(exc)

    def end_body(self, stamp_ns: int) -> None:
        """End the call at the end of its body."""
        if self._reader is not None and self.status == OPEN:
            self._reader.end(stamp_ns)
        self.end_whole()

    def end_closed(self, exc: BaseException | None) -> None:
        """End the call whose body was closed, while `exc` was on its way up in the user's code.

        That is an abandoned answer, unless all of it was there, or the task or the program is being ended.
        While the user waits for an item, the client closes the body itself: what comes of it, he will see.
        """
        if self.status != OPEN or self._is_pulled:
            return
        if self.tokens.complete or self.tokens.status == "error":
            self.end_whole()
        else:
            self.end_by(GeneratorExit() if exc is None or isinstance(exc, Exception) else exc)

    @property
    def _is_pulled(self) -> bool:
        """Whether the user waits for an item, and its pace will see what he gets."""
        return self.pace is not None and self.pace.is_pulling

    def _read_answer(self) -> None:
        if self._response is None:
            return
        response, self._response = self._response, None
        content_type = response.headers.get("content-type", "")
        self._reader = self._body(content_type if "event-stream" in content_type else "json")
        self.tokens.held.add(0)  # of events that were not asked for nothing tells when they came
        self._reader.feed(0, response.content)
        self._reader.end(0)

    def _end(self, status: str) -> None:
        if self._pid != os.getpid():  # a forked process has a copy of its parent's call
            self.status = status
            return
        if self.status == OPEN:
            try:
                self._note_consumption()
            except Exception as own:  # noqa: BLE001 - the span ends all the same
                fault(own)
        super()._end(status)

    def _note_consumption(self) -> None:
        if self._reader is not None:
            self.note_answer("".join(self._reader.text), None)
        pace = self.pace
        if pace is not None:
            hold_ns = pace.total_hold_ns()
            self.note(
                {
                    semconv.STREAM_ITEMS: pace.n_items,
                    semconv.STREAM_BUSY_NS: max(0, clock.now_ns() - self._returned_ns - hold_ns),
                    semconv.STREAM_HOLD_NS: hold_ns,
                }
            )


def method_of(options: Any) -> Method | None:
    """Return what a request of the client does, None for one that is no model call."""
    if str(options.method).lower() != "post":
        return None
    return METHODS.get(str(options.url).partition("?")[0])


def wants_raw(options: Any) -> bool:
    """Return whether the user asked for the HTTP response instead of its meaning."""
    headers = options.headers
    return hasattr(headers, "items") and any(name.lower() == _RAW_HEADER for name in dict(headers))


def _endpoint(url: Any) -> Endpoint:
    port = url.port or _DEFAULT_PORTS.get(url.scheme, 0)
    shown = f"{url.scheme}://{url.host}:{port}{url.path}"
    return Endpoint(str(url), url.scheme, url.host, port, shown)


def _n_texts(given: object) -> int | None:
    """Return how many texts an embeddings call has: each is a string, or a list of token ids."""
    if isinstance(given, str):
        return 1
    if not isinstance(given, (list, tuple)) or not given:
        return None
    return 1 if isinstance(given[0], int) else len(given)
