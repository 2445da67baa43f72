"""`trace_vllm` on `AsyncLLM`: every kind of stream of outputs, and every way out of one."""

import asyncio
import inspect

import pytest
import scripted_vllm
from scripted_vllm import AsyncLLM, Metrics, RequestOutputKind, SamplingParams, output

import hotspan
from hotspan.analysis import analyse
from hotspan.testing import FakeClock, capture
from hotspan.tracer import semconv
from hotspan.tracer.record import Trace

MS = 1_000_000
METRICS = Metrics(
    queued_ts=10.0, scheduled_ts=10.05, first_token_ts=10.1, last_token_ts=10.13, num_generation_tokens=4
)
CUMULATIVE, DELTA, FINAL_ONLY = RequestOutputKind


@pytest.fixture(autouse=True)
def vllm(monkeypatch):
    """The scripted classes in vLLM's place."""
    scripted_vllm.install(monkeypatch)


def outputs_of(kind, clock, *, n=1):
    """Return what makes a stream of four tokens: the first one after 100 ms, the others 10 ms apart."""

    async def outputs():
        for n_tokens in range(1, 5):
            clock.advance(ms=100 if n_tokens == 1 else 10)
            reason = "length" if n_tokens == 4 else None
            if kind is not FINAL_ONLY or reason:
                yield output("r", 1 if kind is DELTA else n_tokens, reason=reason, metrics=METRICS, n=n)

    return outputs


async def read(llm, kind, **options):
    """Return all outputs of one request."""
    return [item async for item in llm.generate("a", SamplingParams(output_kind=kind, **options), "r")]


def test_the_method_stays_what_it_is():
    """An asynchronous generator function with the same signature; a second time changes nothing."""
    llm = AsyncLLM(None)
    signature = inspect.signature(llm.generate)
    assert hotspan.trace_vllm(llm) is llm
    kind = type(llm)
    assert hotspan.trace_vllm(llm) is llm

    assert type(llm) is kind
    assert isinstance(llm, AsyncLLM)
    assert inspect.isasyncgenfunction(llm.generate)
    assert inspect.signature(llm.generate) == signature


@pytest.mark.parametrize("kind", [CUMULATIVE, DELTA])
async def test_tokens_are_stamped_as_they_come(kind):
    """Whole texts or deltas: the same figures, and the very outputs of the engine."""
    with FakeClock() as clock, capture() as captured:
        llm = hotspan.trace_vllm(AsyncLLM(outputs_of(kind, clock)))
        with hotspan.request("ask"):
            items = await read(llm, kind)
    said = captured.one("text_completion tiny").attributes

    assert items == await read(AsyncLLM(outputs_of(kind, clock)), kind)
    assert captured.tree() == [["request ask", ["text_completion tiny"]]]
    assert (said[semconv.TTFT_NS], said[semconv.TPOT_NS]) == (100 * MS, 10 * MS)
    assert list(said[semconv.CHUNK_GAPS_NS]) == [10 * MS] * 3
    assert (said[semconv.INPUT_TOKENS], said[semconv.CACHED_TOKENS], said[semconv.OUTPUT_TOKENS]) == (3, 2, 4)
    assert (said[semconv.REQUEST_STREAM], said[semconv.RESPONSE_ID]) == (True, "r")
    account = [said[key] for key in (semconv.ACCOUNT_QUEUE_NS, semconv.ACCOUNT_PREFILL_NS)]
    assert [round(ns / MS) for ns in (*account, said[semconv.ACCOUNT_DECODE_NS])] == [50, 50, 30]


async def test_the_last_output_alone_is_no_stream():
    """Its first token came as long before it as the engine decoded."""
    with FakeClock() as clock, capture() as captured:
        await read(hotspan.trace_vllm(AsyncLLM(outputs_of(FINAL_ONLY, clock))), FINAL_ONLY)
    said = captured.spans[0].attributes

    assert said[semconv.REQUEST_STREAM] is False
    assert (round(said[semconv.TTFT_NS] / MS), round(said[semconv.TPOT_NS] / MS)) == (100, 10)
    assert semconv.CHUNK_GAPS_NS not in said


