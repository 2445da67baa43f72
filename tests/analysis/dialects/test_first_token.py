"""First tokens that their writers stamp otherwise than the key says."""

import pytest

from hotspan.analysis.dialects.first_token import first_of
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, SpanRecord

MS = 1_000_000
SAID = {"gen_ai.server.time_to_first_token": 0.09}


def first(scope="app", **attributes):
    """Return what a call of 300 ms says of its first token, by our keys."""
    said = SAID | attributes
    return dict(first_of(SpanRecord("1", "1", None, "chat", 0, 300 * MS, said, scope=Scope(scope))))


def test_openlits_first_token_is_the_first_chunk():
    """It stamps whatever comes first, which may be the empty chunk that bears the role."""
    assert first("openlit.instrumentation.openai") == {semconv.FIRST_CHUNK_NS: 90 * MS}
    assert first() == {semconv.TTFT_NS: 90 * MS}


@pytest.mark.parametrize(
    ("flag", "value", "is_read"),
    [
        ("gen_ai.request.stream", False, False),
        ("gen_ai.request.stream", True, True),
        ("gen_ai.request.is_stream", False, False),
        ("llm.is_streaming", "False", False),
        ("llm.is_streaming", "True", True),
    ],
)
def test_an_answer_that_came_whole_has_no_first_token(flag, value, is_read):
    """What a writer gives as one is the whole call's time."""
    assert bool(first(**{flag: value})) is is_read
