"""Two ways to put found passages into a better order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from hotspan.pipelines.embedder import load_named
from hotspan.pipelines.engines.optional import need
from hotspan.pipelines.index import embedded_text, max_sim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.pipelines.embedder import Vectors
    from hotspan.pipelines.index import Hit, Index

_WHAT: Final = "Reranking"


@dataclass(frozen=True, slots=True)
class Query:
    """A question, as search and reranking need it."""

    text: str
    vector: Vectors
    """Shape (1, dimensions), of length 1."""
    token_vectors: Vectors
    """Shape (tokens, dimensions), each of length 1."""


class Reranker(Protocol):
    """Orders passages by how well they answer a query."""

    @property
    def model(self) -> str:
        """The model's name, as the spans carry it."""

    def order(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        """Return the same passages with new scores, best first."""


class LateInteraction:
    """MaxSim over the token vectors of the embedding model, which the index keeps for its passages."""

    def __init__(self, index: Index, model: str) -> None:
        self.model = model
        self._index = index

    def order(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits by `max_sim`; those of one score stay in the order they came in."""
        return _rescored(
            hits, max_sim(query.token_vectors, [self._index.token_vectors(hit.row) for hit in hits])
        )


class CrossEncoderReranker:
    """A `sentence-transformers` CrossEncoder, which reads the question and each passage together.

    Args:
        model: Any name or folder that `CrossEncoder` takes.

    Raises:
        hotspan.MissingDependencyError: sentence-transformers is not installed.
        hotspan.ConfigurationError: The model cannot be loaded.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        cross_encoder = need("sentence_transformers", what=_WHAT).CrossEncoder
        self._model = load_named(lambda: cross_encoder(model), model)

    def order(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits by the model's score."""
        if not hits:
            return []
        pairs = [(query.text, embedded_text(hit.passage)) for hit in hits]
        return _rescored(hits, self._model.predict(pairs, show_progress_bar=False).tolist())


def _rescored(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    scored = (replace(hit, score=score) for hit, score in zip(hits, scores, strict=True))
    return sorted(scored, key=lambda hit: -hit.score)
