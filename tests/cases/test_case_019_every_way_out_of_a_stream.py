"""A stream's span ends exactly once, in whichever of eight ways the stream does, with the right count."""

import contextlib
import gc
import itertools
import subprocess
import sys

import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import streaming


@hotspan.generation
def tokens():
    """Yield three items."""
    yield from "abc"


def broken_off():
    """Break after the first item."""
    for _ in tokens():
        break


def closed():
    """Close after the first item."""
    made = tokens()
    next(made)
    made.close()


def consumer_raises():
    """Raise in the consumer's loop."""
    with contextlib.suppress(KeyError):
        for _ in tokens():
            raise KeyError


def dropped_in_a_cycle():
    """Leave it to the garbage collector."""
    made = tokens()
    next(made)
    cycle = [made]
    cycle.append(cycle)


@pytest.mark.parametrize(
    ("leave", "outcome", "n_items"),
    [
        pytest.param(lambda: list(tokens()), None, 3, id="full"),
        pytest.param(broken_off, "abandoned", 1, id="break"),
        pytest.param(closed, "abandoned", 1, id="close"),
        pytest.param(lambda: list(itertools.islice(tokens(), 2)), "abandoned", 2, id="islice"),
        pytest.param(consumer_raises, "abandoned", 1, id="consumer-raises"),
        pytest.param(lambda: tokens() and None, "abandoned", 0, id="never-iterated"),
        pytest.param(dropped_in_a_cycle, "abandoned", 1, id="dropped"),
    ],
)
def test_one_span(leave, outcome, n_items):
    """One ended span with the outcome and the number of items, and nothing left open."""
    with capture() as captured:
        with hotspan.request():
            leave()
            gc.collect()
        stream, root = captured.spans

    assert stream.parent_id == root.span_id
    assert stream.attributes.get("hotspan.outcome") == outcome
    assert stream.attributes["hotspan.stream.items"] == n_items
    assert stream.status == "unset"
    assert not streaming._open  # noqa: SLF001 - nothing public tells


PROGRAM = """
import sys, hotspan
hotspan.configure(file=sys.argv[1])
@hotspan.generation
def tokens():
    yield from "abc"
@hotspan.generation
async def async_tokens():
    yield "a"
kept, never, late = tokens(), tokens(), async_tokens()
next(kept)
try:
    late.__anext__().send(None)
except StopIteration:
    pass
"""


def test_interpreter_exit(tmp_path):
    """A stream that is alive when the interpreter exits is in the file, and nothing is said."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_text().count('"stringValue":"abandoned"') == 3
