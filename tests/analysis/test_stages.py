"""Stages where one span alone does not tell: guesses held against the tree around them."""

import pytest

from hotspan.analysis.calls import calls_of
from hotspan.analysis.repair import repair
from hotspan.tracer.record import Scope
from hotspan.tracer.testing import build_trace

OPERATION = "gen_ai.operation.name"
CHAT = {OPERATION: "chat"}
LLM = {"openinference.span.kind": "LLM"}


def stages(*spans, attributes=None, scope="app"):
    """Return the stage of each span that has one, by name; a root that says none is a request."""
    trace = build_trace(*spans, attributes=attributes)
    written = [span._replace(scope=Scope(scope), kind="client") for span in trace.spans]
    tree, _ = repair(type(trace)("1", written))
    calls = calls_of(tree)
    return {
        span.name: stage
        for span, stage, top in zip(tree.spans, calls.stages, range(len(written)), strict=True)
        if stage is not None and calls.is_call(top)
    }


def test_a_guess_yields_to_a_span_below_that_says_the_same():
    """`retrieve` around two retrievers is no third one, and not one for both."""
    found = stages(
        ("rag", 0, 100),
        ("retrieve", 0, 50, "rag"),
        ("a", 0, 20, "retrieve"),
        ("b", 20, 50, "retrieve"),
        attributes={"a": {OPERATION: "retrieval"}, "b": {OPERATION: "retrieval"}},
    )

    assert found == {"rag": "request", "a": "retrieval", "b": "retrieval"}


@pytest.mark.parametrize(
    ("inside", "stage"),
    [
        pytest.param("embeddings", "retrieval", id="embedding-is-part-of-it"),
        pytest.param("chat", "request", id="a-model-call-is-not"),
    ],
)
def test_a_root_is_what_its_name_says_unless_more_lies_below(inside, stage):
    """`search documents` may be the whole request of a service that answers from them."""
    found = stages(
        ("search documents", 0, 100), ("m", 0, 50, "search documents"), attributes={"m": {OPERATION: inside}}
    )

    assert found["search documents"] == stage


@pytest.mark.parametrize(
    ("inside", "stage"),
    [
        pytest.param(("chat",), "request", id="a-rag-graph"),
        pytest.param(("chat", "execute_tool"), "agent", id="with-a-tool"),
        pytest.param(("chat", "chat"), "agent", id="a-loop"),
    ],
)
def test_a_graph_that_is_written_as_an_agent(inside, stage):
    """OpenLLMetry writes `invoke_agent` around every graph of LangGraph's."""
    names = [f"{operation} {number}" for number, operation in enumerate(inside)]
    found = stages(
        ("invoke_agent LangGraph", 0, 100),
        *((name, 10 * at, 10 * at + 10, "invoke_agent LangGraph") for at, name in enumerate(names, start=1)),
        attributes={"invoke_agent LangGraph": {OPERATION: "invoke_agent"}}
        | {name: {OPERATION: operation} for name, operation in zip(names, inside, strict=True)},
        scope="opentelemetry.instrumentation.langchain",
    )

    assert found["invoke_agent LangGraph"] == stage


@pytest.mark.parametrize(
    ("below", "is_agent"),
    [
        pytest.param([("c1", 0, 20)], False, id="one-call"),
        pytest.param([("c1", 0, 20), ("c2", 30, 50)], True, id="a-loop"),
        pytest.param([("c1", 0, 20), ("tool search", 20, 30)], True, id="a-tool"),
        pytest.param([("x", 0, 20)], False, id="no-call"),
    ],
)
def test_what_is_named_an_agent_needs_a_loop_or_a_tool(below, is_agent):
    """A name alone makes no agent."""
    spans = [(*span, "assistant") for span in below]

    found = stages(("assistant", 0, 100), *spans, attributes={"c1": CHAT, "c2": CHAT})

    assert (found["assistant"] == "agent") is is_agent


