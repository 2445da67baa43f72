"""Entries of the table whose meaning shows in a tree alone: small traces as their writers leave them."""

from hotspan.analysis import analyse
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

OPERATION = "gen_ai.operation.name"
KIND = "openinference.span.kind"
TRACELOOP = "traceloop.span.kind"
CHAT, TOOL = {OPERATION: "chat"}, {OPERATION: "execute_tool"}
AGENT = {OPERATION: "invoke_agent"}
LLM = {KIND: "LLM", "llm.token_count.completion": 8}
GRAPH = {KIND: "CHAIN", "metadata": '{"ls_integration": "langgraph"}'}


def node(name, kind="CHAIN"):
    """Return what OpenInference says of a graph's node."""
    return {KIND: kind, "metadata": f'{{"ls_integration": "langgraph", "langgraph_node": "{name}"}}'}


def counted(scope, *spans, status=None, **attributes):
    """Return the calls of each stage in a trace of one writer, and its errors."""
    trace = build_trace(*spans, attributes=attributes)
    written = [
        span._replace(scope=Scope(scope), status=(status or {}).get(span.name, "ok")) for span in trace.spans
    ]
    report = analyse([Trace("1", written)])
    return {row.stage: (row.n_calls, row.n_errors) for row in report.stages}


def test_a_node_named_agent_is_a_turn_of_the_graphs_loop():
    """OpenInference says AGENT of every name with *agent* in it: the run is the graph around it."""
    found = counted(
        "openinference.instrumentation.langchain",
        ("helpdesk", 0, 100),
        ("agent", 0, 30, "helpdesk"),
        ("m1", 0, 30, "agent"),
        ("tools", 30, 50, "helpdesk"),
        ("search", 30, 50, "tools"),
        ("agent 2", 50, 100, "helpdesk"),
        ("m2", 50, 100, "agent 2"),
        helpdesk=GRAPH,
        agent=node("agent", "AGENT"),
        tools=node("tools"),
        search={KIND: "TOOL"},
        m1=LLM,
        m2=LLM,
        **{"agent 2": node("agent", "AGENT")},
    )

    assert found == {"agent": (1, 0), "generation": (2, 0), "tool": (1, 0)}


def test_a_graph_that_asks_the_model_once_is_no_agent():
    """Retrieve, then generate: a pipeline."""
    found = counted(
        "openinference.instrumentation.langchain",
        ("LangGraph", 0, 100),
        ("retrieve", 0, 30, "LangGraph"),
        ("generate", 30, 100, "LangGraph"),
        ("m", 30, 100, "generate"),
        LangGraph=GRAPH,
        retrieve=node("retrieve"),
        generate=node("generate"),
        m=LLM,
    )

    assert found == {"request": (1, 0), "retrieval": (1, 0), "generation": (1, 0)}


def test_openlits_agents_are_nodes_of_a_graph():
    """Each is an `invoke_agent`; the graph around them, an `invoke_workflow`, is the run."""
    model, name = {OPERATION: "invoke_agent", "gen_ai.agent.name": "model"}, "invoke_agent model"
    found = counted(
        "openlit.instrumentation.langgraph",
        ("invoke_workflow LangGraph", 0, 100),
        (name, 0, 30, "invoke_workflow LangGraph"),
        ("m1", 0, 30, name),
        ("execute_tool search", 30, 50, "invoke_workflow LangGraph"),
        ("invoke_agent retrieve", 50, 60, "invoke_workflow LangGraph"),
        ("m2", 60, 100, "invoke_workflow LangGraph"),
        m1=CHAT,
        m2=CHAT,
        **{
            "invoke_workflow LangGraph": {OPERATION: "invoke_workflow"},
            name: model,
            "execute_tool search": TOOL,
            "invoke_agent retrieve": model | {"gen_ai.agent.name": "retrieve"},
        },
    )

    assert found == {"agent": (1, 0), "generation": (2, 0), "tool": (1, 0), "retrieval": (1, 0)}


def test_openllmetrys_llamaindex_calls_everything_a_task():
    """What tells is the operation of a model call, and the class of all else."""
    task = {TRACELOOP: "task"}
    found = counted(
        "opentelemetry.instrumentation.llamaindex",
        ("FunctionAgent.workflow", 0, 100),
        ("BaseWorkflowAgent.task", 0, 40, "FunctionAgent.workflow"),
        ("OpenAILike.task", 0, 40, "BaseWorkflowAgent.task"),
        ("m1", 0, 39, "OpenAILike.task"),
        ("call_tool", 40, 60, "FunctionAgent.workflow"),
        ("FunctionTool.task", 40, 60, "call_tool"),
        ("m2", 60, 100, "FunctionAgent.workflow"),
        **dict.fromkeys(
            ("BaseWorkflowAgent.task", "OpenAILike.task", "call_tool", "FunctionTool.task"), task
        ),
        **{"FunctionAgent.workflow": {TRACELOOP: "workflow"}, "m1": task | CHAT, "m2": task | CHAT},
    )

    assert found == {"agent": (1, 0), "generation": (2, 0), "tool": (1, 0)}


