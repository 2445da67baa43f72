"""`trace_vllm` on `LLM`: one call per prompt, with the engine's account of it; nothing changes for the user.

The engine is a scripted one, so that its times are exact; tests/integration has the real one.
"""

import inspect
import sys

import pytest
import scripted_vllm
from scripted_vllm import LLM, LLMEngine, SamplingParams

import hotspan
from hotspan.testing import FakeClock, capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.vllm_batch import n_prompts

MS = 1_000_000


@pytest.fixture(autouse=True)
def vllm(monkeypatch):
    """The scripted classes in vLLM's place."""
    scripted_vllm.install(monkeypatch)


@pytest.fixture
def clock():
    """The clock by which engine and spans go."""
    with FakeClock() as clock:
        yield clock


def traced(clock, **options):
    """Return a traced LLM."""
    return hotspan.trace_vllm(LLM(LLMEngine(clock, **options)))


def test_the_object_itself_is_returned_with_its_methods_as_they_were(clock):
    """Same object, same kind of object, same signatures; a second time changes nothing."""
    llm = LLM(LLMEngine(clock))
    plain = LLM(LLMEngine(clock))
    engine = llm.llm_engine
    assert hotspan.trace_vllm(llm) is llm
    kinds = type(llm), type(engine)
    assert hotspan.trace_vllm(llm) is llm

    assert (type(llm), type(engine)) == kinds
    assert isinstance(llm, LLM)
    assert isinstance(llm.llm_engine, LLMEngine)
    for name in ("generate", "chat", "enqueue", "wait_for_completion"):
        assert inspect.signature(getattr(llm, name)) == inspect.signature(getattr(plain, name))
    with capture():
        assert llm.generate(["a", "b"], SamplingParams()) == plain.generate(["a", "b"], SamplingParams())


def test_each_prompt_is_a_call_and_the_queue_is_in_the_queue(clock):
    """Two run at a time for 40 ms; the third one waits for a place, and its queue says how long."""
    llm = traced(clock)
    with capture() as captured:
        with hotspan.request("ask"):
            llm.generate(["a", "b", "c"], SamplingParams(max_tokens=4, top_k=5))
    *calls, request = captured.spans

    assert captured.tree() == [["request ask", *[["text_completion tiny"]] * 3]]
    assert [call.duration_ns for call in calls] == [40 * MS, 40 * MS, 80 * MS]
    assert [call.attributes[semconv.ACCOUNT_QUEUE_NS] for call in calls] == [0, 0, 40 * MS]
    assert {call.attributes[semconv.ACCOUNT_PREFILL_NS] for call in calls} == {10 * MS}
    assert {call.attributes[semconv.ACCOUNT_DECODE_NS] for call in calls} == {30 * MS}
    assert [call.attributes[semconv.TTFT_NS] for call in calls] == [10 * MS, 10 * MS, 50 * MS]
    assert {call.attributes[semconv.TPOT_NS] for call in calls} == {10 * MS}
    assert {call.attributes[semconv.REQUEST_TOP_K] for call in calls} == {5}
    report = hotspan.analyse([hotspan.Trace(request.trace_id, captured.spans)]).to_dict()["generation"]
    phases = {name: ms for name, ms in report["phases_ms"].items() if ms}
    assert phases == {"queue": pytest.approx(40 / 3), "prefill": 10.0, "decode": 30.0}
    assert set(report["phase_sources"]["queue"]) == {"response's metrics"}


def test_tokens_and_reasons_are_the_outputs(clock):
    """Prompt, cached and output tokens, over all answers to a prompt."""
    with capture() as captured:
        traced(clock).chat(["a"], SamplingParams(max_tokens=4, n=2))
    (call,) = captured.spans
    said = call.attributes

    assert (call.name, said[semconv.OPERATION], said[semconv.PROVIDER]) == ("chat tiny", "chat", "vllm")
    assert (said[semconv.INPUT_TOKENS], said[semconv.CACHED_TOKENS], said[semconv.OUTPUT_TOKENS]) == (3, 2, 8)
    assert list(said[semconv.FINISH_REASONS]) == ["length", "length"]
    assert said[semconv.TPOT_NS] == 10 * MS  # of the answer that the engine's times belong to
    assert semconv.TTFT_NS not in said  # the other one may have begun long before
    report = hotspan.analyse([hotspan.Trace(call.trace_id, captured.spans)]).to_dict()["generation"]
    assert {name: ms for name, ms in report["phases_ms"].items() if ms} == {"prefill": 10.0, "decode": 30.0}


