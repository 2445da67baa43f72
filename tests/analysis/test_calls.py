"""What counts as a call, and whose time a span's time is."""

from __future__ import annotations

import pytest

from hotspan.analysis.calls import attempts_of, calls_of
from hotspan.analysis.classify import is_engine_span, outcome_of, stage_of
from hotspan.analysis.repair import repair
from hotspan.tracer.record import SpanRecord
from hotspan.tracer.testing import build_trace


def _span(name="span", status="unset", **attributes):
    keys = {key.replace("__", "."): value for key, value in attributes.items()}
    return SpanRecord("1", "1", None, name, 0, 1, keys, status=status)


@pytest.mark.parametrize(
    ("attributes", "stage"),
    [
        pytest.param({"hotspan__stage": "rerank"}, "rerank", id="own"),
        pytest.param({"hotspan__stage": "translate"}, "translate", id="the-users-own-stage"),
        pytest.param({"hotspan__stage": "step", "openinference__span__kind": "LLM"}, "step", id="own-first"),
        pytest.param({"openinference__span__kind": "RERANKER"}, "rerank", id="openinference"),
        pytest.param(
            {"openinference__span__kind": "CHAIN", "gen_ai__operation__name": "chat"}, None, id="kind-first"
        ),
        pytest.param({"gen_ai__operation__name": "embeddings"}, "embedding", id="gen-ai"),
        pytest.param({"gen_ai__operation__name": "create_agent"}, None, id="no-run-of-an-agent"),
        pytest.param({"http__request__method": "POST"}, None, id="transport"),
        pytest.param({"hotspan__stage": 3}, None, id="not-a-name"),
    ],
)
def test_the_first_rule_that_matches_names_the_stage(attributes, stage):
    """Hotspan's own attribute, then the vendor's kind, then the general operation name."""
    assert stage_of(_span(**attributes)) == stage


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        pytest.param(_span("llm_request"), True, id="vllm-by-name"),
        pytest.param(_span("request", gen_ai__latency__time_in_queue=0.1), True, id="by-its-latencies"),
        pytest.param(_span("llm_request", hotspan__stage="generation"), False, id="a-stage-is-a-stage"),
        pytest.param(_span("POST"), False, id="transport"),
    ],
)
def test_an_engine_span_is_told_by_what_it_says(span, expected):
    """The engine's own account of a call is not a call."""
    assert is_engine_span(span) is expected


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        pytest.param(_span(), "ok", id="unset-is-fine"),
        pytest.param(_span(status="error"), "error", id="error"),
        pytest.param(_span(hotspan__outcome="cancelled"), "cancelled", id="cancelled"),
        pytest.param(
            _span(status="error", hotspan__outcome="truncated"), "truncated", id="said-beats-status"
        ),
        pytest.param(_span(status="error", hotspan__outcome="new"), "error", id="unknown-word"),
    ],
)
def test_the_outcome_is_what_the_span_says_before_its_status(span, expected):
    """A cancelled or truncated call is neither a success nor a plain error."""
    assert outcome_of(span) == expected


def _calls(trace, stages):
    tree, _ = repair(trace)
    calls = calls_of(tree)
    names = [span.name for span in tree.spans]
    tops = {names[index] for index in range(len(names)) if calls.is_call(index)}
    attempts = {
        names[top]: [names[index] for index in inner] for top, inner in attempts_of(tree, calls).items()
    }
    assert stages <= set(names)
    return tops, attempts, {names[i]: names[o] for i, o in enumerate(calls.owners) if o >= 0}


def test_a_span_below_one_of_its_own_stage_is_the_same_call():
    """A framework's span around the client's span around two tries is one call of two attempts."""
    #  request  |------------------------------|
    #  chain      |--------------------------|      generation
    #  client      |--------|  |-------------|       generation, twice: 503, then the answer
    trace = build_trace(
        ("request", 0, 100),
        ("chain", 5, 95, "request"),
        ("try1", 10, 40, "chain"),
        ("try2", 50, 95, "chain"),
        stages={"request": "request", "chain": "generation", "try1": "generation", "try2": "generation"},
    )

    tops, attempts, _ = _calls(trace, {"try1"})

    assert tops == {"request", "chain"}
    assert attempts == {"chain": ["try1", "try2"]}


def test_a_generation_below_a_tool_below_a_generation_is_a_new_call():
    """A tool that asks a model is more than a detail of the call that chose it."""
    trace = build_trace(
        ("outer", 0, 100),
        ("tool", 10, 90, "outer"),
        ("inner", 20, 80, "tool"),
        stages={"outer": "generation", "tool": "tool", "inner": "generation"},
    )

    tops, attempts, _ = _calls(trace, {"inner"})

    assert tops == {"outer", "tool", "inner"}
    # The outer call wraps another one only through the tool: it is an attempt of its own.
    assert attempts == {"outer": ["outer"], "inner": ["inner"]}


@pytest.mark.parametrize(
    ("inner", "tops"),
    [
        pytest.param("run", {"run"}, id="the-same-agent-again"),
        pytest.param("researcher", {"run", "researcher"}, id="a-sub-agent"),
    ],
)
def test_an_agent_below_an_agent_is_a_call_if_it_is_another_one(inner, tops):
    """Nested spans of one agent's run are that run; a sub-agent is a call of its own."""
    records = build_trace(
        ("outer", 0, 100), ("inner", 10, 90, "outer"), stages={"outer": "agent", "inner": "agent"}
    )
    renamed = [span._replace(name="run" if span.name == "outer" else inner) for span in records.spans]

    found, _, _ = _calls(type(records)("1", renamed), set())

    assert found == tops


def test_a_span_without_a_stage_belongs_to_the_nearest_stage_above():
    """Transport and helper spans are time of the stage that they serve."""
    trace = build_trace(
        ("request", 0, 100),
        ("search", 10, 60, "request"),
        ("POST", 20, 50, "search"),
        ("tls", 20, 30, "POST"),
        ("glue", 70, 80, "request"),
        stages={"request": "request", "search": "retrieval"},
    )

    _, _, owners = _calls(trace, {"POST"})

    assert owners == {
        "request": "request",
        "search": "search",
        "POST": "search",
        "tls": "search",
        "glue": "request",
    }
