"""With content off, as it is by default, nothing of prompts, documents, messages is written."""

import asyncio
import contextlib

import pytest

import hotspan

CANARY = "canary-7f3a"


class Leaky(Exception):  # noqa: N818 - what a program raises
    """An exception whose message quotes the prompt."""


@hotspan.generation(model="m")
def stream(prompt):
    """Yield the prompt, then fail with it."""
    yield prompt
    raise Leaky(f"{prompt} was too long")  # noqa: EM102, TRY003 - messages do quote


@hotspan.generation
async def async_stream(prompt):
    """Yield the prompt as a model would."""
    yield {"choices": [{"delta": {"content": prompt}}]}


@hotspan.tool
def tool(argument, *, keyword):  # noqa: ARG001 - they are what must not be seen
    """Fail with the argument as it was written in the source."""
    raise Leaky("canary-7f3a")  # noqa: EM101 - messages do quote


@hotspan.retrieval("faiss")
async def retrieve(query):
    """Return documents."""
    raise Leaky(query) from KeyError(query)


@hotspan.request
def pipeline():
    """Take every path with the canary in its hands."""
    with contextlib.suppress(Leaky):
        list(stream(CANARY))
    with contextlib.suppress(Leaky):
        tool("canary-7f3a", keyword=CANARY)
    with contextlib.suppress(Leaky):
        asyncio.run(retrieve(CANARY))

    async def consume():
        async for _ in async_stream(CANARY):
            pass

    asyncio.run(consume())
    hotspan.current().record_exception(Leaky(CANARY))
    raise ExceptionGroup(CANARY, [Leaky(CANARY)])


@pytest.mark.parametrize("content", [False, True])
def test_the_canary_is_in_the_file_only_if_asked(tmp_path, content):
    """Zero bytes of it by default; messages of exceptions are there when content is captured."""
    path = tmp_path / "run.jsonl"
    hotspan.configure(file=path, capture_content=content)
    with pytest.raises(ExceptionGroup):
        pipeline()
    assert hotspan.shutdown().ok

    text = path.read_text("utf-8")
    assert text.count('"name":"exception"') == 5
    assert (CANARY in text) == content