def test_without_statistics_a_call_has_a_duration_and_tokens(clock):
    """The default of `LLM`: nothing is known of its phases, and nothing is made up."""
    with capture() as captured:
        traced(clock, stats=False).generate(["a"], SamplingParams())
    (call,) = captured.spans

    assert (call.duration_ns, call.attributes[semconv.OUTPUT_TOKENS]) == (40 * MS, 4)
    unknown = {semconv.TTFT_NS, semconv.TPOT_NS, semconv.ACCOUNT_SOURCE, semconv.ACCOUNT_QUEUE_NS}
    assert not unknown & call.attributes.keys()


def test_what_is_enqueued_ends_where_it_is_waited_for(clock):
    """The call lasts from the one to the other."""
    llm = traced(clock)
    with capture() as captured:
        with hotspan.request("ask"):
            llm.enqueue(["a"], SamplingParams(max_tokens=1))
            clock.advance(ms=7)
            llm.wait_for_completion()

    assert captured.one("text_completion tiny").duration_ns == 17 * MS


def test_other_uses_of_the_engine_are_no_generations(clock):
    """Embeddings, beam search and whatever else goes by the same engine."""
    with capture() as captured:
        traced(clock).embed(["a"])

    assert captured.spans == []


def test_prompts_that_never_reach_the_engine_are_a_failed_call(clock):
    """As one that is too long, which vLLM refuses at the door: what is wrong is said, once."""
    llm = traced(clock)
    with capture() as captured, hotspan.request("ask"):
        with pytest.raises(TypeError):
            llm.generate(None, SamplingParams())
    call, _ = captured.spans

    assert (call.name, call.status) == ("text_completion tiny", "error")
    assert call.attributes[semconv.ERROR_TYPE] == "TypeError"
    assert len(captured.spans) == 2


def test_a_prompt_that_is_refused_ends_the_batch(clock):
    """VLLM gives up the prompts before it too; the exception is the same object."""
    llm = traced(clock)
    with capture() as captured, pytest.raises(ValueError, match="The prompt is empty"):
        llm.generate(["a", ""], SamplingParams())

    assert [(call.status, call.attributes[semconv.ERROR_TYPE]) for call in captured.spans] == [
        ("error", "ValueError")
    ] * 2


@pytest.mark.parametrize("how", ["generate", "enqueue", "chat"])
@pytest.mark.parametrize("door", ["engine", "renderer"])
@pytest.mark.parametrize("prompts", [["", "a"], ["a", "b", "", "c"], ["a", ""], [""]])
def test_every_prompt_of_a_batch_that_is_refused_is_one_failed_call(clock, how, door, prompts):
    """Those before the refused one, which vLLM gives up, itself, and those that it never came to."""
    llm = traced(clock)
    llm.refuses_early = door == "renderer"
    with capture() as captured, pytest.raises(ValueError, match="The prompt is empty"):
        getattr(llm, how)(prompts, SamplingParams())

    assert [(call.status, call.attributes[semconv.ERROR_TYPE]) for call in captured.spans] == [
        ("error", "ValueError")
    ] * len(prompts)
    assert len(llm.generate(["a"], SamplingParams())) >= 1


@pytest.mark.parametrize(
    ("operation", "args", "kwargs", "expected"),
    [
        pytest.param("text_completion", ("one",), {}, 1, id="text"),
        pytest.param("text_completion", (["a", "b"],), {}, 2, id="texts"),
        pytest.param("text_completion", ([1, 2, 3],), {}, 1, id="tokens"),
        pytest.param("text_completion", ([[1, 2], [3]],), {}, 2, id="tokens-of-two"),
        pytest.param("text_completion", ({"prompt": "a"},), {}, 1, id="prompt-object"),
        pytest.param("text_completion", (), {"prompts": [{"prompt": "a"}, {"prompt": "b"}]}, 2, id="by-name"),
        pytest.param("chat", ([{"role": "user"}, {"role": "user"}],), {}, 1, id="conversation"),
        pytest.param("chat", (), {"messages": [[{"role": "user"}], [{"role": "user"}]]}, 2, id="two"),
        pytest.param("chat", ([],), {}, 0, id="none"),
        pytest.param("text_completion", (None,), {}, 0, id="nonsense"),
    ],
)
def test_prompts_are_counted_as_vllm_counts_them(operation, args, kwargs, expected):
    """A list of tokens is one prompt, a list of messages one conversation."""
    assert n_prompts(operation, args, kwargs) == expected


