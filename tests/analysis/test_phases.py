"""The phases of a model call add up to its duration, whatever the client and the engine say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.engine import BY_HEADERS, BY_TRACE, EngineAccount, account_of
from hotspan.analysis.model import PHASES
from hotspan.analysis.phases import phases_of
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord

MS = 1_000_000
STREAM = {
    semconv.SEND_OFFSET_NS: 12 * MS,
    semconv.CONNECT_NS: 10 * MS,
    semconv.REQUEST_WRITE_NS: 1 * MS,
    semconv.TTFT_NS: 101 * MS,
    semconv.LAST_TOKEN_NS: 401 * MS,
}


def _call(duration_ms, attributes, start_ms=0, name="chat"):
    return SpanRecord("1", name, None, name, start_ms * MS, (start_ms + duration_ms) * MS, attributes)


def _engine(queue_ms, prefill_ms, decode_ms):
    return EngineAccount(
        *(None if value is None else value * MS for value in (queue_ms, prefill_ms, decode_ms)),
        None,
        BY_TRACE,
    )


def _in_ms(phases):
    return {name: ns / MS for name, ns in phases.ns.items()}


#   |-- 12: 10 connect --|1|------ 100 ------|------- 300 -------|-- 7 --|     420 ms
STREAM_PHASES = {"connect": 10, "unattributed": 2, "send": 1}


@pytest.mark.parametrize(
    ("extra", "engine", "expected"),
    [
        pytest.param(
            {}, None, {"first_token_wait": 100, "decode": 300, "stream_overhead": 7}, id="no-engine"
        ),
        pytest.param(
            {semconv.STREAM_HOLD_NS: 60 * MS},
            None,
            {"first_token_wait": 100, "decode": 247, "consumer_hold": 60, "stream_overhead": 0},
            id="hold-while-the-bytes-came",
        ),
        pytest.param(
            {semconv.STREAM_HOLD_NS: 60 * MS, semconv.LAST_TOKEN_NS: 341 * MS},
            None,
            {"first_token_wait": 100, "decode": 240, "consumer_hold": 60, "stream_overhead": 7},
            id="hold-on-top-of-the-producers-own-time",
        ),
        pytest.param(
            {},
            (30, 60, 295),
            {"server_before_engine": 10, "queue": 30, "prefill": 60, "decode": 295, "stream_overhead": 12},
            id="engine",
        ),
        pytest.param(
            {semconv.STREAM_HOLD_NS: 250 * MS},
            (30, 60, 57),
            {
                "server_before_engine": 10,
                "queue": 30,
                "prefill": 60,
                "decode": 57,
                "consumer_hold": 250,
                "stream_overhead": 0,
            },
            id="engine-and-slow-consumer",
        ),
        pytest.param(
            {},
            (10, 20, 350),
            {"server_before_engine": 27, "queue": 10, "prefill": 20, "decode": 350, "stream_overhead": 0},
            id="decoding-that-the-client-saw-late",
        ),
        pytest.param(
            {},
            (None, 40, None),
            {"server_before_engine": 60, "prefill": 40, "decode": 300, "stream_overhead": 7},
            id="engine-says-prefill-only",
        ),
    ],
)
def test_a_streamed_call_is_laid_out_by_its_stamps(extra, engine, expected):
    """The engine's durations divide the room that the client's stamps leave, and nothing is counted twice."""
    phases = phases_of(call := _call(420, STREAM | extra), [call], engine and _engine(*engine))

    assert _in_ms(phases) == {**STREAM_PHASES, **expected}
    assert not phases.is_clipped


def test_an_engine_that_claims_more_than_the_client_measured_is_cut_and_it_is_said():
    """Two clocks disagree: the client's duration stays the whole."""
    call = _call(420, STREAM)
    phases = phases_of(call, [call], _engine(200, 300, 900))

    assert phases.is_clipped
    assert _in_ms(phases) == {
        **STREAM_PHASES,
        "send": 0,
        "queue": 101,
        "prefill": 0,
        "decode": 307,
        "server_before_engine": 0,
        "stream_overhead": 0,
    }