def test_agnos_run_failed_with_its_last_model_call():
    """Agno hands the failure to its caller as an event of the stream: the run's span is OK."""
    found = counted(
        "openinference.instrumentation.agno",
        ("helper.run", 0, 100),
        ("OpenAILike.invoke_stream", 0, 90, "helper.run"),
        status={"OpenAILike.invoke_stream": "error"},
        **{"helper.run": {KIND: "AGENT", "agent.name": "helper"}, "OpenAILike.invoke_stream": {KIND: "LLM"}},
    )

    assert found == {"agent": (1, 1), "generation": (1, 1)}


def test_a_graph_that_is_a_node_of_another_is_an_agent_of_its_own():
    """What it holds lies in longer places than its own; the node around it is no second run."""
    place = '"langgraph_node": "researcher", "langgraph_checkpoint_ns": "researcher:1"'
    inner = {KIND: "CHAIN", "metadata": f'{{{place}, "checkpoint_ns": "researcher:1"}}'}
    model = '"langgraph_node": "model", "langgraph_checkpoint_ns": "researcher:1|model:2"'
    turn = {KIND: "CHAIN", "metadata": f'{{{model}, "checkpoint_ns": "researcher:1"}}'}
    found = counted(
        "openinference.instrumentation.langchain",
        ("LangGraph", 0, 100),
        ("m1", 0, 30, "LangGraph"),
        ("researcher node", 30, 90, "LangGraph"),
        ("researcher", 30, 90, "researcher node"),
        ("model", 30, 60, "researcher"),
        ("m2", 30, 60, "model"),
        ("m3", 60, 90, "researcher"),
        LangGraph=GRAPH,
        researcher=inner,
        model=turn,
        **dict.fromkeys(("m1", "m2", "m3"), LLM),
        **{"researcher node": {KIND: "CHAIN", "metadata": f"{{{place}}}"}},
    )

    assert found == {"agent": (2, 0), "generation": (3, 0)}


def test_openlit_calls_every_chain_with_agent_in_its_name_one():
    """A turn that asks the model once is none."""
    found = counted(
        "openlit.instrumentation.langchain",
        ("invoke_agent agent", 0, 100),
        ("m", 0, 100, "invoke_agent agent"),
        m=CHAT,
        **{"invoke_agent agent": {OPERATION: "invoke_agent"}},
    )

    assert found == {"request": (1, 0), "generation": (1, 0)}


def test_openlit_calls_the_agents_sdks_task_and_turns_agents_without_a_name():
    """One run, whatever lies around and inside it."""
    run = {OPERATION: "invoke_agent"}
    found = counted(
        "openlit.instrumentation.openai_agents",
        ("task", 0, 100),
        ("invoke_agent helper", 0, 100, "task"),
        ("turn 1", 0, 50, "invoke_agent helper"),
        ("m1", 0, 50, "turn 1"),
        ("turn 2", 50, 100, "invoke_agent helper"),
        ("m2", 50, 100, "turn 2"),
        m1=CHAT,
        m2=CHAT,
        **{"task": run, "turn 1": run, "turn 2": run},
        **{"invoke_agent helper": run | {"gen_ai.agent.name": "helper"}},
    )

    assert found == {"request": (1, 0), "agent": (1, 0), "generation": (2, 0)}


def test_openlits_query_of_llamaindex_is_no_retrieval_and_its_synthesis_no_model_call():
    """The model call is written by its client, in a trace of its own where it streams."""
    found = counted(
        "openlit.instrumentation.llamaindex",
        ("retrieval query_engine_query", 0, 30),
        ("retrieval retriever_retrieve", 0, 20, "retrieval query_engine_query"),
        ("chat response_synthesize", 20, 30, "retrieval query_engine_query"),
        **{
            "retrieval query_engine_query": {OPERATION: "retrieval"},
            "retrieval retriever_retrieve": {OPERATION: "retrieval"},
            "chat response_synthesize": CHAT,
        },
    )

    assert found == {"request": (1, 0), "retrieval": (1, 0)}


def test_the_vercel_sdk_calls_every_generation_an_agents_run():
    """One that asks the model once is none; with a tool, or a second call, it is."""
    found = counted(
        "gen_ai",
        ("request", 0, 100),
        ("ask", 0, 30, "request"),
        ("m1", 0, 30, "ask"),
        ("help", 30, 100, "request"),
        ("m2", 30, 50, "help"),
        ("tool", 50, 60, "help"),
        ("m3", 60, 100, "help"),
        ask=AGENT,
        help=AGENT,
        m1=CHAT,
        m2=CHAT,
        m3=CHAT,
        tool=TOOL,
    )

    assert found == {"request": (1, 0), "agent": (1, 0), "generation": (3, 0), "tool": (1, 0)}
