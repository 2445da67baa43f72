"""What one span says it is, by its writer's entry in the dialect table or by the general rules."""

import pytest

from hotspan.analysis.dialects import read
from hotspan.tracer.record import Scope, SpanRecord

OPENINFERENCE = "openinference.span.kind"
OPERATION = "gen_ai.operation.name"
FAMILY = "openinference.instrumentation"
JS_FAMILY = "@arizeai/openinference-instrumentation"
GENKIT = "genkit:metadata:subtype"
TRACELOOP = "traceloop.span.kind"
LANGSMITH = "langsmith.span.kind"


def span(scope, name, attributes=(), kind="internal"):
    """Return a span of some writer."""
    return SpanRecord("1", "1", None, name, 0, 10, dict(attributes), kind, scope=Scope(scope))


@pytest.mark.parametrize(
    ("scope", "name", "attributes", "stage"),
    [
        pytest.param("app", "x", {"hotspan.stage": "mine", OPERATION: "chat"}, "mine", id="ours-first"),
        pytest.param("app", "x", {OPERATION: "chat"}, "generation", id="operation"),
        pytest.param("app", "x", {OPERATION: "create_agent"}, None, id="making-an-agent-is-no-run"),
        pytest.param("app", "x", {OPERATION: "RETRIEVER"}, "retrieval", id="mlflow-type-as-an-operation"),
        pytest.param("app", "x", {OPENINFERENCE: "RERANKER"}, "rerank", id="openinference"),
        pytest.param("app", "x", {OPENINFERENCE: "CHAIN", OPERATION: "chat"}, None, id="vendor-first"),
        pytest.param("app", "x", {TRACELOOP: "tool"}, "tool", id="openllmetry"),
        pytest.param("app", "x", {"langfuse.observation.type": "generation"}, "generation", id="langfuse"),
        pytest.param("app", "x", {"mlflow.spanType": '"CHAT_MODEL"'}, "generation", id="mlflow-quotes"),
        pytest.param("app", "x", {"llm.request.type": "rerank"}, "rerank", id="openllmetry-of-old"),
        pytest.param("hotspan", "retrieve", {}, None, id="ours-without-a-stage"),
    ],
)
def test_the_general_rules(scope, name, attributes, stage):
    """Our own stage, then the vendors' kinds, then OpenTelemetry's operation."""
    assert read(span(scope, name, attributes)) == (stage, False)


CREATED = '{"ls_integration": "langchain_create_agent", "lc_agent_name": "a"}'
NODE = '{"ls_integration": "langchain_create_agent", "langgraph_node": "model"}'
CREATE_AGENT = '"langchain_create_agent"'
LANGFUSE = "langfuse.observation.type"
METADATA = "langfuse.observation.metadata"
MLFLOW = "mlflow.spanType"
LLAMA_INDEX = "llamaindex.opentelemetry.tracer"


