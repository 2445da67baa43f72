"""HTTP requests that are written beside the call that sent them."""

import pytest

from hotspan.analysis import analyse
from hotspan.analysis.dialects import translate
from hotspan.tracer.record import Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
CHAT = {"gen_ai.operation.name": "chat"}
STREAM = CHAT | {"gen_ai.request.stream": True}
POST = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
EMBED = {"http.request.method": "POST", "url.full": "http://h/v1/embeddings"}


def written(*spans, failed=(), **attributes):
    """Return the spans of a request, the HTTP ones as a client's."""
    times = [(name, start * MS, end * MS, *parent) for name, start, end, *parent in spans]
    trace = build_trace(*times, attributes=attributes)
    return [
        span._replace(
            kind="client" if "url.full" in span.attributes else "internal",
            status="error" if span.name in failed else "unset",
        )
        for span in trace.spans
    ]


def parents(spans):
    """Return the name of each span's parent by its own."""
    names = {span.span_id: span.name for span in spans}
    return {span.name: names.get(span.parent_id) for span in spans}


@pytest.mark.parametrize("parent", [("ask",), ("lost",), ()], ids=["beside", "parent-lost", "no-parent"])
def test_the_request_of_a_stream_is_put_below_the_call_around_it(parent):
    """Bedrock's client sends it where OpenLLMetry's span is not the current one."""
    spans = written(("ask", 0, 100), ("m", 10, 90, "ask"), ("p", 11, 20), m=CHAT, p=POST)
    spans[2] = spans[2]._replace(parent_id={"ask": spans[0].span_id, "lost": "ff"}.get(*parent or ("",)))

    translated = translate(spans)

    assert parents(translated)["p"] == "m"
    assert [row.n_calls for row in analyse([Trace("1", spans)]).stages if row.stage == "generation"] == [1]


@pytest.mark.parametrize(("kind", "parent"), [("internal", "m"), ("server", "ask")])
def test_whatever_its_kind_but_a_servers(kind, parent):
    """Mistral's SDK traces its own requests, as internal spans; a server's span is none that was sent."""
    spans = written(("ask", 0, 100), ("m", 10, 90, "ask"), ("p", 11, 50, "ask"), m=CHAT, p=POST)
    spans[2] = spans[2]._replace(kind=kind)

    assert parents(translate(spans))["p"] == parent


def test_a_streams_call_that_was_written_at_its_end_begins_with_its_request():
    """OpenLIT opens the span when the stream was read, a fraction of a millisecond long."""
    spans = written(
        ("ask", 0, 200), ("p1", 5, 10, "ask"), ("m1", 90, 91, "ask"), ("p2", 95, 99, "ask"),
        ("m2", 180, 181, "ask"), p1=POST, m1=STREAM, p2=POST, m2=STREAM,
    )  # fmt: skip
    (row,) = [row for row in analyse([Trace("1", spans)]).stages if row.stage == "generation"]

    assert row.n_calls == 2
    assert row.duration_ns.max == 86 * MS
    assert parents(translate(spans))["p2"] == "m2"


def test_of_two_calls_at_once_each_has_its_own_request():
    """The one that began last, and has none yet; one that failed was sent again by the same."""
    spans = written(
        ("ask", 0, 100), ("m1", 10, 90, "ask"), ("p1", 11, 20, "ask"), ("m2", 30, 95, "ask"),
        ("p2", 31, 40, "ask"), ("p3", 50, 60, "ask"),
        failed={"p2"}, m1=CHAT, m2=CHAT, p1=POST, p2=POST, p3=POST,
    )  # fmt: skip
    found = parents(translate(spans))

    assert [found[name] for name in ("p1", "p2", "p3")] == ["m1", "m2", "m2"]


@pytest.mark.parametrize(
    ("call", "request_", "said", "asked"),
    [
        pytest.param((50, 90), (10, 20), CHAT, POST, id="a-call-that-took-its-time"),
        pytest.param((50, 51), (10, 20), CHAT, POST, id="no-stream"),
        pytest.param((10, 50), (60, 70), CHAT, POST, id="the-request-came-later"),
        pytest.param((10, 50), (40, 70), CHAT, POST, id="the-request-went-on"),
        pytest.param((10, 90), (20, 30), CHAT, EMBED, id="something-else-was-asked"),
    ],
)
def test_another_request_stays_where_it_is(call, request_, said, asked):
    """It is a call of its own: of a client that nothing traces."""
    spans = written(("ask", 0, 100), ("m", *call, "ask"), ("p", *request_, "ask"), m=said, p=asked)

    assert parents(translate(spans)) == {"ask": None, "m": "ask", "p": "ask"}


def test_a_call_that_has_a_request_below_it_takes_no_other():
    """What runs beside it then is somebody else's."""
    spans = written(
        ("ask", 0, 100), ("m", 10, 90, "ask"), ("p1", 11, 80, "m"), ("p2", 20, 60, "ask"),
        m=CHAT, p1=POST, p2=POST,
    )  # fmt: skip

    assert parents(translate(spans))["p2"] == "ask"


def test_a_request_without_a_parent_is_not_put_below_what_it_asked_for():
    """A server's own call, written late, may begin when the client's request is over."""
    spans = written(("p", 0, 50), ("serve", 5, 80, "p"), ("m", 60, 61, "serve"), p=POST, m=STREAM)

    assert parents(translate(spans)) == {"p": None, "serve": "p", "m": "serve"}


@pytest.mark.parametrize("said", [{}, {"http.response.status_code": 429}], ids=["status", "answer"])
@pytest.mark.parametrize("call", [(90, 90), (5, 90)], ids=["written-late", "around"])
def test_the_requests_of_a_retried_call_are_its_attempts(said, call):
    """One that failed, by its span or its answer alone, is followed by another of the same call."""
    failed = () if said else ("first",)
    spans = written(
        ("ask", 0, 100), ("m", *call, "ask"), ("first", 10, 12, "ask"), ("second", 50, 60, "ask"),
        failed=failed, m=STREAM, first=POST | said, second=POST | {"http.response.status_code": 200},
    )  # fmt: skip

    generation = analyse([Trace("1", spans)]).generation

    assert (generation.n_calls, generation.n_attempts) == (1, 2)


def test_a_request_that_names_itself_its_parent_is_no_loop():
    """It is left as it came: a root."""
    spans = written(("ask", 0, 100), ("m", 10, 90, "ask"), ("p", 11, 20, "ask"), m=CHAT, p=POST)
    spans[2] = spans[2]._replace(parent_id=spans[2].span_id)

    assert {span.span_id: span.parent_id for span in translate(spans)}[spans[2].span_id] == spans[2].span_id