def test_the_engine_may_begin_before_the_client_knows_that_it_has_written():
    """The end of the write is stamped late on a busy machine: the engine's account fits, and `send` gives."""
    call = _call(420, STREAM | {semconv.REQUEST_WRITE_NS: 40 * MS})
    phases = phases_of(call, [call], _engine(30, 60, 295))

    assert not phases.is_clipped
    assert _in_ms(phases) == {
        **STREAM_PHASES,
        "send": 11,
        "queue": 30,
        "prefill": 60,
        "decode": 295,
        "server_before_engine": 0,
        "stream_overhead": 12,
    }


def test_no_token_comes_before_the_request_was_written():
    """A quick server's answer may be here before the writing thread runs again: then `send` ends with it."""
    call = _call(420, STREAM | {semconv.REQUEST_WRITE_NS: 150 * MS})

    assert _in_ms(phases_of(call, [call], None)) == {
        **STREAM_PHASES,
        "send": 101,
        "first_token_wait": 0,
        "decode": 300,
        "stream_overhead": 7,
    }


def test_queue_and_prefill_that_the_engine_does_not_divide_stay_one():
    """They are called neither; the rest of the wait is the server's around the engine."""
    account = EngineAccount(None, None, 295 * MS, None, BY_TRACE, undivided_ns=90 * MS)
    phases = phases_of(call := _call(420, STREAM), [call], account)

    assert _in_ms(phases) == {
        **STREAM_PHASES,
        "first_token_wait": 90,
        "server_before_engine": 10,
        "decode": 295,
        "stream_overhead": 12,
    }
    assert phases.sources["first_token_wait"] == BY_TRACE


def test_without_a_prefill_the_rest_of_the_wait_is_not_called_the_servers():
    """An engine that knows its queue alone leaves the prefill in what is not divided."""
    phases = phases_of(call := _call(420, STREAM), [call], _engine(30, None, None))

    assert _in_ms(phases) == {
        **STREAM_PHASES,
        "queue": 30,
        "first_token_wait": 70,
        "decode": 300,
        "stream_overhead": 7,
    }


def test_a_queue_that_was_read_elsewhere_names_its_own_source():
    """llama.cpp's queue is told by the response's headers, the rest by its timings."""
    account = EngineAccount(30 * MS, 60 * MS, 295 * MS, None, "response's timings", queue_source=BY_HEADERS)
    sources = phases_of(call := _call(420, STREAM), [call], account).sources

    assert (sources["queue"], sources["prefill"]) == (BY_HEADERS, "response's timings")


def test_a_call_that_was_not_streamed_is_divided_by_the_engine_alone():
    """Without a first token only the engine can tell waiting from decoding."""
    attributes = {
        semconv.SEND_OFFSET_NS: 5 * MS,
        semconv.REQUEST_WRITE_NS: 1 * MS,
        semconv.HEADERS_NS: 190 * MS,
    }
    call = _call(200, attributes)

    assert _in_ms(phases_of(call, [call], _engine(20, 30, 120))) == {
        "send": 1,
        "queue": 20,
        "prefill": 30,
        "decode": 120,
        "server_before_engine": 19,
        "unattributed": 10,
    }
    assert _in_ms(phases_of(call, [call], None)) == {"send": 1, "unattributed": 199}


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        pytest.param(None, {"consumer_hold": 250, "unattributed": 159}, id="no-engine"),
        pytest.param(
            _engine(40, 50, 200),
            {"queue": 40, "prefill": 50, "decode": 200, "consumer_hold": 117, "unattributed": 2},
            id="the-engine-worked-while-it-was-held",
        ),
    ],
)
def test_a_call_whose_first_token_was_held_has_its_hold(engine, expected):
    """Without a time to the first token, the hold is still the consumer's, after what the engine did."""
    attributes = {**STREAM, semconv.STREAM_HOLD_NS: 250 * MS}
    del attributes[semconv.TTFT_NS], attributes[semconv.LAST_TOKEN_NS]
    span = _call(420, attributes)

    phases = _in_ms(phases_of(span, [span], engine))

    assert {name: ms for name, ms in phases.items() if ms} == {"connect": 10, "send": 1, **expected}


