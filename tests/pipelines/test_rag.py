"""The RAG pipeline on the embedded engine: every stage is real, and every stage is traced."""

from __future__ import annotations

import pytest

from hotspan.pipelines.rag import CANDIDATES, KEPT, Rag
from hotspan.testing import capture

pytestmark = pytest.mark.rag


@pytest.fixture
def rag(embedded, retriever):
    """The default pipeline on the embedded engine."""
    return Rag(embedded, retriever)


def test_the_tree_of_a_request(rag):
    """One request is five stages, one after the other, below one root."""
    with capture() as captured:
        text = rag.answer("How do I close a file?")

    assert text
    assert captured.tree() == [
        [
            "request rag",
            ["embeddings all-MiniLM-L6-v2"],
            ["retrieval faiss"],
            ["rerank all-MiniLM-L6-v2"],
            ["context_assembly"],
            ["chat tiny"],
        ]
    ]


def test_stages_say_how_many_documents_they_hand_on(rag):
    """Retrieval finds the candidates, assembly keeps what the budget holds."""
    with capture() as captured:
        rag.answer("How do I close a file?")

    assert captured.one("retrieval faiss").attributes["documents"] == CANDIDATES
    assert 1 <= captured.one("context_assembly").attributes["documents"] <= KEPT


def test_no_text_of_the_user_or_the_corpus_is_recorded(rag):
    """Without `capture_content` no question, passage or answer is in any span."""
    canary = "xyzzyplugh"
    with capture() as captured:
        rag.answer(f"What is {canary}?")

    assert canary not in repr([(span.name, dict(span.attributes), span.events) for span in captured.spans])


@pytest.mark.parametrize("budget", [1, 40, 300])
def test_the_context_keeps_to_its_budget(embedded, retriever, budget):
    """The passages in the prompt have at most that many tokens, counted by the engine's own tokenizer."""
    question = "How do I close a file?"
    hits = retriever.search(question)
    message = Rag(embedded, retriever, context_tokens=budget).assemble(question, hits)[1]["content"]
    context = message.removesuffix(f"\n\nQuestion: {question}")

    assert context != message
    assert 0 < embedded.count_tokens(context) <= budget


def test_streaming_gives_pieces(rag):
    """The answer comes in pieces, which together are what `answer` returns."""
    pieces = list(rag.stream("How do I close a file?"))

    assert len(pieces) > 1


def test_it_is_the_same_program_untraced(embedded, retriever):
    """The same passages are chosen with tracing as without."""
    rag, question = Rag(embedded, retriever), "What is a metaclass?"
    bare = rag.assemble(question, retriever.search(question))
    with capture():
        assert rag.assemble(question, retriever.search(question)) == bare
