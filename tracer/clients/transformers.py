"""`trace_transformers`: a transformers model of the user's own, each call of its `generate` traced.

Tokens are stamped where `generate` hands them out: to a streamer.  A streamer of the user's is shown every
call as before; where there is none, one of ours takes its place, if `generate` would have done the same with
it (`generate` hands tokens out when they are on the CPU, so a stamp is never that of a kernel's launch).
"""

from __future__ import annotations

import contextvars
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hotspan.tracer import config
from hotspan.tracer.clients.local_call import model_name
from hotspan.tracer.clients.traced_class import is_traced, need_package, refusal, trace_methods
from hotspan.tracer.clients.transformers_batch import Batch, Options, TokenStreamer
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.faults import fault

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["trace_transformers"]

M = TypeVar("M")

# Whether this is code below a traced `generate`: what that calls (an assistant, itself) is the same call.
_inside: Final = contextvars.ContextVar("hotspan-transformers", default=False)


def trace_transformers(model: M, *, name: str | None = None) -> M:
    """Trace the generations of a transformers model, and return the same model.

    Each prompt of a call of `generate` is one `generation`: its time to the first token, the gaps between
    tokens, its tokens, and the model's own account of it (prefill and decode).  Arguments, results and
    exceptions stay the model's; a streamer of yours is called as before, and the time that it takes is
    `consumer_hold`.  Without token times, since `generate` hands out none there: beam search, a
    `custom_generate`, models with a `generate` of their own.  Tracing a model again changes nothing.

    In a thread of your own a generation is part of the request that was current where the thread was made if
    the function is carried there: `Thread(target=hotspan.propagate(model.generate), kwargs=...)`.

    Args:
        model: Any model with `generate`, on any device.
        name: The model's name in the spans; by default the name or folder that it was loaded from.

    Raises:
        ConfigurationError: `model` has no `generate`.
        MissingDependencyError: The transformers package is not installed.

    Example:
        `model = hotspan.trace_transformers(AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-0.6B"))`
    """
    transformers = need_package("transformers", function="trace_transformers", extra="rag")
    if not callable(getattr(model, "generate", None)):
        msg = refusal("trace_transformers", model, "a transformers model that has `generate`")
        raise ConfigurationError(msg)
    if not is_traced(model):
        standard = getattr(getattr(transformers, "GenerationMixin", None), "generate", None)
        shown = name or model_name(getattr(getattr(model, "config", None), "_name_or_path", None), model)
        trace_methods(model, {"generate": partial(_generate, name=shown, standard=standard)})
    return model


def _generate(original: Callable[..., Any], *, name: str, standard: object) -> Callable[..., Any]:
    signature = inspect.signature(original)
    is_standard = original is standard

    def generate(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if _inside.get() or not config.recording():
            return original(self, *args, **kwargs)
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:
            return original(self, *args, **kwargs)  # which says it better
        batch = _begin(self, bound, name, is_standard=is_standard)
        if batch is None:
            return original(self, *args, **kwargs)
        token, current = _inside.set(True), batch.enter()
        try:
            result = original(*bound.args, **bound.kwargs)
        except BaseException as exc:
            _guarded(batch.end_by, exc)
            raise
        finally:
            batch.leave(current)
            _inside.reset(token)
        _guarded(batch.end, result)
        return result

    return generate


def _begin(model: Any, bound: inspect.BoundArguments, name: str, *, is_standard: bool) -> Batch | None:
    """Start the spans of a call, and put a streamer of ours among its arguments."""
    try:
        options = Options(model, bound, is_standard=is_standard)
        batch = Batch(name, options)
        streamer = bound.arguments.get("streamer")
        if options.hands_out_tokens and batch.is_recording:
            batch.streamer = bound.arguments["streamer"] = TokenStreamer(batch, streamer)
    except Exception as own:  # noqa: BLE001 - the user's call is made, traced or not
        fault(own)
        return None
    return batch


def _guarded(end: Callable[[Any], None], how: Any) -> None:
    try:
        end(how)
    except Exception as own:  # noqa: BLE001 - the user gets the result or exception, whatever we make of it
        fault(own)
