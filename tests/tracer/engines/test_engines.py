"""Each kind of server's account of itself, in the form in which that server gives it."""

from __future__ import annotations

import pytest

from hotspan.tracer import semconv
from hotspan.tracer.engines import (
    ENGINES,
    Account,
    engine_of,
    engine_of_series,
    response_account,
    response_attributes,
)
from hotspan.tracer.record import Event, Scope, SpanRecord

MS = 1_000_000
SGLANG, TRITON = Scope("sglang server"), Scope("triton-server")


def span(name, start_ms=0.0, end_ms=0.0, *, of=("1", None), scope=None, events=(), **attributes):  # noqa: PLR0913 - a span has that many parts
    """Return a span; two underscores in an attribute's name stand for a dot."""
    return SpanRecord(
        "t",
        *of,
        name,
        round(start_ms * MS),
        round(end_ms * MS),
        {key.replace("__", "."): value for key, value in attributes.items()},
        scope=scope or Scope(),
        events=tuple(Event(event, round(at_ms * MS)) for event, at_ms in events),
    )


def account_of(root, *below):
    """Return what the server that wrote a span says in it and in those below."""
    engine = engine_of(root)
    assert engine is not None
    return engine.name, engine.read_spans(root, below)


def latency(**seconds):
    """Return the attributes of the family that three servers use, each in its own way."""
    return {f"gen_ai__latency__{name}": value for name, value in seconds.items()}


def test_vllm_keeps_queue_and_prefill_apart():
    """Three durations of one clock; those that start at arrival, on another clock, are left alone."""
    root = span(
        "llm_request",
        **latency(
            time_to_first_token=0.412,
            e2e=0.667,
            time_in_queue=0.131,
            time_in_model_prefill=0.25,
            time_in_model_decode=0.26,
            time_in_model_inference=0.51,
        ),
        gen_ai__request__id="chatcmpl-b5",
        gen_ai__usage__completion_tokens=64,
    )

    assert account_of(root) == ("vllm", Account(131 * MS, 250 * MS, 260 * MS, request_id="chatcmpl-b5"))


def test_a_vllm_span_that_says_nothing_is_an_empty_account():
    """Attributes are missing for pooling requests and in other versions: absent, never 0."""
    name, account = account_of(span("llm_request", gen_ai__request__id="embd-1"))

    assert name == "vllm"
    assert account.is_empty
    assert account.request_id == "embd-1"


SGLANG_ROOT = span(
    " Req q-0",
    0,
    822,
    scope=SGLANG,
    module="sglang::request",
    **latency(
        e2e=0.822, time_to_first_token=0.4514, time_in_model_prefill=0.4313, time_in_model_decode=0.3706
    ),
    gen_ai__request__id="q-0",
)
SGLANG_STAGES = [
    span("Tokenizer(host:3d1219c7 | pid:7536)", 0, 20, scope=SGLANG),
    span("tokenize", 0, 17, scope=SGLANG),
    span("Scheduler [TP 0] ", 30, 812, scope=SGLANG),
    span("request_process", 30, 31, scope=SGLANG),
    span("prefill_waiting", 31, 415, scope=SGLANG),
    span("prefill_forward", 415, 439, scope=SGLANG),
    span("chunked_prefill", 416, 438, scope=SGLANG),
    span("decode_waiting", 439, 441, scope=SGLANG),
    span("decode_forward", 441, 811, scope=SGLANG),
    span("decode_loop", 441, 450, scope=SGLANG),
]


def test_sglang_is_told_apart_by_its_stage_spans():
    """Its `time_in_model_prefill` includes the queue: the waiting and the forward pass are spans."""
    assert account_of(SGLANG_ROOT, *SGLANG_STAGES) == (
        "sglang",
        Account(384 * MS, 24 * MS, 372 * MS, request_id="q-0"),
    )


def test_sglang_without_stage_spans_gives_queue_and_prefill_as_one():
    """What cannot be divided is not called prefill."""
    name, account = account_of(SGLANG_ROOT)

    assert name == "sglang"
    assert (account.queue_ns, account.prefill_ns) == (None, None)
    assert account.undivided_ns == pytest.approx(431.3 * MS)
    assert account.decode_ns == pytest.approx(370.6 * MS)


def test_sglang_spans_of_a_refused_request_are_its_own_and_say_no_time():
    """A refused request sends its tokenizer's span alone, below a parent that never comes."""
    name, account = account_of(span("Tokenizer(host:1 | pid:2)", 0, 5, of=("1", "gone"), scope=SGLANG))

    assert name == "sglang"
    assert account.is_empty