def test_an_agent_by_name_around_or_below_one_that_says_so_is_the_same_run():
    """`agent run` around the framework's own agent, and `LangGraph` inside it, add none."""
    found = stages(
        ("agent run", 0, 100),
        ("writer", 0, 90, "agent run"),
        ("LangGraph", 0, 80, "writer"),
        ("c1", 0, 20, "LangGraph"),
        ("c2", 30, 50, "LangGraph"),
        attributes={"writer": {OPERATION: "invoke_agent"}, "c1": CHAT, "c2": CHAT},
    )

    assert [name for name, stage in found.items() if stage == "agent"] == ["writer"]


def test_what_a_named_agents_own_code_does_between_its_model_calls_is_a_tool():
    """An application that traces its model client alone: its tools have bare spans of any name.

    assistant  |----------------------------------------|
    chat         |------|            |------|  |-----|
    prepare     |                                         before the first call
    search               |-----|
    calculate                 |----|
    finish                                            |   behind the last one
    """
    found = stages(
        ("assistant", 0, 400),
        ("prepare", 0, 10, "assistant"),
        ("c1", 10, 90, "assistant"),
        ("search", 90, 150, "assistant"),
        ("calculate", 140, 190, "assistant"),
        ("c2", 200, 280, "assistant"),
        ("c3", 300, 380, "assistant"),
        ("finish", 390, 400, "assistant"),
        attributes={"c1": CHAT, "c2": CHAT, "c3": CHAT},
    )

    assert [name for name, stage in found.items() if stage == "tool"] == ["search", "calculate"]


@pytest.mark.parametrize("named", ["tool search", "c"])
def test_an_agent_whose_tools_say_so_gets_no_others(named):
    """Where one tool is known, what lies between the calls is something else."""
    found = stages(
        ("assistant", 0, 400),
        ("c1", 10, 90, "assistant"),
        (named, 90, 150, "assistant"),
        ("parse", 150, 190, "assistant"),
        ("c2", 200, 280, "assistant"),
        attributes={"c1": CHAT, "c2": CHAT, "c": {OPERATION: "execute_tool"}},
    )

    assert [name for name, stage in found.items() if stage == "tool"] == [named]


def test_a_step_needs_an_agent_above():
    """`Step 1` of a pipeline is not a turn of an agent's loop."""
    spans = ("Step 1", 0, 90, "run"), ("c1", 0, 20, "Step 1"), ("c2", 30, 50, "Step 1")
    said = {"c1": CHAT, "c2": CHAT}

    plain = stages(("run", 0, 100), *spans, attributes=said)
    agent = stages(("run", 0, 100), *spans, attributes=said | {"run": {OPERATION: "invoke_agent"}})

    assert "Step 1" not in plain
    assert agent["Step 1"] == "step"


def test_an_http_request_to_a_models_address_is_a_call_where_no_client_is_traced():
    """Below a traced client it is that client's request; alone it is all that is known."""
    address = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}

    alone = stages(("rag", 0, 100), ("POST", 0, 50, "rag"), attributes={"POST": address})
    below = stages(
        ("rag", 0, 100),
        ("chat", 0, 60, "rag"),
        ("POST", 0, 50, "chat"),
        attributes={"chat": CHAT, "POST": address},
    )

    assert alone == {"rag": "request", "POST": "generation"}
    assert below == {"rag": "request", "chat": "generation"}


def test_a_model_span_without_an_answer_is_a_call_only_of_a_writer_that_may_show_none():
    """OpenInference always records an answer; a span by hand may hold a name and no more."""
    spans = (("rag", 0, 100), ("call", 0, 50, "rag"))

    by_hand = stages(*spans, attributes={"call": LLM})
    bare = stages(*spans, attributes={"call": LLM}, scope="openinference.instrumentation.openai")
    answered = stages(
        *spans, attributes={"call": LLM | {"output.value": "…"}}, scope="openinference.instrumentation.openai"
    )

    assert [found.get("call") for found in (by_hand, bare, answered)] == ["generation", None, "generation"]


