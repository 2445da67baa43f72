"""`AsyncLLM.generate`: the stream of outputs of one request, cumulative, in deltas, or the last one alone."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.clients.vllm_output import (
    ABORTED,
    ENGINE,
    account,
    content,
    request_attributes,
    times_of_whole,
    trace_headers,
    usage_of,
)
from hotspan.tracer.decorate import with_flags_of
from hotspan.tracer.faults import fault
from hotspan.tracer.streaming import Stream, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_OPERATION: Final = "text_completion"
_DELTA, _FINAL_ONLY = "DELTA", "FINAL_ONLY"  # `RequestOutputKind`; else an output holds all that there is


def traced_generate(original: Callable[..., Any], model: str) -> Callable[..., Any]:
    """Return `AsyncLLM.generate`, each of its streams traced."""
    signature = inspect.signature(original)

    def generate(llm: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not config.recording():
            return original(llm, *args, **kwargs)
        try:
            given = signature.bind(llm, *args, **kwargs).arguments
        except TypeError:
            return original(llm, *args, **kwargs)  # which says it better
        params = given.get("sampling_params")
        kind = getattr(getattr(params, "output_kind", None), "name", "")
        span = _start(model, params, stream=kind != _FINAL_ONLY)
        if not span.recording:
            return original(llm, *args, **kwargs)
        if given.get("trace_headers") is None and (headers := trace_headers(llm, span)) is not None:
            kwargs["trace_headers"] = headers
        return follow(original(llm, *args, **kwargs), Outputs(span, kind))

    return with_flags_of(original, generate)


def _start(model: str, params: Any, *, stream: bool) -> spans.Span:
    attributes = {
        semconv.OPERATION: _OPERATION,
        semconv.PROVIDER: ENGINE,
        semconv.ENGINE: ENGINE,
        semconv.REQUEST_MODEL: model,
    }
    request = request_attributes(params, stream=stream)
    attributes.update({key: value for key, value in request.items() if value is not None})
    return spans.start_span(f"{_OPERATION} {model}", semconv.GENERATION, attributes, kind="client")


class Outputs(Stream):
    """The outputs of one request, as they come.

    Args:
        span: The call's span.
        kind: Name of the `RequestOutputKind`.
    """

    __slots__ = ("_kind", "_n_tokens", "_texts")

    def __init__(self, span: spans.Span, kind: str) -> None:
        super().__init__(span, generation=True)
        self._kind = kind
        self._n_tokens: Counter[int] = Counter()  # by answer
        self._texts: dict[int, str] = {}  # the same; kept only with content

    def feed(self, stamp_ns: int, item: Any) -> int:
        """Take one output; its tokens came at `stamp_ns`."""
        try:
            self._take(stamp_ns, item)
        except Exception as own:  # noqa: BLE001 - the user gets the output, whatever we make of it
            fault(own)
        return 1

    def _take(self, stamp_ns: int, output: Any) -> None:
        chunk: dict[str, Any] = {
            "choices": [self._choice(answer) for answer in output.outputs],
            "id": output.request_id,
        }
        if output.finished:
            chunk["usage"] = usage_of(output, self._n_tokens.total())
            self._finish(stamp_ns, output)
        if self.tokens is not None:
            if self._kind == _FINAL_ONLY:
                self.tokens.read_whole(chunk)
            else:
                self.tokens.feed(stamp_ns, chunk)

    def _choice(self, answer: Any) -> dict[str, Any]:
        index, n_tokens = answer.index, len(answer.token_ids)
        n_new = n_tokens if self._kind == _DELTA else n_tokens - self._n_tokens[index]
        self._n_tokens[index] += n_new
        if config.settings().capture_content:
            before = self._texts.get(index, "") if self._kind == _DELTA else ""
            self._texts[index] = before + answer.text
        delta = {"content": "token"} if n_new > 0 else {}
        return {"index": index, "delta": delta, "finish_reason": answer.finish_reason}

    def _finish(self, stamp_ns: int, output: Any) -> None:
        span, metrics = self.span, output.metrics
        span.set_many(account(metrics))
        if self._kind == _FINAL_ONLY:
            span.set_many(times_of_whole(metrics, stamp_ns - span.start_ns))
        reasons = {answer.index: answer.finish_reason for answer in output.outputs}
        texts: Iterable[tuple[str, str | None]] = (
            (text, reasons.get(index)) for index, text in sorted(self._texts.items())
        )
        span.set_many(content(output.prompt, texts))
        if ABORTED in reasons.values():
            span.outcome(semconv.CANCELLED)
        elif "error" in reasons.values():
            span.set(semconv.ERROR_TYPE, "finish_reason")
            span.status = "error"