def test_trtllm_has_the_queue_and_the_first_token():
    """Queue, first token and end all start at arrival: prefill and decode are their differences."""
    root = span(
        "llm_request_of_another_name",
        **latency(time_in_queue=0.1, time_to_first_token=0.35, e2e=1.0, kv_cache_transfer_time=0.0),
        gen_ai__request__id="7",
    )

    assert account_of(root) == ("trtllm", Account(100 * MS, 250 * MS, 650 * MS, request_id="7"))


def test_trtllm_times_that_contradict_each_other_are_absent():
    """A first token before the queue's end, and an end before the first token, are no durations."""
    _, account = account_of(span("request", **latency(time_in_queue=0.5, time_to_first_token=0.3, e2e=0.2)))

    assert (account.queue_ns, account.prefill_ns, account.decode_ns) == (500 * MS, None, None)


def triton_request(*responses_ms):
    """Return Triton's spans of one request to a model, as they come for a stream over HTTP."""
    events = [("HTTP_RECV_START", -0.3), ("HTTP_SEND_START", -1_008_000.0)]
    events += [("INFER_RESPONSE_COMPLETE", at_ms) for at_ms in responses_ms]
    request = span("InferRequest", 0, 144, of=("r", None), scope=TRITON, events=events)
    model = span(
        "llm",
        0.1,
        143,
        of=("m", "r"),
        scope=TRITON,
        events=[("REQUEST_START", 0.1), ("QUEUE_START", 0.2), ("REQUEST_END", 143)],
        triton__model_name="llm",
        triton__request_id="req-4",
    )
    compute = span(
        "compute",
        30,
        142,
        of=("c", "m"),
        scope=TRITON,
        events=[("COMPUTE_START", 30), ("COMPUTE_INPUT_END", 30.5), ("COMPUTE_END", 142)],
    )
    return request, model, compute


def test_triton_is_read_from_its_events():
    """The queue ends where the computing starts; the first response ends the prefill, the last the decode."""
    name, account = account_of(*triton_request(51.8, 66.2, 76.8, 118.8))

    assert name == "triton"
    assert account == Account(29.8 * MS, 21.8 * MS, 67 * MS, request_id="req-4")


def test_triton_with_one_response_tells_no_prefill():
    """The whole answer came at once: its computing is not divided."""
    _, account = account_of(*triton_request(54.5))

    assert (account.queue_ns, account.prefill_ns, account.decode_ns) == (29.8 * MS, None, 24.5 * MS)


def test_triton_events_before_the_span_are_no_times():
    """For streams some events carry the clock's zero instead of a time."""
    request, model, compute = triton_request()
    events = [Event("INFER_RESPONSE_COMPLETE", -5 * MS)]
    _, account = account_of(request._replace(events=tuple(events)), model, compute)

    assert account.decode_ns is None


def test_a_triton_request_that_was_refused_is_an_empty_account():
    """Without a model's span nothing was queued and nothing computed."""
    _, account = account_of(triton_request(1.0)[0])

    assert account.is_empty


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(span("chat tiny", gen_ai__operation__name="chat"), id="a-client's-call"),
        pytest.param(span("POST /v1/chat/completions"), id="transport"),
        pytest.param(span("x", hotspan__stage="generation", **latency(time_in_queue=1.0)), id="a-stage"),
    ],
)
def test_no_other_span_is_a_servers(other):
    """A stage of the traced program is never taken for a server's account."""
    assert engine_of(other) is None


VLLM_CHUNK = {
    "id": "chatcmpl-1",
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 5},
    "metrics": {
        "time_to_first_token_ms": 21.5,
        "generation_time_ms": 40.25,
        "queue_time_ms": 3.0,
        "mean_itl_ms": 10.06,
        "tokens_per_second": 81.0,
    },
}
TIMINGS = {
    "cache_n": 236,
    "prompt_n": 1,
    "prompt_ms": 30.958,
    "prompt_per_token_ms": 30.958,
    "prompt_per_second": 32.3,
    "predicted_n": 35,
    "predicted_ms": 661.064,
    "predicted_per_token_ms": 18.887,
    "predicted_per_second": 52.94,
}
META_INFO = {
    "id": "my-rid-1",
    "prompt_tokens": 11,
    "queue_time": 0.00096,
    "forward_entry_time": 1795992639.5173,
    "prefill_finished_time": 1795992639.6362,
    "e2e_latency": 0.4957,
    "first_token_latency": 0.1276,
    "request_received_ts": 1795992639.5086,
}


