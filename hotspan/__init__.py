"""Hotspan: where the time of a RAG or agent request goes, from the application through the engine.

    import hotspan

    hotspan.configure(file="run.jsonl")

    @hotspan.request
    def answer(question): ...

    @hotspan.retrieval("faiss", top_k=20)
    def search(vector): ...

Then `hotspan report run.jsonl`.  Importing this package imports neither the command line nor numpy, httpx or
an exporter; they come with the first use of a name that needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hotspan import _wiring as _wiring
from hotspan.tracer.config import configure, flush, shutdown
from hotspan.tracer.errors import (
    ConfigurationError,
    EngineError,
    HotspanError,
    MissingDependencyError,
    StreamError,
    TraceFileError,
    UnusableTraceError,
)
from hotspan.tracer.propagate import propagate
from hotspan.tracer.recorder import FlushResult
from hotspan.tracer.stage import (
    agent,
    context_assembly,
    current,
    embedding,
    generation,
    request,
    rerank,
    retrieval,
    stage,
    step,
    tool,
)

if TYPE_CHECKING:
    from hotspan.analysis import Report, analyse, load
    from hotspan.tracer.clients.faiss import trace_faiss
    from hotspan.tracer.clients.llm import AsyncLLMClient, LLMClient
    from hotspan.tracer.clients.openai import trace_openai
    from hotspan.tracer.clients.sentence_transformers import trace_sentence_transformers
    from hotspan.tracer.clients.transformers import trace_transformers
    from hotspan.tracer.clients.vllm import trace_vllm
    from hotspan.tracer.executor import ProcessPoolExecutor, ThreadPoolExecutor
    from hotspan.tracer.receiver import Receiver as receiver  # noqa: N813 - a verb to users: `with hotspan.receiver()`
    from hotspan.tracer.record import Trace
    from hotspan.tracer.sampler import EngineSampler as sample_engine  # noqa: N813 - a verb to users, as `receiver`

    __version__: str

# name -> module that has it; imported on first use
_LAZY = {
    "AsyncLLMClient": ("hotspan.tracer.clients.llm", "AsyncLLMClient"),
    "LLMClient": ("hotspan.tracer.clients.llm", "LLMClient"),
    "ProcessPoolExecutor": ("hotspan.tracer.executor", "ProcessPoolExecutor"),
    "Report": ("hotspan.analysis", "Report"),
    "ThreadPoolExecutor": ("hotspan.tracer.executor", "ThreadPoolExecutor"),
    "Trace": ("hotspan.tracer.record", "Trace"),
    "analyse": ("hotspan.analysis", "analyse"),
    "load": ("hotspan.analysis", "load"),
    "receiver": ("hotspan.tracer.receiver", "Receiver"),
    "sample_engine": ("hotspan.tracer.sampler", "EngineSampler"),
    "trace_faiss": ("hotspan.tracer.clients.faiss", "trace_faiss"),
    "trace_openai": ("hotspan.tracer.clients.openai", "trace_openai"),
    "trace_sentence_transformers": (
        "hotspan.tracer.clients.sentence_transformers",
        "trace_sentence_transformers",
    ),
    "trace_transformers": ("hotspan.tracer.clients.transformers", "trace_transformers"),
    "trace_vllm": ("hotspan.tracer.clients.vllm", "trace_vllm"),
}

__all__ = [
    "AsyncLLMClient",
    "ConfigurationError",
    "EngineError",
    "FlushResult",
    "HotspanError",
    "LLMClient",
    "MissingDependencyError",
    "ProcessPoolExecutor",
    "Report",
    "StreamError",
    "ThreadPoolExecutor",
    "Trace",
    "TraceFileError",
    "UnusableTraceError",
    "agent",
    "analyse",
    "configure",
    "context_assembly",
    "current",
    "embedding",
    "flush",
    "generation",
    "load",
    "propagate",
    "receiver",
    "request",
    "rerank",
    "retrieval",
    "sample_engine",
    "shutdown",
    "stage",
    "step",
    "tool",
    "trace_faiss",
    "trace_openai",
    "trace_sentence_transformers",
    "trace_transformers",
    "trace_vllm",
]


if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib import metadata  # noqa: PLC0415 - reads files; only who asks pays

            return metadata.version("hotspan")
        if name not in _LAZY:
            msg = f"module 'hotspan' has no attribute {name!r}"
            raise AttributeError(msg)
        module, attribute = _LAZY[name]
        found = globals()[name] = getattr(importlib.import_module(module), attribute)
        return found


def __dir__() -> list[str]:
    return __all__