def test_what_was_enqueued_before_outlives_a_batch_that_is_refused(clock):
    """The prompts of that batch alone are given up by vLLM."""
    llm = traced(clock)
    with capture() as captured:
        llm.enqueue(["a"], SamplingParams())
        with pytest.raises(ValueError, match="The prompt is empty"):
            llm.enqueue([""], SamplingParams())
        llm.wait_for_completion()

    assert [call.status for call in captured.spans] == ["error", "unset"]


@pytest.mark.parametrize(
    ("exc", "status", "outcome"),
    [
        pytest.param(RuntimeError("the engine died"), "error", None, id="error"),
        pytest.param(KeyboardInterrupt(), "unset", semconv.INTERRUPTED, id="ctrl-c"),
    ],
)
@pytest.mark.parametrize("how", ["generate", "wait_for_completion"])
def test_an_engine_that_is_left_ends_every_open_call(clock, exc, status, outcome, how):
    """Those that have finished are finished; the others end with the exception."""
    llm = traced(clock)
    prompts = ["a", "b", "c"]

    def fail():
        if len(captured.spans) == 2:
            raise exc

    llm.llm_engine.on_step = fail
    with capture() as captured:
        if how == "wait_for_completion":
            llm.enqueue(prompts, SamplingParams())
        arguments = (prompts, SamplingParams()) if how == "generate" else ()
        with pytest.raises(type(exc)) as raised:
            getattr(llm, how)(*arguments)

    assert raised.value is exc
    *well, last = captured.spans
    assert [call.status for call in well] == ["unset", "unset"]
    assert (last.status, last.attributes.get(semconv.OUTCOME)) == (status, outcome)


def test_an_engine_that_writes_spans_is_told_of_the_call(clock):
    """Its spans become children of the call's; an engine that writes none is told nothing."""
    with capture() as captured:
        for endpoint in ("http://127.0.0.1:4318", None):
            llm = traced(clock, endpoint=endpoint)
            llm.generate(["a"], SamplingParams())
            told = [request.trace_headers for request in llm.llm_engine.seen]
            span = captured.spans[-1]
            traceparent = f"00-{span.trace_id}-{span.span_id}-01"
            assert told == [{"traceparent": traceparent} if endpoint else None]


@pytest.mark.parametrize("keep", [False, True])
def test_content_is_kept_only_when_asked_for(clock, keep):
    """Prompt and answer."""
    with capture(capture_content=keep) as captured:
        traced(clock).generate(["a"], SamplingParams(max_tokens=1))

    assert ("canary4711" in repr(captured.spans)) is keep
    assert (semconv.OUTPUT_MESSAGES in captured.spans[0].attributes) is keep


def test_nothing_is_recorded_where_nothing_is_configured(clock):
    """The outputs come all the same."""
    assert len(traced(clock).generate(["a", "b"], SamplingParams())) == 2


@pytest.mark.parametrize(
    ("served", "expected"),
    [("tiny", "tiny"), (["a", "b"], "a"), (None, "big-model"), ("org/model", "org/model")],
)
def test_the_model_is_named_as_it_is_served(clock, served, expected):
    """Of a folder, the last part; a name that is given wins."""
    with capture() as captured:
        hotspan.trace_vllm(LLM(LLMEngine(clock), served)).generate(["a"], SamplingParams())
        hotspan.trace_vllm(LLM(LLMEngine(clock), served), name="mine").generate(["a"], SamplingParams())

    assert [span.attributes[semconv.REQUEST_MODEL] for span in captured.spans] == [expected, "mine"]


def test_what_is_no_engine_is_refused():
    """By its type, with what is expected."""
    with pytest.raises(hotspan.ConfigurationError, match=r"got a builtins\.object; expected a vllm\.LLM"):
        hotspan.trace_vllm(object())


def test_without_the_package_the_extra_is_named(monkeypatch):
    """One sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "vllm", None)

    with pytest.raises(hotspan.MissingDependencyError, match=r"hotspan\[vllm\]"):
        hotspan.trace_vllm(object())
