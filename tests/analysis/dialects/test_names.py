"""Stages from names alone."""

import pytest

from hotspan.analysis.dialects.names import guess


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("retrieve", "retrieval"),
        ("retrieve {question=}", "retrieval"),
        ("VectorStoreRetriever", "retrieval"),
        ("InMemoryEmbeddingRetriever.run", "retrieval"),
        ("faiss.search", "retrieval"),
        ("vector search", "retrieval"),
        ("search vector store", "retrieval"),
        ("search_documents", "retrieval"),
        ("executor.process retrieve", "retrieval"),
        ("rerank {n} documents", "rerank"),
        ("execute_task rerank", "rerank"),
        ("JinaRanker.run", "rerank"),
        ("Reranker._postprocess_nodes", "rerank"),
        ("cross_encoder", "rerank"),
        ("embed_question", "embedding"),
        ("OpenAIEmbedding.task", "embedding"),
        ("build_prompt.task", "context_assembly"),
        ("Calling __main__.build_prompt", "context_assembly"),
        ("format_docs", "context_assembly"),
        ("tool search", "tool"),
        ("running tool: search", "tool"),
        ("call_tool.task", "tool"),
        ("assistant", "agent"),
        ("research-agent", "agent"),
        ("agent run", "agent"),
        ("FunctionAgent.workflow", "agent"),
        ("LangGraph.workflow", "agent"),
        ("Step 1", "step"),
        ("turn", "step"),
    ],
)
def test_the_words_that_people_use(name, stage):
    """Case, punctuation and what frameworks put around a name do not matter."""
    assert guess(name) == stage


@pytest.mark.parametrize(
    "name",
    [
        "rag",
        "answer question",
        "POST /ask",
        "generate",
        "retrieve_and_rerank",
        "search",
        "calculate",
        "running 2 tools",
        "tools",
        "ToolNode",
        "BaseWorkflowAgent.run_agent_step",
        "agent_request.workflow",
        "user_agent_parser",
        "RunnablePassthrough",
        "frankfurter",
        "",
        "…",
        "Retrieve the documents of last year, then embed them and say what the speed of engines was.task",
        "Documents:\nretrieve",
    ],
)
def test_other_names_tell_nothing(name):
    """A name that says two things, a sentence, a user's text or any other word is no stage."""
    assert guess(name) is None