async def test_answers_to_one_prompt_are_kept_apart():
    """Gaps are those of each answer."""
    with FakeClock() as clock, capture() as captured:
        await read(hotspan.trace_vllm(AsyncLLM(outputs_of(CUMULATIVE, clock, n=2))), CUMULATIVE, n=2)
    said = captured.spans[0].attributes

    assert (said[semconv.OUTPUT_TOKENS], said[semconv.TPOT_NS]) == (8, 10 * MS)
    assert list(said[semconv.CHUNK_GAPS_NS]) == [10 * MS] * 6


async def test_outputs_without_new_tokens_are_none():
    """An output may only say that the request has ended."""

    async def outputs():
        yield output("r", 2)
        yield output("r", 2, reason="stop")

    with capture() as captured:
        await read(hotspan.trace_vllm(AsyncLLM(outputs)), CUMULATIVE)

    assert captured.spans[0].attributes[semconv.CHUNKS] == 1


async def test_a_slow_consumer_slows_no_token():
    """The time between an output and the next pull is hold."""
    with FakeClock() as clock, capture() as captured:
        llm = hotspan.trace_vllm(AsyncLLM(outputs_of(DELTA, clock)))
        async for _ in llm.generate("a", SamplingParams(output_kind=DELTA), "r"):
            clock.advance(ms=50)
    said = captured.spans[0].attributes

    assert (said[semconv.TTFT_NS], said[semconv.TPOT_NS]) == (100 * MS, 10 * MS)
    assert said[semconv.STREAM_HOLD_NS] == 200 * MS
    assert semconv.HELD_STAMPS not in said
    assert semconv.CHUNK_GAPS_NS not in said


def merged(clock, *, metrics):
    """Return what yields the outputs of a slow consumer's engine: it decodes on, and merges its deltas."""

    async def outputs():
        clock.advance(ms=100)
        yield output("r", 1)
        clock.advance(ns=20_000)
        yield output("r", 4, reason="stop", metrics=metrics)

    return outputs


async def held(clock, metrics):
    """Return what the span of a held stream says, and its time per token in the report."""
    with capture() as captured:
        llm = hotspan.trace_vllm(AsyncLLM(merged(clock, metrics=metrics)))
        async for _ in llm.generate("a", SamplingParams(), "r"):
            clock.advance(ms=50)
    (span,) = captured.spans
    report = analyse([Trace(span.trace_id, [span])])
    return span.attributes, report.generation


async def test_of_a_held_stream_the_engine_says_the_time_per_token():
    """What the engine decoded while the consumer was busy came at once: the stamps would say 0."""
    with FakeClock() as clock:
        said, generation = await held(clock, METRICS)

    assert (round(said[semconv.TPOT_NS] / MS), said[semconv.TTFT_NS]) == (10, 100 * MS)
    assert round(generation.tpot_ns.p50 / MS) == 10
    assert generation.n_held == 0


async def test_without_the_engines_stamps_a_held_stream_has_no_time_per_token():
    """Not a wrong one; and the report says how many calls."""
    with FakeClock() as clock:
        said, generation = await held(clock, None)

    assert semconv.TPOT_NS not in said
    assert said[semconv.HELD_STAMPS] == 1
    assert (generation.tpot_ns, generation.n_held) == (None, 1)


async def endless():
    """Yield outputs without end."""
    n_tokens = 0
    while True:
        n_tokens += 1
        yield output("r", n_tokens)
        await asyncio.sleep(0)


async def left_by_close(stream):
    """As users leave a stream early."""
    await anext(stream)
    await stream.aclose()


