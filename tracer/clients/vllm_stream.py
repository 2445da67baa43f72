"""`AsyncLLM.generate`: the stream of outputs of one request, cumulative, in deltas, or the last one alone."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import config, semconv
from hotspan.tracer.clients.local_call import start_generation
from hotspan.tracer.clients.vllm_output import (
    ABORTED,
    ENGINE,
    account,
    content,
    engine_tpot_ns,
    request_attributes,
    times_of_whole,
    trace_headers,
    usage_of,
)
from hotspan.tracer.decorate import with_flags_of
from hotspan.tracer.faults import fault
from hotspan.tracer.holds import was_held
from hotspan.tracer.streaming import Stream, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hotspan.tracer.span import Span

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
        request = request_attributes(params, stream=kind != _FINAL_ONLY)
        request[semconv.RESPONSE_ID] = given.get("request_id")
        span = start_generation(ENGINE, _OPERATION, model, request)
        if not span.recording:
            return original(llm, *args, **kwargs)
        if given.get("trace_headers") is None and (headers := trace_headers(llm, span)) is not None:
            kwargs["trace_headers"] = headers
        return follow(original(llm, *args, **kwargs), Outputs(span, kind))

    return with_flags_of(original, generate)


class Outputs(Stream):
    """The outputs of one request, as they come.

    Args:
        span: The call's span.
        kind: Name of the `RequestOutputKind`.
    """

    __slots__ = (
        "_answers", "_engine_tpot_ns", "_is_delta", "_is_stream", "_keeps_text", "_n_tokens", "_reasons",
    )  # fmt: skip

    def __init__(self, span: Span, kind: str) -> None:
        super().__init__(span, generation=True)
        self._is_delta, self._is_stream = kind == _DELTA, kind != _FINAL_ONLY
        self._keeps_text = config.settings().capture_content
        self._n_tokens: dict[int, int] = {}  # by answer
        self._answers: dict[int, str] = {}  # texts; kept only with content
        self._reasons: dict[int, str] = {}  # why an answer ended
        self._engine_tpot_ns: float | None = None

    def feed(self, stamp_ns: int, item: Any) -> int:
        """Take one output, its tokens came at `stamp_ns`; return 0 if `texts` accounts for it, else 1."""
        n_texts = len(self.texts)
        try:
            for answer in item.outputs:
                self._add(stamp_ns, answer)
            if item.finished:
                self._finish(stamp_ns, item)
        except Exception as own:  # noqa: BLE001 - the user gets the output, whatever we make of it
            fault(own)
        return int(len(self.texts) == n_texts)

    def _add(self, stamp_ns: int, answer: Any) -> None:
        # Hot: the stamps of the first answer, as a rule the only one, are kept as those of text are.
        index, n_tokens = answer.index, len(answer.token_ids)
        before = self._n_tokens.get(index, 0)
        after = self._n_tokens[index] = before + n_tokens if self._is_delta else n_tokens
        if after > before and self._is_stream:
            if index == 0:
                self.texts.append(stamp_ns)
            elif self.tokens is not None:
                self.tokens.feed(stamp_ns, {"choices": [{"index": index, "delta": {"content": "token"}}]})
        if answer.finish_reason is not None:
            self._reasons[index] = answer.finish_reason
        if self._keeps_text:
            said = self._answers.get(index, "") if self._is_delta else ""
            self._answers[index] = said + answer.text

    def _finish(self, stamp_ns: int, output: Any) -> None:
        span, metrics, reasons = self.span, output.metrics, self._reasons
        if self.tokens is not None:
            choices = [{"index": index, "finish_reason": reason} for index, reason in reasons.items()]
            usage = usage_of(output, sum(self._n_tokens.values()))
            self.tokens.read_whole({"choices": choices, "usage": usage})
        span.set_many(account(metrics))
        if len(self._n_tokens) == 1:  # of several answers, the metrics are those of one
            self._engine_tpot_ns = engine_tpot_ns(metrics)
        if not self._is_stream:
            span.set_many(times_of_whole(metrics, stamp_ns - span.start_ns, len(self._n_tokens)))
        answers = sorted(self._answers.items())
        span.set_many(content(output.prompt, [(text, reasons.get(index)) for index, text in answers]))
        if ABORTED in reasons.values():
            span.outcome(semconv.CANCELLED)
        elif "error" in reasons.values():
            span.set(semconv.ERROR_TYPE, "finish_reason")
            span.status = "error"

    def _token_attributes(self) -> Mapping[str, Any]:
        """Return what the stamps say, without what the engine knows better.

        The engine does not wait for the consumer: after a hold its tokens have come, and are merged.
        """
        found = dict(super()._token_attributes())
        if was_held(self.holds):
            n_held = found.pop(semconv.HELD_STAMPS, 0)
            if self._engine_tpot_ns is None:  # that there is none is said: nobody is to work it out
                found[semconv.HELD_STAMPS] = n_held
            for key in (semconv.CHUNK_GAPS_NS, semconv.TPOT_NS):
                found.pop(key, None)
        if self._engine_tpot_ns is not None and self._is_stream:
            found[semconv.TPOT_NS] = self._engine_tpot_ns
        return found
