"""A stage that returns an iterator which is no generator: it ends at the return, and that is said."""

import io

import hotspan
from hotspan.testing import capture


class Stream:
    """An iterator of somebody's own, as clients return them."""

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration


@hotspan.generation
def call():
    """Return what makes its items later."""
    return Stream()


@hotspan.retrieval
def search(texts):
    """Return an iterator of the language's own."""
    return map(len, texts)


@hotspan.stage("open")
def unpack():
    """Return a file: it is there when it is returned."""
    return io.BytesIO()


def test_it_is_the_very_object_and_said_once_for_each_type(caplog):
    """The program gets what it would get; the log says what the span does not have, and what helps."""
    with capture() as captured:
        for _ in range(3):
            assert type(call()) is Stream
            assert list(search(["a", "bc"])) == [1, 2]
            unpack()
    said = [record.getMessage() for record in caplog.records]
    assert [line.split("of type ")[1].split(",")[0] for line in said] == ["Stream", "map"]
    assert all("yield from" in line for line in said)
    assert len(captured.spans) == 9
