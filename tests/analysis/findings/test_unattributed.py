"""Time in no stage: the advice is to trace more only where the spans that are there have nothing wrong."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, many, request

from hotspan.analysis import analyse
from hotspan.tracer.record import Trace


def finding(traces):
    """The one finding about time in no stage."""
    (found,) = [found for found in analyse(traces).findings if found.id == "unattributed-time"]
    return found


def plain(number):
    """A request of which half is in no stage."""
    return request(number, 1000, answer(0, 500))


def early(number):
    """The clock of what the call asked is five seconds off."""
    return request(number, 1000, answer(0, 500), Call("retrieval", "search", -5000, -4600))


def unfinished(number):
    """The process was killed while it asked the model."""
    trace = request(number, 1000, Call("retrieval", "search", 0, 300), answer(300, 900))
    spans = [span._replace(end_ns=None) if span.name == "chat" else span for span in trace.spans]
    return Trace(trace.trace_id, spans)


def untraced_model(number):
    """An agent whose tools alone are spans."""
    tool = Call("tool", "look up", 400, 500, inside="agent")
    return request(number, 1000, Call("agent", "agent", 0, 1000), tool)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(plain, "Wrap the code between the stages", id="nothing-wrong"),
        pytest.param(early, "--skew-adjust", id="clocks-differ"),
        pytest.param(unfinished, "hotspan show names them", id="no-end"),
        pytest.param(untraced_model, "instrument the model's client", id="no-model-calls"),
    ],
)
def test_the_next_step_is_what_hides_the_time(make, expected):
    """Each cause has its own; more stages are the last of them."""
    assert expected in finding(many(25, make)).next_step


def test_calls_that_ran_beside_the_path_speak_against_it():
    """A span without a stage that ends a little later takes the whole path: the calls were there as well."""
    beside = finding(
        many(25, lambda k: request(k, 1000, Call(None, "resolve", 0, 1000), answer(0, 900, name="chat")))
    )

    assert beside.evidence["against"]["calls_beside_it_ratio"] == pytest.approx(0.9)
    assert "calls_beside_it_ratio" not in finding(many(25, plain)).evidence["against"]
