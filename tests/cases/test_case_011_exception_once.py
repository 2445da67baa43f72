"""An exception that passes several stages is one event and one status on each, and stays the same object."""

import pytest
from opentelemetry import trace

import hotspan
from hotspan.testing import capture


def test_one_event_a_span():
    """Decorator in context manager in `use_span`: each span records the exception once."""
    exc = ValueError("bad")

    @hotspan.tool
    def fn():
        raise exc

    with capture() as captured:
        with pytest.raises(ValueError, match="bad") as left, hotspan.request(), hotspan.step():
            fn()

    assert left.value is exc
    assert [(span.status, len(span.events)) for span in captured.spans] == [("error", 1)] * 3
    assert {span.attributes["error.type"] for span in captured.spans} == {"ValueError"}


def test_recorded_by_hand_and_by_the_stage():
    """What the program records itself is an event; a handled exception is no error."""
    with capture() as captured:
        with hotspan.step("handled") as span:
            span.record_exception(KeyError())
        span = hotspan.step("used").start()
        with pytest.raises(KeyError), trace.use_span(span, end_on_exit=True):
            raise KeyError

    assert [(s.status, len(s.events)) for s in captured.spans] == [("unset", 1), ("error", 1)]
