"""`trace_faiss` on real indexes: searches as before, each one a retrieval."""

import copy
import inspect
import pickle
import sys

import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

pytest.importorskip("faiss")

import faiss
import numpy as np

pytestmark = pytest.mark.rag

N, N_DIMENSIONS, K = 40, 16, 3
VECTORS = np.random.default_rng(0).random((N, N_DIMENSIONS), dtype="float32")
QUERIES = VECTORS[:2]


def flat():
    """Return an index of real vectors."""
    index = faiss.IndexFlatIP(N_DIMENSIONS)
    index.add(VECTORS)
    return index


def clustered():
    """Return an index that was trained."""
    index = faiss.index_factory(N_DIMENSIONS, "IVF2,Flat")
    index.train(VECTORS)
    index.add(VECTORS)
    return index


def same(result, expected):
    """Return whether two tuples of arrays are equal."""
    return all(np.array_equal(one, other) for one, other in zip(result, expected, strict=True))


def test_the_object_itself_is_returned_with_its_methods_as_they_were():
    """Same object, same kind of object, same signature; a second time changes nothing."""
    index = flat()
    traced = hotspan.trace_faiss(index)
    kind = type(traced)

    assert hotspan.trace_faiss(traced) is traced is index
    assert type(traced) is kind
    assert isinstance(traced, faiss.IndexFlatIP)
    assert (traced.ntotal, traced.d) == (N, N_DIMENSIONS)
    assert inspect.signature(traced.search) == inspect.signature(flat().search)


@pytest.mark.parametrize("make", [flat, clustered])
def test_each_way_to_search_is_one_retrieval(make):
    """The same scores and rows, in one span with what was asked of what."""
    plain, index = make(), hotspan.trace_faiss(make(), name="passages")
    with capture() as captured:
        assert same(index.search(QUERIES, K), plain.search(QUERIES, K))
        assert same(index.search(x=QUERIES, k=K), plain.search(QUERIES, K))
        assert same(index.search_and_reconstruct(QUERIES, K), plain.search_and_reconstruct(QUERIES, K))
        assert same(index.range_search(QUERIES, 0.5), plain.range_search(QUERIES, 0.5))

    for span, top_k in zip(captured.spans, (K, K, K, None), strict=True):
        said = span.attributes
        assert (span.name, said[semconv.STAGE]) == ("retrieval passages", "retrieval")
        assert (said.get(semconv.REQUEST_TOP_K), said[semconv.BATCH_SIZE]) == (top_k, 2)
        assert (said[semconv.INDEX_TYPE], said[semconv.INDEX_SIZE]) == (type(plain).__name__, N)
    assert [span.attributes.get(semconv.COLD) for span in captured.spans] == [True, None, None, None]


def test_a_binary_index_is_searched_too():
    """It is of another family of classes."""
    codes = np.packbits(VECTORS > 0.5, axis=1)
    index = faiss.IndexBinaryFlat(N_DIMENSIONS)
    index.add(codes)
    with capture() as captured:
        hotspan.trace_faiss(index).search(codes[:1], K)

    assert [span.attributes[semconv.INDEX_TYPE] for span in captured.spans] == ["IndexBinaryFlat"]


def test_the_index_goes_on_to_work():
    """It can be added to, written, copied, cloned and put into another one."""
    index = hotspan.trace_faiss(flat())
    index.add(QUERIES)

    assert index.ntotal == N + 2
    for copied in (faiss.clone_index(index), copy.deepcopy(index), pickle.loads(pickle.dumps(index))):  # noqa: S301 - ours
        assert type(copied) is faiss.IndexFlatIP
        assert same(copied.search(QUERIES, K), index.search(QUERIES, K))
    assert faiss.deserialize_index(faiss.serialize_index(index)).ntotal == N + 2
    assert (
        faiss.IndexPreTransform(faiss.RandomRotationMatrix(N_DIMENSIONS, N_DIMENSIONS), index).ntotal == N + 2
    )


def test_an_exception_ends_the_search():
    """The same mistake, in a span that has failed."""
    index = hotspan.trace_faiss(flat())
    with capture() as captured, pytest.raises(AssertionError):
        index.search(QUERIES[:, :3], K)

    assert [span.status for span in captured.spans] == ["error"]


@pytest.mark.parametrize("what", [object(), VECTORS])
def test_what_is_no_index_is_refused(what):
    """By its type, with what is expected."""
    with pytest.raises(hotspan.ConfigurationError, match=r"got a \w+\.\w+; expected a faiss\.Index"):
        hotspan.trace_faiss(what)


def test_without_the_package_the_extra_is_named(monkeypatch):
    """One sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "faiss", None)

    with pytest.raises(hotspan.MissingDependencyError, match=r"hotspan\[rag\]"):
        hotspan.trace_faiss(object())
