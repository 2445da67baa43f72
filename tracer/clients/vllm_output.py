"""What vLLM's `RequestOutput` says: tokens, how an answer ended, and where the engine spent its time.

Its `metrics` mix two clocks: `arrival_time` is wall time in this process, the other stamps are the engine's
monotonic clock.  Only stamps of that one are subtracted, from each other.  There are none at all where the
engine keeps no statistics, which is the default of `vllm.LLM`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import config, semconv
from hotspan.tracer.engines import vllm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan.tracer.span import Span

ENGINE: Final = vllm.ENGINE.name
ABORTED: Final = "abort"  # the program itself has asked for it
# From where to where each lasts: the stamps that vLLM makes its own span from.
_ACCOUNT: Final = (
    (semconv.ACCOUNT_QUEUE_NS, "queued_ts", "scheduled_ts"),
    (semconv.ACCOUNT_PREFILL_NS, "scheduled_ts", "first_token_ts"),
    (semconv.ACCOUNT_DECODE_NS, "first_token_ts", "last_token_ts"),
)
_PARAMETERS: Final = {
    "max_tokens": semconv.REQUEST_MAX_TOKENS,
    "temperature": semconv.REQUEST_TEMPERATURE,
}
_MIN_TOKENS: Final = 2  # for a time per token after the first


def account(metrics: Any) -> dict[str, Any]:
    """Return the engine's account in an output's `metrics`, as far as its stamps tell; empty for None."""
    found: dict[str, Any] = {}
    for key, first, last in _ACCOUNT:
        start, end = getattr(metrics, first, None), getattr(metrics, last, None)
        if start and end and end >= start:  # 0.0 is vLLM's "not yet"
            found[key] = round((end - start) * 1e9)
    if found:
        found[semconv.ACCOUNT_SOURCE] = vllm.ENGINE.response_field
    return found


def times_of_whole(metrics: Any, until_last_ns: int, n_answers: int) -> dict[str, Any]:
    """Return the token times of an answer that came in one piece, as far as the engine's account gives them.

    The first token would have come as long before the last one as the engine decoded: no stamp of the engine
    is compared with one of ours.  The metrics are those of the answer that was finished last; of several,
    another one may have begun long before it, so that the first token is not known.

    Args:
        metrics: The output's metrics, or None.
        until_last_ns: From the start of the call until its answer was there.
        n_answers: To one prompt.
    """
    decoded_ns = account(metrics).get(semconv.ACCOUNT_DECODE_NS)
    if decoded_ns is None:
        return {}
    found: dict[str, Any] = {semconv.LAST_TOKEN_NS: until_last_ns}
    if n_answers == 1:
        found[semconv.TTFT_NS] = until_last_ns - min(decoded_ns, until_last_ns)
    if (tpot_ns := engine_tpot_ns(metrics)) is not None:
        found[semconv.TPOT_NS] = tpot_ns
    return found


def engine_tpot_ns(metrics: Any) -> float | None:
    """Return the time per token after the first by the engine's own stamps; None where they do not tell."""
    decoded_ns = account(metrics).get(semconv.ACCOUNT_DECODE_NS)
    n_tokens = getattr(metrics, "num_generation_tokens", 0)  # of the answer that the stamps belong to
    return decoded_ns / (n_tokens - 1) if decoded_ns and n_tokens >= _MIN_TOKENS else None


def usage_of(output: Any, n_output_tokens: int) -> dict[str, Any]:
    """Return the token counts of a request in OpenAI's form."""
    prompt = output.prompt_token_ids
    return {
        "prompt_tokens": None if prompt is None else len(prompt),
        "completion_tokens": n_output_tokens,
        "prompt_tokens_details": {"cached_tokens": getattr(output, "num_cached_tokens", None)},
    }


def request_attributes(params: Any, *, stream: bool) -> dict[str, Any]:
    """Return what a span says of a request, from its `SamplingParams`."""
    found = {key: getattr(params, name, None) for name, key in _PARAMETERS.items()}
    top_k = getattr(params, "top_k", None)
    found[semconv.REQUEST_TOP_K] = top_k if top_k and top_k > 0 else None  # 0, before that -1: all
    found[semconv.REQUEST_STREAM] = stream
    return found


def trace_headers(engine: Any, span: Span) -> dict[str, str] | None:
    """Return what makes the engine's own span a child of the call's; None for an engine that writes none."""
    settings = getattr(engine, "observability_config", None)
    writes_spans = getattr(settings, "otlp_traces_endpoint", None) is not None
    return {"traceparent": span.traceparent()} if writes_spans else None


def content(prompt: object, texts: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return prompt and answers, if content is to be kept.

    Args:
        prompt: The prompt as text; left out if it is none.
        texts: Text and finish reason of each answer.
    """
    if not config.settings().capture_content:
        return {}
    answers = [
        {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": reason}
        for text, reason in texts
    ]
    found = {semconv.OUTPUT_MESSAGES: json.dumps(answers)}
    if isinstance(prompt, str):
        asked = {"role": "user", "parts": [{"type": "text", "content": prompt}]}
        found[semconv.INPUT_MESSAGES] = json.dumps([asked])
    return found