@pytest.mark.parametrize(
    ("scope", "name", "attributes", "stage"),
    [
        (
            f"{FAMILY}.langchain",
            "a",
            {OPENINFERENCE: "CHAIN", "metadata": CREATED},
            "agent",
        ),
        (
            f"{FAMILY}.langchain",
            "model",
            {OPENINFERENCE: "CHAIN", "metadata": NODE},
            None,
        ),
        (
            f"{FAMILY}.llama_index",
            "X._prepare_chat_with_tools",
            {OPENINFERENCE: "LLM"},
            None,
        ),
        (f"{FAMILY}.llama_index", "ReActAgent.run", {OPENINFERENCE: "CHAIN"}, "agent"),
        (f"{FAMILY}.llama_index", "Agent.run_step", {OPENINFERENCE: "CHAIN"}, None),
        ("openinference.instrumentation.openai_agents", "trace", {OPENINFERENCE: "AGENT"}, None),
        (
            "openinference.instrumentation.openai_agents",
            "a",
            {OPENINFERENCE: "AGENT", "agent.name": "a"},
            "agent",
        ),
        ("openinference.instrumentation.dspy", "ReAct.forward", {OPENINFERENCE: "CHAIN"}, "agent"),
        ("openinference.instrumentation.dspy", "finish.__call__", {OPENINFERENCE: "TOOL"}, None),
        ("openinference.instrumentation.haystack", "ToolInvoker.run", {OPENINFERENCE: "CHAIN"}, "tool"),
        (
            "openinference.instrumentation.smolagents",
            "FinalAnswerTool",
            {OPENINFERENCE: "TOOL", "tool.name": "final_answer"},
            None,
        ),
        ("openinference.instrumentation.smolagents", "RetrieverTool", {OPENINFERENCE: "TOOL"}, "retrieval"),
        ("openinference.instrumentation.google_adk", "invoke_agent a", {OPENINFERENCE: "LLM"}, "agent"),
        ("gcp.vertex.agent", "execute_tool (merged)", {OPERATION: "execute_tool"}, None),
        ("gcp.vertex.agent", "execute_tool search", {OPERATION: "execute_tool"}, "tool"),
        (
            "opentelemetry.instrumentation.langchain",
            "rag.workflow",
            {OPERATION: "invoke_agent", TRACELOOP: "workflow"},
            None,
        ),
        (
            "opentelemetry.instrumentation.langchain",
            "a.workflow",
            {
                OPERATION: "invoke_agent",
                TRACELOOP: "workflow",
                "traceloop.association.properties.ls_integration": "langchain_create_agent",
            },
            "agent",
        ),
        (
            "opentelemetry.instrumentation.langchain",
            "vector_db_retrieve R",
            {OPERATION: "vector_db_retrieve", TRACELOOP: "task"},
            "retrieval",
        ),
        (
            "opentelemetry.instrumentation.crewai.instrumentation",
            "Writer.agent",
            {OPERATION: "invoke_agent", TRACELOOP: "agent"},
            "agent",
        ),
        (
            "opentelemetry.instrumentation.crewai.instrumentation",
            "Retrieve and embed.task",
            {OPERATION: "invoke_agent", TRACELOOP: "task"},
            None,
        ),
        ("opentelemetry.instrumentation.crewai", "crewai.workflow", {OPERATION: "invoke_agent"}, None),
        ("langsmith", "ChatPromptTemplate", {LANGSMITH: "prompt", OPERATION: "chat"}, "context_assembly"),
        ("langsmith", "VectorStoreRetriever", {LANGSMITH: "retriever", OPERATION: "embeddings"}, "retrieval"),
        (
            "langsmith",
            "a",
            {LANGSMITH: "chain", "langsmith.metadata.ls_integration": "langchain_create_agent"},
            "agent",
        ),
        (
            "nat",
            "<workflow>",
            {"nat.span.kind": "WORKFLOW", "nat.subspan.name": "tool_calling_agent"},
            "agent",
        ),
        ("nat", "<workflow>", {"nat.span.kind": "WORKFLOW", "nat.subspan.name": "rag"}, None),
        ("nat", "agent", {"nat.span.kind": "FUNCTION", OPENINFERENCE: "CHAIN"}, None),
        ("app", "haystack.agent.step.llm", {}, "generation"),
        ("app", "haystack.component.run", {"haystack.component.type": "JinaRanker"}, "rerank"),
        ("app", "haystack.component.run", {"haystack.component.type": "DocumentWriter"}, None),
        ("logfire.openai", "streaming response", {"logfire.span_type": "log", OPERATION: "chat"}, None),
        ("logfire.openai_agents", "Agent run: {name!r}", {"name": "a"}, "agent"),
        ("logfire.openai_agents", "Chat completion with {gen_ai.request.model!r}", {}, "generation"),
        ("logfire.openai_agents", "Function: {name}", {"name": "search"}, "tool"),
        ("logfire.openai_agents", "Turn {turn} for agent a", {}, "step"),
        ("logfire.openai_agents", "Handoff: {from_agent} → {to_agent}", {}, None),
        ("strands.telemetry.tracer", "cycle", {OPERATION: "execute_event_loop_cycle"}, "step"),
        ("strands.telemetry.tracer", "execute_event_loop_cycle", {OPENINFERENCE: "CHAIN"}, "step"),
        ("langfuse-sdk", "a", {LANGFUSE: "chain", f"{METADATA}.ls_integration": CREATE_AGENT}, "agent"),
        (
            "langfuse-sdk",
            "model",
            {
                LANGFUSE: "chain",
                f"{METADATA}.ls_integration": CREATE_AGENT,
                f"{METADATA}.langgraph_node": '"model"',
            },
            None,
        ),
        ("langfuse-sdk", "rag", {LANGFUSE: "chain"}, None),
        ("langfuse-sdk", "m", {LANGFUSE: "generation"}, "generation"),
        ("mlflow.tracing.provider", "a", {MLFLOW: '"CHAIN"', "metadata": CREATED}, "agent"),
        ("mlflow.tracing.provider", "model", {MLFLOW: '"CHAIN"', "metadata": NODE}, None),
        ("mlflow.tracing.provider", "rag", {MLFLOW: '"CHAIN"'}, None),
        ("mlflow.tracing.provider", "m", {MLFLOW: '"CHAT_MODEL"'}, "generation"),
        (LLAMA_INDEX, "FunctionAgent.run", {}, "agent"),
        (LLAMA_INDEX, "BaseWorkflowAgent.run_agent_step", {}, None),
        (LLAMA_INDEX, "OpenAI._prepare_chat_with_tools", {}, None),
        (LLAMA_INDEX, "OpenAI.achat", {}, "generation"),
        (LLAMA_INDEX, "Ollama.stream_complete", {}, "generation"),
        (LLAMA_INDEX, "OpenAI.astream_chat_with_tools", {}, "generation"),
        (LLAMA_INDEX, "OpenAI.stream", {}, "generation"),
        (LLAMA_INDEX, "ContextChatEngine.stream_chat", {}, None),
        (LLAMA_INDEX, "RetrieverQueryEngine._query", {}, None),
        (LLAMA_INDEX, "CompactAndRefine.get_response", {}, None),
        (LLAMA_INDEX, "VectorIndexRetriever._aretrieve", {}, "retrieval"),
        (LLAMA_INDEX, "OpenAIEmbedding.get_query_embedding", {}, "embedding"),
        (LLAMA_INDEX, "OpenAIEmbedding._aget_text_embeddings", {}, "embedding"),
        (LLAMA_INDEX, "FunctionTool.acall", {}, "tool"),
        ("ai", "ai.streamText", {}, None),
        ("ai", "ai.streamText.doStream", {OPERATION: "chat"}, "generation"),
        ("litellm", "raw_gen_ai_request", {}, "generation"),
        (f"{JS_FAMILY}-langchain", "a", {OPENINFERENCE: "CHAIN", "metadata": CREATED}, "agent"),
        (f"{JS_FAMILY}-langchain", "model", {OPENINFERENCE: "CHAIN", "metadata": NODE}, None),
        (f"{JS_FAMILY}-openai-agents", "trace", {OPENINFERENCE: "AGENT"}, None),
        ("genkit-tracer", "x/tiny", {GENKIT: "model"}, "generation"),
        ("genkit-tracer", "x/emb", {GENKIT: "embedder"}, "embedding"),
        ("genkit-tracer", "docs", {GENKIT: "retriever"}, "retrieval"),
        ("genkit-tracer", "order", {GENKIT: "reranker"}, "rerank"),
        ("genkit-tracer", "search", {GENKIT: "tool"}, "tool"),
        ("genkit-tracer", "embed docs", {GENKIT: "indexer"}, None),
        ("genkit-tracer", "ask", {GENKIT: "flow"}, None),
        ("genkit-tracer", "generate", {"genkit:type": "util"}, None),
    ],
)
def test_the_entry_of_a_writer(scope, name, attributes, stage):
    """Each entry says which key or name is to be trusted, and which lies."""
    assert read(span(scope, name, attributes)) == (stage, False)


