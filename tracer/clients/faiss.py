"""`trace_faiss`: searching a faiss index."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from hotspan.tracer import semconv
from hotspan.tracer.clients.local_stage import LocalStage, Made, length
from hotspan.tracer.clients.traced_class import is_traced, need_package, refusal, trace_methods
from hotspan.tracer.errors import ConfigurationError

__all__ = ["trace_faiss"]

X = TypeVar("X")

_TOP_K: Final = ("search", "search_and_reconstruct")  # methods that take `k`
_BY_RADIUS: Final = ("range_search",)


def trace_faiss(index: X, *, name: str = "faiss") -> X:
    """Trace the searches of a faiss index, and return the same index.

    `search`, `search_and_reconstruct` and `range_search` are a `retrieval`, with `top_k`, the number of
    queries, the index's class and its size.  The first traced search is marked `hotspan.cold`.  What is built
    or read later of a traced index (`faiss.clone_index`, `faiss.read_index`) is not traced.  Tracing an index
    again changes nothing.

    Args:
        index: Any index of faiss, binary ones and those on a GPU too.
        name: The name of what is searched.

    Raises:
        ConfigurationError: `index` is no index of faiss.
        MissingDependencyError: The faiss package is not installed.

    Example:
        `index = hotspan.trace_faiss(faiss.read_index("passages.faiss"), name="passages")`
    """
    faiss = need_package("faiss", function="trace_faiss", extra="rag")
    kinds = tuple(
        kind for kind in (getattr(faiss, "Index", None), getattr(faiss, "IndexBinary", None)) if kind
    )
    if not isinstance(index, kinds):
        raise ConfigurationError(refusal("trace_faiss", index, "a faiss.Index or faiss.IndexBinary"))
    if not is_traced(index):
        kind = type(index).__name__
        attributes = {semconv.PROVIDER: "faiss", semconv.DATA_SOURCE: name, semconv.INDEX_TYPE: kind}
        one = LocalStage(semconv.RETRIEVAL, f"retrieval {name}", attributes)
        trace_methods(
            index,
            {method: one.traced(_of_top_k) for method in _TOP_K}
            | {method: one.traced(_of_radius) for method in _BY_RADIUS},
        )
    return index


def _of_top_k(call: Made) -> dict[str, Any]:
    k = call.argument(1, "k")
    return {semconv.REQUEST_TOP_K: None if k is None else int(k), **_of_radius(call)}


def _of_radius(call: Made) -> dict[str, Any]:
    return {semconv.BATCH_SIZE: length(call.argument(0, "x")), semconv.INDEX_SIZE: int(call.owner.ntotal)}
