"""Mistakes that a type checker must still find in decorated code; each line says which.

Checked, not run: tests/test_typing.py compares what mypy finds with the comments.
"""

import asyncio

import hotspan


@hotspan.request
def fn(a: int) -> str:
    """A decorated function."""
    return str(a)


@hotspan.retrieval("faiss")
async def coroutine(a: int) -> str:
    """A decorated coroutine function."""
    return str(a)


class Index:
    """A decorated method."""

    @hotspan.embedding
    def method(self, a: int) -> str:
        """A method."""
        return str(a)


fn("x")  # error: arg-type
fn(1, 2)  # error: call-arg
fn(b=1)  # error: call-arg
n: int = fn(1)  # error: assignment
asyncio.run(coroutine("x"))  # error: arg-type
Index().method("x")  # error: arg-type
hotspan.configure(files="x")  # error: call-arg
hotspan.configure(sample_ratio="x")  # error: arg-type
hotspan.flush("soon")  # error: arg-type
_ = hotspan.nonsense  # error: attr-defined
hotspan.request(3)  # error: call-overload