async def left_by_cancelling(stream):
    """As a server leaves it when its client has gone."""

    async def consume():
        async for _ in stream:
            started.set()

    started = asyncio.Event()
    task = asyncio.create_task(consume())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("leave", "outcome"),
    [
        pytest.param(left_by_close, semconv.ABANDONED, id="close"),
        pytest.param(left_by_cancelling, semconv.CANCELLED, id="cancel"),
    ],
)
async def test_a_stream_that_is_left_is_one_ended_call(leave, outcome):
    """Not an error, and no success either."""
    llm = hotspan.trace_vllm(AsyncLLM(endless))
    with capture() as captured:
        await leave(llm.generate("a", SamplingParams(), "r"))
    (call,) = captured.spans

    assert (call.status, call.attributes[semconv.OUTCOME]) == ("unset", outcome)


@pytest.mark.parametrize(
    ("reason", "status", "outcome"),
    [
        pytest.param("abort", "unset", semconv.CANCELLED, id="aborted-by-the-program"),
        pytest.param("error", "error", None, id="given-up-by-the-engine"),
    ],
)
@pytest.mark.parametrize("kind", [DELTA, FINAL_ONLY])
async def test_an_answer_that_was_not_finished_is_no_success(reason, status, outcome, kind):
    """`abort` is what the program itself has asked for."""

    async def outputs():
        yield output("r", 1, reason=reason, metrics=METRICS)

    with capture() as captured:
        await read(hotspan.trace_vllm(AsyncLLM(outputs)), kind)
    (call,) = captured.spans

    assert (call.status, call.attributes.get(semconv.OUTCOME)) == (status, outcome)


async def test_an_engine_that_raises_ends_the_call():
    """The same object comes out."""
    error = RuntimeError("the engine died")

    async def outputs():
        yield output("r", 1)
        raise error

    with capture() as captured, pytest.raises(RuntimeError) as raised:
        await read(hotspan.trace_vllm(AsyncLLM(outputs)), CUMULATIVE)

    assert raised.value is error
    assert [(call.status, call.attributes[semconv.OUTPUT_TOKENS]) for call in captured.spans] == [
        ("error", 1)
    ]


async def test_an_engine_that_writes_spans_is_told_of_the_call():
    """Unless the user has told it of one himself."""
    with capture() as captured:
        llm = hotspan.trace_vllm(AsyncLLM(endless, endpoint="http://127.0.0.1:4318"))
        await left_by_close(llm.generate("a", SamplingParams(), "r"))
        span = captured.spans[0]
        assert llm.trace_headers == {"traceparent": f"00-{span.trace_id}-{span.span_id}-01"}
        own = {"traceparent": "00-1-2-01"}
        await left_by_close(llm.generate("a", SamplingParams(), "r", trace_headers=own))
        assert llm.trace_headers is own


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", [CUMULATIVE, DELTA])
async def test_content_is_kept_only_when_asked_for(kind, keep):
    """The whole text, whatever pieces it came in."""
    with FakeClock() as clock, capture(capture_content=keep) as captured:
        await read(hotspan.trace_vllm(AsyncLLM(outputs_of(kind, clock))), kind)

    assert repr(captured.spans).count("canary4711") == (5 if keep else 0)


async def test_a_request_that_is_not_sampled_is_not_looked_at():
    """The outputs come all the same."""
    with FakeClock() as clock, capture(sample_ratio=0.0) as captured:
        assert len(await read(hotspan.trace_vllm(AsyncLLM(outputs_of(DELTA, clock))), DELTA)) == 4

    assert captured.spans == []


async def test_a_mistake_is_the_same_mistake():
    """A wrong argument raises what it raised, and no span pretends that there was a call."""
    llm = hotspan.trace_vllm(AsyncLLM(endless))
    with capture() as captured, pytest.raises(TypeError, match="nonsense"):
        llm.generate("a", SamplingParams(), "r", nonsense=1)

    assert captured.spans == []
