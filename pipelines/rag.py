"""The reference RAG pipeline: embed, retrieve, rerank, assemble, generate.

    request
    ├── embedding          the question, by sentence-transformers
    ├── retrieval          the nearest passages, by FAISS
    ├── rerank             late interaction or a cross-encoder
    ├── context_assembly   the best passages under the engine's token budget
    └── generation         streamed; traced by the engine

What traces it are the decorators and `with` lines that name a stage; without them it is the same program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import hotspan
from hotspan.pipelines.prompt import fit, join
from hotspan.pipelines.rerank import Query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.pipelines.embedder import Embedder
    from hotspan.pipelines.engines.base import Engine
    from hotspan.pipelines.index import Hit, Index
    from hotspan.pipelines.rerank import Reranker

CANDIDATES: Final = 30  # what retrieval hands to the reranker
KEPT: Final = 5  # what the reranker hands on
CONTEXT_TOKENS: Final = 700
ANSWER_TOKENS: Final = 32

INSTRUCTION: Final = "Answer the question from the passages. Say so if they do not hold the answer."


class Retriever:
    """Finds the passages that answer a question."""

    def __init__(self, index: Index, embedder: Embedder, reranker: Reranker) -> None:
        self.index = index
        self._embedder = embedder
        self._reranker = reranker

    def search(self, question: str, top_k: int = KEPT) -> list[Hit]:
        """Return the best passages, best first."""
        query = self.embed(question)
        return self.rerank(query, self.retrieve(query))[:top_k]

    def embed(self, question: str) -> Query:
        """Return the question's vector and its tokens' vectors."""
        with hotspan.embedding(model=self._embedder.name):
            vectors, token_vectors = self._embedder.encode_with_tokens([question])
            return Query(question, vectors, token_vectors[0])

    @hotspan.retrieval("faiss", top_k=CANDIDATES)
    def retrieve(self, query: Query) -> list[Hit]:
        """Return the nearest passages by cosine, best first."""
        hits = self.index.search(query.vector, CANDIDATES)[0]
        hotspan.current().set("documents", len(hits))
        return hits

    def rerank(self, query: Query, hits: Sequence[Hit]) -> list[Hit]:
        """Return the same passages in a better order."""
        with hotspan.rerank(model=self._reranker.model) as span:
            span.set("documents", len(hits))
            return self._reranker.order(query, hits)


class Rag:
    """Answers questions from a corpus."""

    def __init__(self, engine: Engine, retriever: Retriever, *, context_tokens: int = CONTEXT_TOKENS) -> None:
        self._engine = engine
        self._retriever = retriever
        self._context_tokens = context_tokens

    @hotspan.request("rag")
    def stream(self, question: str) -> Iterator[str]:
        """Yield the answer, piece by piece."""
        hits = self._retriever.search(question)
        messages = self.assemble(question, hits)
        yield from self._engine.stream(messages, max_tokens=ANSWER_TOKENS)

    def answer(self, question: str) -> str:
        """Return the whole answer."""
        return "".join(self.stream(question))

    @hotspan.context_assembly
    def assemble(self, question: str, hits: Sequence[Hit]) -> list[dict[str, str]]:
        """Return the messages for the model: as many of the passages as the budget holds, best first."""
        passages = [f"{hit.passage.title}:\n{hit.passage.text}" for hit in hits]
        context = fit(passages, self._context_tokens, self._engine.count_tokens)
        hotspan.current().set("documents", len(context))
        return [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": f"{join(context)}\n\nQuestion: {question}"},
        ]
