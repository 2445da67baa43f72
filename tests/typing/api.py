"""The public API as a type checker sees it: what is decorated keeps its type.

Checked, not run: `mypy --strict` must find nothing here (`make types`, and tests/test_typing.py).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, assert_type

import hotspan
from hotspan.analysis import parse_where, select

hotspan.configure(
    service_name="svc",
    file="run.jsonl",
    otlp="http://127.0.0.1:4318",
    protocol="grpc",
    capture_content=True,
    sample_ratio=0.5,
    span_processors=[],
    provider=None,
)


@hotspan.request
def bare(a: int, *, b: str = "") -> float:
    """Decorated without parentheses."""
    return a + len(b)


@hotspan.retrieval("faiss", top_k=20)
def with_name(a: int) -> list[str]:
    """Decorated with a name and attributes."""
    return [str(a)]


@hotspan.agent()
async def coroutine(a: int) -> str:
    """Decorated with empty parentheses."""
    return str(a)


@hotspan.generation(model="m")
def generator(a: int) -> Iterator[str]:
    """Decorated generator."""
    yield str(a)


@hotspan.generation
async def async_generator(a: int) -> AsyncIterator[str]:
    """Decorated asynchronous generator."""
    yield str(a)


@hotspan.stage("postprocess")
def own_stage(a: int) -> int:
    """A stage of the user's own."""
    return a


@hotspan.step
@contextlib.contextmanager
def managed(a: int) -> Iterator[str]:
    """A decorated manager."""
    yield str(a)


with managed(1) as text:
    assert_type(text, str)


class Index:
    """Decorated methods of each kind."""

    @hotspan.embedding
    def method(self, text: str) -> list[float]:
        """A method."""
        return [float(len(text))]

    @staticmethod
    @hotspan.rerank
    def static(n: int) -> int:
        """A static method."""
        return n

    @classmethod
    @hotspan.tool("t")
    def cls_method(cls, n: int) -> int:
        """A class method."""
        return n


assert_type(bare(1, b="x"), float)
assert_type(with_name(1), list[str])
assert_type(generator(1), Iterator[str])
assert_type(async_generator(1), AsyncIterator[str])
assert_type(own_stage(1), int)
assert_type(Index().method("x"), list[float])
assert_type(Index.static(1), int)
assert_type(Index.cls_method(1), int)
awaited: Coroutine[Any, Any, str] = coroutine(1)
assert_type(asyncio.run(awaited), str)
assert_type(hotspan.propagate(bare)(1), float)
assert_type(hotspan.propagate(generator)(1), Iterator[str])
for executor in (hotspan.ThreadPoolExecutor(2), hotspan.ProcessPoolExecutor(max_workers=2)):
    assert_type(executor.submit(bare, 1, b="x").result(), float)
    assert_type(list(executor.map(with_name, [1])), list[list[str]])

with hotspan.step("plan") as span:
    span.set("documents", 12).set_many({"k": 1.5})
    assert_type(span.traceparent(), str)


async def entered() -> None:
    """Every stage is an asynchronous context manager too."""
    async with hotspan.context_assembly() as inner:
        inner.set("n", 1)


hotspan.current().set("k", object())
result = hotspan.flush(timeout=1.0)
assert_type(result.ok, bool)
assert_type(result.exported + result.lost + result.faults, int)
assert_type(hotspan.shutdown(), hotspan.FlushResult)


class Client:
    """Any client: tracing one returns its type."""


assert_type(hotspan.trace_openai(Client(), usage=True), Client)
assert_type(hotspan.trace_faiss(Client(), name="passages"), Client)
assert_type(hotspan.trace_sentence_transformers(Client(), name="m", synchronise=True), Client)
assert_type(hotspan.trace_transformers(Client(), name="m"), Client)
assert_type(hotspan.trace_vllm(Client(), name="m"), Client)

with hotspan.sample_engine("http://127.0.0.1:8000", interval_s=0.5, gpu=None) as sampler:
    assert_type(sampler.n_samples, int)
    assert_type(sampler.url, str | None)

report = hotspan.analyse(hotspan.load("run.jsonl", "more.jsonl.gz"), by="tenant", tail=90.0)
assert_type(report, hotspan.Report)
assert_type([row.n_calls for row in report.stages], list[int])
assert_type(report.stages[0].stage, str)
assert_type(report.stages.columns(), dict[str, list[Any]])
kept = hotspan.analyse(select(hotspan.load("run.jsonl"), parse_where(["stage=rerank"])))
assert_type(kept.to_dict(), dict[str, Any])