@pytest.mark.parametrize(
    ("attributes", "kind", "stage"),
    [
        ({"http.request.method": "POST", "url.full": "http://h/v1/rerank"}, "client", "rerank"),
        ({"http.method": "POST", "http.url": "http://h/v1/chat/completions?x=1"}, "client", "generation"),
        ({"http.method": "POST", "http.url": "http://h/v1/embeddings/"}, "client", "embedding"),
        ({"http.request.method": "GET", "url.full": "http://h/v1/models"}, "client", None),
        ({"http.request.method": "POST", "url.full": "http://h/v1/rerank"}, "server", None),
        ({"db.system": "chroma"}, "client", "retrieval"),
        ({"db.system": "postgresql"}, "client", None),
        ({"messaging.system": "kafka"}, "consumer", None),
    ],
)
def test_a_transport_has_no_stage_but_its_address_may_tell_one(attributes, kind, stage):
    """A client's request to a model server's address is a guess at what was asked for."""
    found = read(span("opentelemetry.instrumentation.httpx", "query", attributes, kind))

    assert found == (stage, stage is not None)


@pytest.mark.parametrize(
    ("said", "stage"),
    [
        pytest.param({"db.vector.query.top_k": 2, "db.operation.name": "GET"}, "retrieval", id="how-many"),
        pytest.param({"db.operation.name": "query"}, "retrieval", id="its-operation"),
        pytest.param({"db.operation.name": "INSERT"}, None, id="another-operation"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_a_vector_store_was_searched_if_its_operation_says_so_or_how_many_were_wanted(said, stage):
    """OpenLIT names a search of Chroma's `GET docs`."""
    attributes = {OPERATION: "vectordb", "db.system.name": "chroma"} | said
    found = read(span("openlit.instrumentation.chroma", "GET docs", attributes, "client"))

    assert found == (stage, stage is not None)


@pytest.mark.parametrize("kind", ["server", "producer", "consumer"])
def test_the_name_of_an_entry_point_tells_nothing(kind):
    """A route or a queue is named after what it is for, and is not that."""
    assert read(span("app", "retrieve", kind=kind)) == (None, False)


def test_where_the_name_is_a_template_the_users_own_is_asked():
    """Logfire's name of the Agents SDK's custom spans is the same for all."""
    named = span("logfire.openai_agents", "Custom span: {name}", {"name": "vector search"})

    assert read(named) == ("retrieval", True)


@pytest.mark.parametrize(
    ("attributes", "name", "stage"),
    [
        ({"crewai.crew.id": "1", OPERATION: "invoke_agent"}, "crewai.workflow", None),
        ({LANGSMITH: "prompt", OPERATION: "chat"}, "ChatPromptTemplate", "context_assembly"),
        ({"logfire.span_type": "log", OPERATION: "chat"}, "streaming", None),
        ({"gcp.vertex.agent.event_id": "1", OPERATION: "execute_tool"}, "execute_tool (merged)", None),
        ({OPENINFERENCE: "CHAIN"}, "ToolInvoker.run", "tool"),
        ({OPENINFERENCE: "CHAIN", "metadata": CREATED}, "a", "agent"),
        ({OPENINFERENCE: "LLM"}, "X._prepare_chat_with_tools", None),
        ({OPENINFERENCE: "AGENT"}, "by hand", "agent"),
        ({"ai.operationId": "ai.streamText.doStream"}, "ai.streamText.doStream", "generation"),
        ({MLFLOW: '"CHAIN"', "metadata": CREATED}, "a", "agent"),
    ],
)
def test_in_a_file_without_scopes_an_attribute_tells_the_writer(attributes, name, stage):
    """Phoenix's exports and the console exporter leave the scope out."""
    assert read(span("", name, attributes)) == (stage, False)


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ("opentelemetry.instrumentation.langchain", {OPERATION: "invoke_agent"}),
        ("langfuse-sdk", {LANGFUSE: "chain", f"{METADATA}.ls_integration": '"langgraph"'}),
        ("mlflow.tracing.provider", {MLFLOW: '"CHAIN"', "metadata": '{"ls_integration": "langgraph"}'}),
        ("langsmith", {LANGSMITH: "chain", "langsmith.metadata.ls_integration": "langgraph"}),
    ],
)
def test_a_graph_may_be_an_agent(scope, said):
    """LangGraph's graphs are agents or not: what is around them has to agree, whoever wrote them."""
    assert read(span(scope, "invoke_agent g", said)) == ("agent", True)


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        (
            "langfuse-sdk",
            {
                LANGFUSE: "chain",
                f"{METADATA}.ls_integration": '"langgraph"',
                f"{METADATA}.langgraph_node": '"tools"',
            },
        ),
        (
            "mlflow.tracing.provider",
            {MLFLOW: '"CHAIN"', "metadata": '{"ls_integration": "langgraph", "langgraph_node": "tools"}'},
        ),
        (
            "langsmith",
            {
                LANGSMITH: "chain",
                "langsmith.metadata.ls_integration": "langgraph",
                "langsmith.metadata.langgraph_node": "tools",
            },
        ),
    ],
)
def test_a_node_of_a_graph_is_none(scope, said):
    """The metadata are those of the graph, and name the node."""
    assert read(span(scope, "tools", said)) == (None, False)


def test_a_longer_beginning_of_a_scope_wins():
    """The entry of one instrumentation comes before the one of its family."""
    said = {OPENINFERENCE: "CHAIN"}

    assert read(span("openinference.instrumentation.haystack", "ToolInvoker.run", said)).stage == "tool"
    assert read(span("openinference.instrumentation.other", "ToolInvoker.run", said)).stage is None


@pytest.mark.parametrize("value", [None, 3, 1.5, True, b"chat", ("chat",), {"a": 1}, "", "no such kind"])
def test_a_kind_of_any_type_is_read_or_ignored(value):
    """A trace file may hold anything under any key."""
    for key in (OPERATION, OPENINFERENCE, "mlflow.spanType", "hotspan.stage", "db.system", "url.full"):
        assert read(span("app", "x", {key: value})).stage in {None, "no such kind"}
