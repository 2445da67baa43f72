"""`trace_vllm`: an in-process vLLM engine of the user's own, each prompt's generation traced."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hotspan.tracer.clients.local_call import model_name
from hotspan.tracer.clients.traced_class import is_traced, need_package, refusal, trace_methods
from hotspan.tracer.clients.vllm_batch import Requests
from hotspan.tracer.clients.vllm_stream import traced_generate
from hotspan.tracer.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["trace_vllm"]

L = TypeVar("L")

_LLM: Final = ("vllm.entrypoints.llm", "LLM")
_ASYNC: Final = ("vllm.v1.engine.async_llm", "AsyncLLM")


def trace_vllm(llm: L, *, name: str | None = None) -> L:
    """Trace the generations of a vLLM engine in this process, and return the same object.

    Each prompt is one `generation`, however many are given at once.  Arguments, results and exceptions stay
    vLLM's.  Where the engine keeps statistics, each call has its account: queue, prefill, decode.  `AsyncLLM`
    keeps them by default, `vllm.LLM` does not: make it with `LLM(..., disable_log_stats=False)`, or its calls
    have a duration and tokens, and no time to the first token.  An engine that was given an
    `otlp_traces_endpoint` writes its own spans below these.  Tracing an object again changes nothing.

    Args:
        llm: A `vllm.LLM` (`generate`, `chat`, `enqueue`, `enqueue_chat`, `wait_for_completion`) or a
            `vllm.v1.engine.async_llm.AsyncLLM` (`generate`, cumulative, delta or final only).
        name: The model's name in the spans; by default the one that it is served under.

    Raises:
        ConfigurationError: `llm` is neither.
        MissingDependencyError: The vllm package is not installed.

    Example:
        `llm = hotspan.trace_vllm(vllm.LLM("Qwen/Qwen3-0.6B", disable_log_stats=False))`
    """
    need_package("vllm", function="trace_vllm", extra="vllm")
    owner: Any = llm
    if _is(llm, _LLM):
        if not is_traced(llm):
            requests = Requests(name or _model(owner))
            trace_methods(llm, requests.front)
            trace_methods(owner.llm_engine, requests.engine)
    elif _is(llm, _ASYNC):
        if not is_traced(llm):
            trace_methods(llm, {"generate": _naming(name or _model(owner))})
    else:
        msg = refusal("trace_vllm", llm, "a vllm.LLM or an AsyncLLM; for a server there is LLMClient")
        raise ConfigurationError(msg)
    return llm


def _is(target: object, named: tuple[str, str]) -> bool:
    # Looked up, not imported: an object of that class has its module loaded.
    module, name = named
    return isinstance(target, getattr(sys.modules.get(module), name, ()))


def _model(llm: Any) -> str:
    served = getattr(llm.model_config, "served_model_name", None)
    if isinstance(served, (list, tuple)):
        served = served[0] if served else None
    return model_name(served or getattr(llm.model_config, "model", None), llm)


def _naming(model: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda original: traced_generate(original, model)
