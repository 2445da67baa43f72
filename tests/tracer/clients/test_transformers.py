"""`trace_transformers` on real models: for the user, nothing changes."""

import copy
import gc
import inspect
import pickle
import sys
import weakref

import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from local_models import N, load

pytestmark = pytest.mark.rag


def test_the_object_itself_is_returned_with_its_method_as_it_was(plain):
    """Same object, same kind of object, same signature; a second time changes nothing."""
    model = load()
    traced = hotspan.trace_transformers(model)
    kind = type(traced)

    assert hotspan.trace_transformers(traced) is traced is model
    assert type(traced) is kind
    assert isinstance(traced, transformers.Qwen2ForCausalLM)
    assert repr(traced) == repr(plain)
    assert inspect.signature(traced.generate) == inspect.signature(plain.generate)
    assert (traced.generate.__name__, traced.generate.__doc__) == ("generate", plain.generate.__doc__)
    assert inspect.ismethod(traced.generate)


CALLS = {
    "greedy": {},
    "sampled": {"do_sample": True, "temperature": 0.7, "top_k": 20},
    "beams": {"num_beams": 3},
    "several-answers": {"do_sample": True, "num_return_sequences": 2},
    "dict": {"return_dict_in_generate": True, "output_scores": True},
    "prompt-lookup": {"prompt_lookup_num_tokens": 3},
    "own-config": {"generation_config": transformers.GenerationConfig(max_new_tokens=4, pad_token_id=0)},
}


@pytest.mark.parametrize("options", [pytest.param(options, id=name) for name, options in CALLS.items()])
@pytest.mark.filterwarnings("ignore")  # of the options
def test_results_are_the_same(plain, model, prompt, options):
    """Whatever way of decoding: the same tokens, of the same type; one prompt is one span."""
    options = {"max_new_tokens": N, **options} if "generation_config" not in options else options
    torch.manual_seed(0)
    expected = plain.generate(**prompt, **options)
    with capture() as captured:
        torch.manual_seed(0)
        result = model.generate(**prompt, **options)

    assert type(result) is type(expected)
    assert torch.equal(getattr(result, "sequences", result), getattr(expected, "sequences", expected))
    (span,) = captured.spans
    n_tokens = getattr(result, "sequences", result)[:, prompt["input_ids"].shape[1] :].numel()
    assert span.attributes[semconv.OUTPUT_TOKENS] == n_tokens


def test_a_mistake_is_the_same_mistake(plain, model, prompt):
    """A wrong argument raises what it raised, and no span pretends that there was a call."""
    for wrong in ({"nonsense": 1}, {"inputs": prompt["input_ids"], "input_ids": prompt["input_ids"]}):
        with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever transformers raises
            plain.generate(**wrong)
        with capture() as captured, pytest.raises(type(expected.value)) as raised:
            model.generate(**wrong)
        assert str(raised.value) == str(expected.value)
    with capture() as captured, pytest.raises(TypeError):
        model.generate(prompt["input_ids"], inputs=prompt["input_ids"])
    assert captured.spans == []


def test_copies_and_pickles_are_the_models_own(plain, model, prompt):
    """A copy is of the class that the model had, and generates by itself."""
    for copied in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301 - ours
        assert type(copied) is transformers.Qwen2ForCausalLM
        with capture() as captured:
            result = copied.generate(**prompt, max_new_tokens=2)
        assert torch.equal(result, plain.generate(**prompt, max_new_tokens=2))
        assert captured.spans == []


def test_a_dropped_model_is_freed_at_once():
    """No cycle keeps its memory until the collector comes."""
    model = hotspan.trace_transformers(load())
    gone = weakref.ref(model)
    gc.disable()
    try:
        del model
        assert gone() is None
    finally:
        gc.enable()


def test_a_generate_that_somebody_put_on_the_object_is_traced(prompt):
    """Other libraries replace the method there; theirs is called."""
    model = load()
    plain_generate = model.generate

    def generate(*args, **kwargs):
        return "theirs", plain_generate(*args, **kwargs)

    model.generate = generate
    hotspan.trace_transformers(model, name="tiny")
    with capture() as captured:
        said, _ = model.generate(**prompt, max_new_tokens=2)

    assert said == "theirs"
    assert [span.name for span in captured.spans] == ["text_completion tiny"]


@pytest.mark.parametrize("what", [object(), "model", None])
def test_what_is_no_model_is_refused(what):
    """By its type, with what is expected."""
    with pytest.raises(hotspan.ConfigurationError, match=r"got a builtins\.\w+; expected"):
        hotspan.trace_transformers(what)


def test_without_the_package_the_extra_is_named(monkeypatch):
    """One sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "transformers", None)

    with pytest.raises(hotspan.MissingDependencyError, match=r"hotspan\[rag\]"):
        hotspan.trace_transformers(object())
