"""The real models that the pipelines' tests share, loaded once."""

from __future__ import annotations

import os

import pytest

from hotspan.pipelines.corpus import load_corpus
from hotspan.pipelines.embedder import Embedder
from hotspan.pipelines.engines import embedded_engine
from hotspan.pipelines.index import open_index
from hotspan.pipelines.rag import Retriever
from hotspan.pipelines.rerank import LateInteraction

# The models are small: a second thread gains little, and on a busy machine the threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def embedder():
    """The default embedding model."""
    return Embedder()


@pytest.fixture(scope="session")
def index(embedder):
    """The default corpus, from the cache where it is there."""
    return open_index(load_corpus(), embedder, print)


@pytest.fixture(scope="session")
def retriever(index, embedder):
    """The default retriever: late interaction over the default corpus."""
    return Retriever(index, embedder, LateInteraction(index, embedder.name))


@pytest.fixture(scope="session")
def embedded():
    """The embedded engine with the tiny model."""
    with embedded_engine() as engine:
        yield engine
