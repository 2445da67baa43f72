"""One pipeline gives the same tree whether it streams or not."""

import asyncio

import pytest

import hotspan
from hotspan.testing import capture


@hotspan.retrieval("faiss")
def search():
    """Search."""


@hotspan.generation
def complete():
    """Answer at once."""
    search()
    return "ab"


@hotspan.generation
def stream():
    """Answer piece by piece."""
    search()
    yield "a"
    yield "b"


@hotspan.generation
async def async_stream():
    """Answer piece by piece, asynchronously."""
    search()
    yield "a"
    await asyncio.sleep(0)
    yield "b"


@hotspan.request("r")
def whole():
    """Do not stream."""
    return complete()


@hotspan.request("r")
def streamed():
    """Stream."""
    yield from stream()


@hotspan.request("r")
async def async_streamed():
    """Stream asynchronously."""
    async for piece in async_stream():
        yield piece


async def collect():
    """Collect the asynchronous stream."""
    return "".join([piece async for piece in async_streamed()])


@pytest.mark.parametrize("run", [whole, lambda: "".join(streamed()), lambda: asyncio.run(collect())])
def test_same_tree(run):
    """Request, generation, retrieval: each below the one before."""
    with capture() as captured:
        assert run() == "ab"

    assert captured.tree() == [["request r", ["chat", ["retrieval faiss"]]]]
