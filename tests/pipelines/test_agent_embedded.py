"""The agent on the embedded engine: a model that knows nothing still takes valid steps."""

from __future__ import annotations

import pytest

from hotspan.pipelines.agent import Agent
from hotspan.pipelines.tools import corpus_tools
from hotspan.testing import capture

pytestmark = pytest.mark.rag


@pytest.fixture
def agent(embedded, retriever):
    """The reference agent over the default corpus."""
    with Agent(embedded, corpus_tools(retriever)) as agent:
        yield agent


def test_three_to_ten_model_calls(agent):
    """Whatever the model decides, a request takes 3 to 10 model calls and at least two steps, and ends."""
    for task in ("Count to three.", "What is a slice?"):
        with capture() as captured:
            assert agent.answer(task)
        names = [span.name for span in captured.spans]
        assert 3 <= names.count("chat tiny") <= 10
        assert 2 <= names.count("step") <= 6
        assert names.count("request agent") == names.count("invoke_agent researcher") == 1


def test_every_decision_calls_known_tools(agent):
    """The schema leaves a random model no choice but tools that exist."""
    with capture() as captured:
        agent.answer("Compare lists and tuples.")

    tools = {span.name for span in captured.spans if span.name.startswith("execute_tool")}
    assert tools
    assert tools <= {"execute_tool search_corpus", "execute_tool calculate", "execute_tool lookup_topic"}


@pytest.mark.parametrize(
    ("tool", "argument", "shows"),
    [
        pytest.param("search_corpus", "closing files", "[", id="search"),
        pytest.param("calculate", "6 * 7", "42", id="calculate"),
        pytest.param("lookup_topic", "lambda", "anonymous", id="lookup"),
    ],
)
def test_tools(retriever, tool, argument, shows):
    """Each tool does what it says."""
    tools = {tool.name: tool for tool in corpus_tools(retriever)}

    assert shows in tools[tool].run(argument)


def test_a_topic_that_is_not_there(retriever):
    """The nearest names are offered."""
    tools = {tool.name: tool for tool in corpus_tools(retriever)}

    with pytest.raises(ValueError, match="near: lambda"):
        tools["lookup_topic"].run("lamda")