def test_failed_attempts_and_pauses_are_backoff():
    """Only the attempt that answered is the model's latency."""
    #  call  |-------------------------------------------|  500
    #  try1    |---| 503                                    10 - 40
    #  try2                |--------------------------|     70 - 490
    whole = _call(500, {})
    attempts = [_call(30, {}, start_ms=10, name="try1"), _call(420, STREAM, start_ms=70, name="try2")]

    phases = _in_ms(phases_of(whole, attempts, None))

    assert phases["backoff"] == 60
    assert phases["first_token_wait"] == 100
    assert phases["unattributed"] == 10 + 10 + 2
    assert sum(phases.values()) == 500


def test_backoff_inside_one_span_is_its_own_phase():
    """A client that retries under one span says how long it took until the last attempt began."""
    call = _call(520, STREAM | {semconv.SEND_OFFSET_NS: 112 * MS, semconv.BACKOFF_NS: 100 * MS})

    phases = _in_ms(phases_of(call, [call], None))

    assert (phases["backoff"], phases["connect"], phases["unattributed"]) == (100, 10, 2)


def test_each_phase_says_where_it_was_read():
    """The engine's, the client's and what they leave are told apart."""
    sources = phases_of(call := _call(420, STREAM), [call], _engine(30, 60, 295)).sources

    assert sources["queue"] == sources["prefill"] == sources["decode"] == BY_TRACE
    assert sources["send"] == "client"
    assert sources["stream_overhead"] == "remainder"


@pytest.mark.parametrize("engine", [None, (30, 60, None)])
def test_decoding_until_the_calls_end_is_not_called_measured(engine):
    """Without the last token's time nothing tells decoding from what follows it, and the source says so."""
    said = {key: value for key, value in STREAM.items() if key != semconv.LAST_TOKEN_NS}
    account = None if engine is None else _engine(*engine)
    phases = phases_of(call := _call(420, said), [call], account)

    assert (phases.ns["decode"] / MS, phases.ns["stream_overhead"]) == (307, 0)
    assert phases.sources["decode"] == "client, to the call's end"


offsets = st.none() | st.integers(-5, 2000)


stamp_keys = (
    semconv.SEND_OFFSET_NS,
    semconv.CONNECT_NS,
    semconv.REQUEST_WRITE_NS,
    semconv.HEADERS_NS,
    semconv.TTFT_NS,
    semconv.LAST_TOKEN_NS,
    semconv.STREAM_HOLD_NS,
    semconv.BACKOFF_NS,
)


@given(
    st.integers(0, 1500),
    st.fixed_dictionaries(dict.fromkeys(stamp_keys, offsets)),
    st.none() | st.tuples(offsets, offsets, offsets, offsets),
    st.integers(0, 3),
)
def test_phases_sum_to_the_duration_and_none_is_negative(duration, attributes, engine, n_failed):
    """Law 3, second half: integers, exactly, whatever nonsense the stamps are."""
    known = {key: value for key, value in attributes.items() if value is not None}
    account = None
    if engine is not None:
        *apart, both = (None if ns is None else max(ns, 0) for ns in engine)
        account = EngineAccount(*apart, None, BY_TRACE, both)
    call = SpanRecord("1", "1", None, "chat", 0, duration, known)
    attempts = [SpanRecord("1", f"a{n}", "1", "try", n, n, {}) for n in range(n_failed)]
    attempts.append(call if not n_failed else call._replace(start_ns=min(n_failed, duration)))

    phases = phases_of(call, attempts, account)

    assert sum(phases.ns.values()) == duration
    assert all(isinstance(ns, int) and ns >= 0 for ns in phases.ns.values())
    assert set(phases.ns) <= set(PHASES)
    assert set(phases.sources) == set(phases.ns)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "0.1", None, True])
def test_an_account_that_makes_no_sense_is_absent(value):
    """Absent is None, never 0 and never negative."""
    span = SpanRecord("1", "2", "1", "llm_request", 0, 1, {semconv.ENGINE_QUEUE_S: value})

    account = account_of(span, BY_TRACE)

    assert account.queue_ns is None
    assert account.is_empty
