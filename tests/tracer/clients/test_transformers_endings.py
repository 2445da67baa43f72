"""`trace_transformers`: streamers and threads of the user's own, and every way out."""

import inspect
import io
import sys
import threading

import pytest

import hotspan
from hotspan.testing import FakeClock, capture
from hotspan.tracer import semconv

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from local_models import N, OnStep, Recording, step_by

pytestmark = pytest.mark.rag

CANARY = "canary4711"


# --- Streamers and threads --------------------------------------------------------------------------------


def test_a_users_streamer_sees_the_same_calls(plain, model, prompt):
    """Prompt, tokens, end: the same values in the same order, passed by name or by place."""
    expected, named, placed = Recording(), Recording(), Recording()
    plain.generate(**prompt, max_new_tokens=N, streamer=expected)
    with capture() as captured:
        model.generate(**prompt, max_new_tokens=N, streamer=named)
        model.generate(
            prompt["input_ids"], None, None, None, None, None, None, placed, max_new_tokens=N
        )  # fmt: skip

    assert named.calls == placed.calls == expected.calls
    assert [span.attributes[semconv.CHUNKS] for span in captured.spans] == [N, N]


def test_the_stand_in_is_the_users_streamer_to_whoever_asks(model, prompt):
    """A model's own `generate` may ask for more than `put` and `end`."""
    seen = []

    class Curious(transformers.StoppingCriteria):
        def __call__(self, input_ids, _scores, **_kwargs):
            frame = inspect.currentframe()
            while frame is not None and "stop_check" not in frame.f_locals:
                frame = frame.f_back
            seen.append(frame.f_locals.get("streamer"))
            return torch.zeros(input_ids.shape[0], dtype=torch.bool)

    own = Recording()
    with capture():
        model.generate(**prompt, max_new_tokens=1, streamer=own, stopping_criteria=[Curious()])

    assert seen[0] is not own
    assert isinstance(seen[0], Recording)
    assert seen[0].calls is own.calls


def test_text_comes_from_a_thread_as_users_write_it(plain, model, prompt, tokenizer):
    """`TextIteratorStreamer` in another thread: the same text, and the call is part of the request."""

    def read(one):
        streamer = transformers.TextIteratorStreamer(tokenizer, skip_prompt=True)
        arguments = {**prompt, "streamer": streamer, "max_new_tokens": N}
        thread = threading.Thread(target=hotspan.propagate(one.generate), kwargs=arguments)
        thread.start()
        text = "".join(streamer)
        thread.join()
        return text

    with capture() as captured:
        with hotspan.request("ask"):
            text = read(model)

    assert text == read(plain)
    assert captured.tree() == [["request ask", ["text_completion tiny"]]]


def test_printed_text_is_the_same(plain, model, prompt, tokenizer, monkeypatch):
    """`TextStreamer` prints as before."""
    printed = []
    for one in (plain, model):
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        with capture():
            one.generate(**prompt, max_new_tokens=N, streamer=transformers.TextStreamer(tokenizer))
        printed.append(sys.stdout.getvalue())

    assert printed[0] == printed[1] != ""


def test_what_happens_inside_belongs_to_the_call(model, prompt):
    """A stage that the user's streamer opens is a child of the generation."""

    def show():
        with hotspan.stage("show"):
            pass

    with capture() as captured:
        model.generate(**prompt, max_new_tokens=1, streamer=Recording(show))

    assert captured.tree() == [["text_completion tiny", ["show"], ["show"]]]


# --- Ways out ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exc", "status", "outcome"),
    [
        pytest.param(RuntimeError(CANARY), "error", None, id="error"),
        pytest.param(KeyboardInterrupt(), "unset", semconv.INTERRUPTED, id="ctrl-c"),
        pytest.param(SystemExit(0), "unset", None, id="exit"),
    ],
)
def test_an_exception_ends_the_call(model, prompt, exc, status, outcome):
    """The same object leaves `generate`; the tokens until then are there, and nothing that it says."""

    def act(n_steps, _scores):
        if n_steps == 2:
            raise exc

    with capture() as captured, pytest.raises(type(exc)) as raised:
        model.generate(**prompt, max_new_tokens=N, logits_processor=[OnStep(act)])

    assert raised.value is exc
    (span,) = captured.spans
    assert (span.status, span.attributes.get(semconv.OUTCOME)) == (status, outcome)
    assert span.attributes[semconv.OUTPUT_TOKENS] == 2
    assert CANARY not in repr(span)


def test_a_streamer_that_raises_ends_the_call(model, prompt):
    """As users cancel a generation."""

    def cancel():
        raise InterruptedError

    with capture() as captured, pytest.raises(InterruptedError):
        model.generate(**prompt, max_new_tokens=N, streamer=Recording(cancel))

    assert [span.status for span in captured.spans] == ["error"]


def test_nothing_is_put_in_where_nothing_is_recorded(model, prompt):
    """Not traced, or a request that is not sampled: no streamer of ours, no span."""
    seen = []

    def act(_n_steps, _scores):
        frame = inspect.currentframe()
        while "streamer" not in frame.f_locals:
            frame = frame.f_back
        seen.append(frame.f_locals["streamer"])

    options = {"max_new_tokens": 1, "logits_processor": [OnStep(act)]}
    model.generate(**prompt, **options)
    with capture(sample_ratio=0.0) as captured:
        model.generate(**prompt, **options)

    assert seen == [None, None]
    assert captured.spans == []


def test_no_content_is_recorded(model, tokenizer):
    """A prompt goes in, tokens come out, and neither is in the span."""
    ids = tokenizer([CANARY], return_tensors="pt")["input_ids"]
    with capture() as captured:
        model.generate(ids, max_new_tokens=2, streamer=Recording())

    assert CANARY not in repr(captured.spans)
    assert str(ids.tolist()[0])[1:-1] not in repr(captured.spans)


def test_the_report_divides_the_call(model, prompt):
    """Prefill and decode from the token steps, hold from the streamer, and all of it adds up."""
    with FakeClock() as clock, capture() as captured:
        options = step_by(clock)
        streamer = Recording(lambda: clock.advance(ms=5))
        model.generate(**prompt, **options, streamer=streamer)
    report = hotspan.analyse([hotspan.Trace(captured.spans[0].trace_id, captured.spans)]).to_dict()
    generation = report["generation"]
    phases = {name: ms for name, ms in generation["phases_ms"].items() if ms}

    assert phases == {"prefill": 100.0, "decode": 50.0, "consumer_hold": (N + 1) * 5.0}
    assert set(generation["phase_sources"]["prefill"]) == {"response's token steps"}
    assert generation["ttft_ms"]["p50"] == 100.0