def test_wrappers_without_an_answer_are_one_call_with_the_span_inside():
    """LlamaIndex writes `stream > stream_chat > stream_chat`; the innermost one has the answer."""
    found = stages(
        ("rag", 0, 100),
        ("stream", 0, 50, "rag"),
        ("stream_chat", 0, 50, "stream"),
        ("inner", 0, 50, "stream_chat"),
        attributes={"stream": LLM, "stream_chat": LLM, "inner": LLM | {"llm.token_count.completion": 3}},
        scope="openinference.instrumentation.llama_index",
    )

    assert found == {"rag": "request", "stream": "generation"}


def test_an_agent_keeps_its_name_through_the_spans_that_a_framework_wraps_around_it():
    """`invoke_agent a` around `a.workflow` is one run when both say the agent's name."""
    agent = {OPERATION: "invoke_agent", "gen_ai.agent.name": "a"}
    other = {OPERATION: "invoke_agent", "gen_ai.agent.name": "b"}

    found = stages(
        ("invoke_agent a", 0, 100),
        ("a.workflow", 0, 90, "invoke_agent a"),
        ("invoke_agent b", 10, 50, "a.workflow"),
        attributes={"invoke_agent a": agent, "a.workflow": agent, "invoke_agent b": other},
    )

    assert list(found) == ["invoke_agent a", "invoke_agent b"]


@pytest.mark.parametrize(
    ("outer", "inner", "n_agents"),
    [
        ("invoke_agent writer", "writer.on_messages_stream", 1),
        ("agent_run [writer]", "invoke_agent writer", 1),
        ("invoke_agent writer", "reviewer.on_messages_stream", 2),
        ("Writer.agent", "Writer.agent", 1),
    ],
)
def test_two_writers_of_one_agents_run(outer, inner, n_agents):
    """The framework's own span and an instrumentation's differ in what is around the agent's name."""
    agent = {OPERATION: "invoke_agent"}
    trace = build_trace(("1", 0, 100), ("2", 0, 90, "1"), attributes={"1": agent, "2": agent})
    named = [span._replace(name=outer if span.name == "1" else inner) for span in trace.spans]
    tree, _ = repair(type(trace)("1", named))
    calls = calls_of(tree)

    assert sum(map(calls.is_call, range(2))) == n_agents


def test_a_client_librarys_lone_embedding_is_no_request_and_our_own_is():
    """An index that is built is no user's question; a stage of Hotspan's was named on purpose."""

    def is_request(attributes):
        tree, _ = repair(build_trace(("e", 0, 10), attributes={"e": attributes}))
        return calls_of(tree).is_request(tree.roots[0])

    assert not is_request({OPERATION: "embeddings"})
    assert is_request({OPERATION: "embeddings", "hotspan.stage": "embedding"})
    assert is_request(CHAT)


@pytest.mark.parametrize(("kind", "is_request"), [("internal", False), ("server", True)])
def test_a_tool_that_lost_its_parent_is_no_request(kind, is_request):
    """A pool of threads without the context makes a root of each tool; a server that runs tools was asked."""
    trace = build_trace(
        ("t", 0, 10),
        ("r", 0, 5, "t"),
        attributes={"t": {OPERATION: "execute_tool"}, "r": {OPERATION: "retrieval"}},
    )
    tree, _ = repair(type(trace)("1", [span._replace(kind=kind) for span in trace.spans]))

    assert calls_of(tree).is_request(tree.roots[0]) is is_request


@pytest.mark.parametrize(
    ("outside", "agents"),
    [
        pytest.param(["c3"], ["supervisor agent", "search agent"], id="an-agent-of-an-agent"),
        pytest.param([], ["supervisor agent"], id="the-whole-of-the-run-is-the-same-run"),
    ],
)
def test_a_named_agent_below_another_is_one_if_the_outer_one_asks_the_model_too(outside, agents):
    """`agent` > `agent loop` is one run with two names."""
    found = stages(
        ("supervisor agent", 0, 400),
        ("search agent", 0, 190, "supervisor agent"),
        ("c1", 0, 90, "search agent"),
        ("c2", 90, 180, "search agent"),
        *((name, 200, 280, "supervisor agent") for name in outside),
        attributes={"c1": CHAT, "c2": CHAT, "c3": CHAT},
    )

    assert [name for name, stage in found.items() if stage == "agent"] == agents