@pytest.mark.parametrize(
    ("body", "source", "expected"),
    [
        pytest.param(VLLM_CHUNK, "metrics", (3 * MS, 21_500_000, 40_250_000), id="vllm"),
        pytest.param(
            {"choices": [], "timings": TIMINGS}, "timings", (None, 30_958_000, 661_064_000), id="llamacpp"
        ),
        pytest.param(
            {"text": "x", "meta_info": META_INFO},
            "meta_info",
            (960_000, 118_900_000, 368_100_000),
            id="sglang",
        ),
        pytest.param(
            {"choices": [{"index": 0, "meta_info": META_INFO}]},
            "meta_info",
            (960_000, 118_900_000, 368_100_000),
            id="sglang-chat",
        ),
    ],
)
def test_the_account_in_a_response_lands_on_the_span_and_is_read_back(body, source, expected):
    """Capture writes durations in ns under one set of keys; the analysis needs no server's own names."""
    attributes = response_attributes(body)
    name, account = response_account(attributes)

    assert attributes[semconv.ACCOUNT_SOURCE] == name == source
    found = (account.queue_ns, account.prefill_ns, account.decode_ns)
    assert [value is None for value in found] == [value is None for value in expected]
    assert all(
        value == pytest.approx(wanted, rel=1e-4)
        for value, wanted in zip(found, expected, strict=True)
        if wanted
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"metrics": None, "timings": None, "choices": None}, id="null"),
        pytest.param({"metrics": {}}, id="empty"),
        pytest.param({"metrics": "fast", "timings": [1], "meta_info": 3}, id="of-another-kind"),
        pytest.param(
            {"metrics": {"queue_time_ms": -1, "generation_time_ms": float("nan")}}, id="no-durations"
        ),
        pytest.param({"timings": {"prompt_ms": "12", "predicted_ms": True}}, id="no-numbers"),
        pytest.param(
            {"meta_info": {"e2e_latency": 0.4, "response_sent_to_client_ts": 1795992639.5}}, id="one-end"
        ),
        pytest.param({"choices": ["x"]}, id="no-choice"),
    ],
)
def test_a_response_that_says_nothing_leaves_nothing(body):
    """Null, missing and senseless fields are no account and no error."""
    assert response_attributes(body) == {}


def test_a_span_without_an_account_has_none():
    """Calls of servers that say nothing, and spans of other writers."""
    assert response_account({}) is None
    assert response_account({semconv.ACCOUNT_SOURCE: "something new", semconv.ACCOUNT_QUEUE_NS: 5}) is None


def test_speculative_decoding_is_counted():
    """Drafted and accepted tokens, as vLLM and llama.cpp report them for one request."""
    drafts = {"num_draft_tokens": 30, "num_accepted_draft_tokens": 21, "draft_acceptance_rate": 0.7}
    vllm = {"metrics": {"queue_time_ms": 1.0, "speculative_decoding": drafts}}
    llama = {"timings": TIMINGS | {"draft_n": 8, "draft_n_accepted": 6}}

    counted = [response_account(response_attributes(body))[1][-2:] for body in (vllm, llama)]

    assert counted == [(30, 21), (8, 6)]


#          | write 1 |---- headers at 900 ----|--- prefill 190 ---|
@pytest.mark.parametrize(
    ("is_stream", "write_ms", "headers_ms", "queue_ms"),
    [
        pytest.param(True, 1, 901, 880, id="a-slot-was-waited-for"),
        pytest.param(True, 1, 12, 0, id="an-idle-server"),
        pytest.param(True, 40, 31, 0, id="the-write-is-stamped-after-the-headers-came"),
        pytest.param(False, 1, 901, 230, id="not-streamed-the-headers-come-last"),
        pytest.param(False, 1, 655, 0, id="not-streamed-idle"),
        pytest.param(False, 700, 655, 0, id="not-streamed-the-write-is-stamped-late"),
        pytest.param(False, 1, 640, None, id="not-streamed-the-server-says-more-than-there-was"),
    ],
)
def test_llamacpp_tells_its_queue_by_the_headers(is_stream, write_ms, headers_ms, queue_ms):
    """It holds them back until a slot takes the request; what an idle server needs is no queue."""
    said = {
        **response_attributes({"timings": {"prompt_ms": 190.0, "predicted_ms": 460.0}}),
        semconv.REQUEST_STREAM: is_stream,
        semconv.REQUEST_WRITE_NS: write_ms * MS,
        semconv.HEADERS_NS: headers_ms * MS,
    }

    _, account = response_account(said)

    assert account.queue_ns == (None if queue_ms is None else queue_ms * MS)
    assert (account.prefill_ns, account.decode_ns) == (190 * MS, 460 * MS)


def test_every_series_belongs_to_one_server():
    """The name of a series tells the server."""
    names = [name for engine in ENGINES for name in engine.series]

    assert len(names) == len(set(names))
    assert engine_of_series("vllm:num_requests_waiting").name == "vllm"
    assert engine_of_series("process_cpu_seconds") is None
