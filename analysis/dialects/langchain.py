"""LangChain's agents and LangGraph's graphs: chains to all who write their spans, told by metadata alone."""

from __future__ import annotations

import re
from typing import Final

from hotspan.analysis.dialects.rules import Rule
from hotspan.tracer import semconv
from hotspan.tracer.semconv import AGENT

Condition = tuple[str, re.Pattern[str]]  # an attribute, and what is found in its value

MADE_BY_CREATE_AGENT: Final = re.compile('^"?langchain_create_agent"?$')
IN_GRAPH: Final[Condition] = (semconv.OPENINFERENCE_METADATA, re.compile('"langgraph_node"'))
_IS_GRAPH: Final = re.compile('^"?langgraph"?$')
_METADATA_OF_CREATE_AGENT: Final[Condition] = (
    semconv.OPENINFERENCE_METADATA,
    re.compile(r'^(?!.*"langgraph_node").*"ls_integration": ?"langchain_create_agent"', re.DOTALL),
)
# A graph: outermost, or a node of another one, whose own nodes have longer places than it has.
_METADATA_OF_GRAPH: Final[Condition] = (
    semconv.OPENINFERENCE_METADATA,
    re.compile(
        r'^(?!.*"langgraph_node").*"ls_integration": ?"langgraph"'
        r'|"langgraph_checkpoint_ns": ?"([^"]+)".*"checkpoint_ns": ?"\1"',
        re.DOTALL,
    ),
)


def agents_by_metadata(chain: Condition) -> tuple[Rule, ...]:
    """Return the rules for a writer that keeps the metadata as one JSON text.

    What `create_agent` made is an agent, but for the nodes of its own graph; another graph may be one.
    """
    return (
        Rule(AGENT, having=(chain, _METADATA_OF_CREATE_AGENT)),
        Rule(AGENT, having=(chain, _METADATA_OF_GRAPH), is_guess=True),
    )


def agents_by_keys(chain: Condition, integration: str, node: str) -> tuple[Rule, ...]:
    """Return the same rules for a writer that keeps each part of the metadata under a key of its own."""
    return (
        Rule(AGENT, having=(chain, (integration, MADE_BY_CREATE_AGENT)), lacking=(node,)),
        Rule(AGENT, having=(chain, (integration, _IS_GRAPH)), lacking=(node,), is_guess=True),
    )
