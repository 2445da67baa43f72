"""How good retrieval is, measured on questions whose right topic is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotspan.pipelines.rag import CANDIDATES, KEPT
from hotspan.pipelines.rerank import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.pipelines.embedder import Embedder
    from hotspan.pipelines.index import Hit, Index
    from hotspan.pipelines.questions import Question
    from hotspan.pipelines.rerank import Reranker


@dataclass(frozen=True, slots=True)
class Ranking:
    """The quality of one way to order passages."""

    recall_ratio: float
    """Share of the questions with a right passage among the first `KEPT`."""
    mrr: float
    """Mean over the questions of 1 / rank of the first right passage; 0 where none was found."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Retrieval with and without reranking, over the same questions and candidates."""

    n_questions: int
    plain: Ranking
    reranked: Ranking


def measure(questions: Sequence[Question], index: Index, embedder: Embedder, reranker: Reranker) -> Quality:
    """Return the quality of plain retrieval and of the reranked results, both over `CANDIDATES` candidates.

    Args:
        questions: At least one.
        index: Of the corpus that the questions are about.
        embedder: The model that made the index.
        reranker: What to compare with plain retrieval.
    """
    texts = [question.text for question in questions]
    vectors, token_vectors = embedder.encode_with_tokens(texts)
    plain = index.search(vectors, CANDIDATES)
    queries = [Query(text, vectors[at : at + 1], token_vectors[at]) for at, text in enumerate(texts)]
    reranked = [reranker.order(query, hits) for query, hits in zip(queries, plain, strict=True)]
    return Quality(len(questions), rate(questions, plain), rate(questions, reranked))


def rate(questions: Sequence[Question], found: Sequence[Sequence[Hit]]) -> Ranking:
    """Return recall and mean reciprocal rank of the passages found for each question, best first."""
    ranks = [_first_right(*pair) for pair in zip(questions, found, strict=True)]
    return Ranking(
        recall_ratio=sum(rank is not None and rank <= KEPT for rank in ranks) / len(ranks),
        mrr=sum(1 / rank for rank in ranks if rank is not None) / len(ranks),
    )


def _first_right(question: Question, hits: Sequence[Hit]) -> int | None:
    return next((rank for rank, hit in enumerate(hits, 1) if hit.passage.topic in question.topics), None)
