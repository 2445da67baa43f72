"""`trace_sentence_transformers`: embedding with a SentenceTransformer, reranking with a CrossEncoder."""

from __future__ import annotations

import sys
from typing import Any, Final, TypeVar

from hotspan.tracer import semconv
from hotspan.tracer.clients.local_call import model_name
from hotspan.tracer.clients.local_stage import LocalStage, Made, length
from hotspan.tracer.clients.traced_class import is_traced, need_package, refusal, trace_methods
from hotspan.tracer.errors import ConfigurationError

__all__ = ["trace_sentence_transformers"]

M = TypeVar("M")

_PROVIDER: Final = "sentence-transformers"
_TEXTS: Final = ("inputs", "sentences")  # before version 5.2 it was the second


def trace_sentence_transformers(model: M, *, name: str | None = None, synchronise: bool = False) -> M:
    """Trace the calls of a sentence-transformers model, and return the same model.

    `encode` of a `SentenceTransformer` or `SparseEncoder` (and `encode_query`, `encode_document`, which use
    it) is an `embedding`, with the number of texts and of dimensions; `predict` and `rank` of a
    `CrossEncoder` are a `rerank`, with the number of pairs.  The first traced call of a model is marked
    `hotspan.cold`: it pays for what later ones find ready.  Tracing a model again changes nothing.

    Args:
        model: The model.
        name: The model's name in the spans; by default the name or folder that it was loaded from.
        synchronise: Wait, at the end of a call, until a GPU has computed what the call returned.  A result
            that stays on the GPU (`convert_to_tensor=True`) is otherwise returned before it is computed, and
            whoever uses it first seems to take the time.

    Raises:
        ConfigurationError: `model` is no model of sentence-transformers.
        MissingDependencyError: The package is not installed.

    Example:
        `model = hotspan.trace_sentence_transformers(SentenceTransformer("all-MiniLM-L6-v2"))`
    """
    package = need_package("sentence_transformers", function="trace_sentence_transformers", extra="rag")
    if isinstance(model, _classes(package, "CrossEncoder")):
        stage, operation = semconv.RERANK, semconv.RERANK
        methods = {"predict": _of_pairs, "rank": _of_documents}
    elif isinstance(model, _classes(package, "SentenceTransformer", "SparseEncoder")):
        stage, operation = semconv.EMBEDDING, semconv.OPERATION_OF_STAGE[semconv.EMBEDDING]
        methods = {"encode": _of_texts}
    else:
        msg = refusal("trace_sentence_transformers", model, "a SentenceTransformer or a CrossEncoder")
        raise ConfigurationError(msg)
    if not is_traced(model):
        shown = name or _name_of(model)
        attributes = {semconv.PROVIDER: _PROVIDER, semconv.REQUEST_MODEL: shown}
        finish = _synchronise if synchronise else None
        one = LocalStage(stage, f"{operation} {shown}", attributes, finish=finish)
        trace_methods(model, {method: one.traced(describe) for method, describe in methods.items()})
    return model


def _classes(package: Any, *names: str) -> tuple[Any, ...]:
    return tuple(found for name in names if (found := getattr(package, name, None)) is not None)


def _name_of(model: Any) -> str:
    card = getattr(model, "model_card_data", None)
    inner = getattr(getattr(model, "config", None), "_name_or_path", None)
    return model_name(getattr(card, "base_model", None) or inner, model)


def _of_texts(call: Made) -> dict[str, Any]:
    texts = call.argument(0, *_TEXTS)
    is_one = isinstance(texts, (str, dict))
    return {
        semconv.BATCH_SIZE: 1 if is_one else length(texts),
        semconv.EMBEDDING_DIMENSIONS: _dimensions(call.result),
    }


def _of_pairs(call: Made) -> dict[str, Any]:
    pairs = call.argument(0, *_TEXTS)
    n_pairs = length(pairs)
    is_one = bool(n_pairs) and isinstance(pairs[0], str)
    return {semconv.BATCH_SIZE: 1 if is_one else n_pairs}


def _of_documents(call: Made) -> dict[str, Any]:
    return {
        semconv.BATCH_SIZE: length(call.argument(1, "documents")),
        semconv.REQUEST_TOP_K: call.argument(2, "top_k"),
    }


def _dimensions(result: Any) -> int | None:
    """Return the length of the vectors that were returned, in whatever form."""
    vector = _first(result)
    if isinstance(vector, dict):
        vector = vector.get("sentence_embedding")
    shape = getattr(vector, "shape", None)
    return int(shape[-1]) if shape else None


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, list) and result else result


def _synchronise(result: Any) -> None:
    tensor = _first(result)
    if getattr(tensor, "is_cuda", False):
        sys.modules["torch"].cuda.synchronize(tensor.device)
