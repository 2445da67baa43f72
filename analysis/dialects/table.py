"""The dialects: one entry for each writer whose spans need more than the general rules.

A writer that follows its vendor's kinds, or OpenTelemetry's conventions, has no entry.  An entry says which
key, name or value to trust, and which lies; docs/dialects.md tells the same in words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects import kinds
from hotspan.analysis.dialects.langchain import (
    IN_GRAPH,
    MADE_BY_CREATE_AGENT,
    agents_by_keys,
    agents_by_metadata,
)
from hotspan.analysis.dialects.rules import NOTHING, VAGUE, Dialect, Rule
from hotspan.tracer import semconv
from hotspan.tracer.semconv import (
    AGENT,
    CONTEXT_ASSEMBLY,
    EMBEDDING,
    GENERATION,
    RERANK,
    RETRIEVAL,
    STEP,
    TOOL,
)

if TYPE_CHECKING:
    from hotspan.tracer.record import SpanRecord

_CHAIN: Final = (semconv.OPENINFERENCE_KIND, re.compile("^CHAIN$"))
_AGENT: Final = (semconv.OPENINFERENCE_KIND, re.compile("^AGENT$"))
# `FunctionAgent.run`, `Agent.run`: the run of an agent, not one of its steps or helpers.
_RUN_OF_AGENT: Final = re.compile(
    r"^\w*Agent(?:Workflow|Executor|Runner)?\.a?(?:run|chat|invoke|stream|forward|stream_chat|__call__)$"
)
_ANY: Final = re.compile("")
_LLM: Final = ((semconv.OPENINFERENCE_KIND, re.compile("^LLM$")), (semconv.OPENINFERENCE_MODEL, _ANY))
_AGENT_IF_IT_LOOPS: Final = Rule(
    AGENT, having=((semconv.OPERATION, re.compile("^invoke_agent$")),), is_guess=True
)
_OPENINFERENCE: Final = Dialect(
    "OpenInference",
    scopes=(semconv.OPENINFERENCE_SCOPE,),
    rules=(Rule(AGENT, _RUN_OF_AGENT, having=(_CHAIN,)),),
    kinds=(kinds.OPENINFERENCE,),
    answers_always=True,
)

DIALECTS: Final[tuple[Dialect, ...]] = (
    Dialect("Hotspan", scopes=(semconv.SCOPE_NAME,), rules=(Rule(NOTHING),)),
    _OPENINFERENCE,
    _OPENINFERENCE._replace(
        name="OpenInference: LangChain",
        scopes=(f"{semconv.OPENINFERENCE_SCOPE}.langchain",),
        rules=(
            *agents_by_metadata(_CHAIN),
            # AGENT is said of every name with "agent" in it: of a graph's node that asks the model once, too.
            Rule(AGENT, having=(_AGENT, IN_GRAPH), is_guess=True),
        ),
    ),
    _OPENINFERENCE._replace(
        name="OpenInference: Agno",
        scopes=(f"{semconv.OPENINFERENCE_SCOPE}.agno",),
        hides_errors=True,
    ),
    _OPENINFERENCE._replace(
        name="OpenInference: LlamaIndex",
        scopes=(f"{semconv.OPENINFERENCE_SCOPE}.llama_index",),
        signs=(Rule(GENERATION, re.compile(r"^\w+\._?a?(?:stream_)?(?:chat|complete)$"), having=_LLM),),
        rules=(Rule(NOTHING, re.compile(r"\._?prepare_")), *_OPENINFERENCE.rules),
        hides_errors=True,
    ),
    _OPENINFERENCE._replace(
        name="OpenInference: OpenAI Agents",
        scopes=(f"{semconv.OPENINFERENCE_SCOPE}.openai_agents",),
        signs=(
            Rule(GENERATION, re.compile(r"^(?:generation|response)$"), having=_LLM),
            Rule(AGENT, having=((semconv.OPENINFERENCE_NODE, _ANY),)),
        ),
        rules=(
            # The SDK's trace is written as an agent too, without an agent's name.
            Rule(
                VAGUE,
                having=((semconv.OPENINFERENCE_KIND, re.compile("^AGENT$")),),
                lacking=(semconv.OPENINFERENCE_AGENT, semconv.OPENINFERENCE_NODE),
            ),
        ),
        hides_errors=True,
    ),
    _OPENINFERENCE._replace(
        name="OpenInference: DSPy",
        scopes=(f"{semconv.OPENINFERENCE_SCOPE}.dspy",),
        rules=(
            Rule(AGENT, re.compile(r"^(?:ReAct|CodeAct|\w*Agent)\.a?forward$")),
            Rule(NOTHING, re.compile(r"^finish\.")),  # how ReAct ends its loop, no tool of the user's
        ),
    ),
    _OPENINFERENCE._replace(
        name="OpenInference: Haystack",
        scopes=(f"{semconv.OPENINFERENCE_SCOPE}.haystack",),
        rules=(Rule(TOOL, re.compile(r"^ToolInvoker\.")), *_OPENINFERENCE.rules),
    ),
    _OPENINFERENCE._replace(
        name="OpenInference: smolagents",
        scopes=(f"{semconv.OPENINFERENCE_SCOPE}.smolagents",),
        rules=(
            Rule(NOTHING, having=((semconv.OPENINFERENCE_TOOL, re.compile("^final_answer$")),)),
            Rule(RETRIEVAL, re.compile(r"^\w*Retriever(?:Tool)?$")),
            *_OPENINFERENCE.rules,
        ),
    ),
    Dialect(
        "LlamaIndex",
        scopes=("llamaindex.opentelemetry",),  # no kinds at all: the class, and what it was asked to do
        returns_stream=re.compile(r"\._?a?stream(?:_\w+)?$"),
        rules=(
            Rule(NOTHING, re.compile(r"\._?prepare_|^\w*QueryEngine\.")),
            Rule(AGENT, _RUN_OF_AGENT),
            Rule(NOTHING, re.compile(r"^\w*(?:Agent|Workflow|Engine|Runner|Worker|Synthesizer|Refine)\.")),
            Rule(TOOL, re.compile(r"^\w*Tool\.a?call$")),
            Rule(RETRIEVAL, re.compile(r"\._?a?retrieve$")),
            Rule(EMBEDDING, re.compile(r"\._?a?get_(?:\w+_)?embeddings?(?:_batch)?$")),
            Rule(
                GENERATION,
                re.compile(
                    r"\._?a?(?:(?:structured_)?predict|stream|(?:stream_)?(?:chat|complete)(?:_with_tools)?)$"
                ),
            ),
        ),
    ),
    Dialect(
        "Strands",
        scopes=("strands.telemetry",),
        # OpenInference's processor writes CHAIN beside it.
        rules=(Rule(STEP, re.compile(r"^execute_event_loop_cycle\b")),),
    ),
    Dialect(
        "Google ADK",
        markers=(semconv.ADK_EVENT,),
        scopes=("gcp.vertex.agent", "google_adk", f"{semconv.OPENINFERENCE_SCOPE}.google_adk"),
        rules=(
            Rule(NOTHING, re.compile(r"^execute_tool \(merged")),
            Rule(TOOL, re.compile(r"^execute_tool\b")),
            Rule(AGENT, re.compile(r"^(?:invoke_agent|agent_run)\b")),  # OpenInference's kind for it is LLM
            Rule(GENERATION, re.compile(r"^(?:call_llm|generate_content)\b")),
            Rule(VAGUE, re.compile(r"^(?:invocation|invoke_workflow)\b")),
        ),
    ),
    Dialect(
        "OpenLLMetry: LangChain",
        scopes=("opentelemetry.instrumentation.langchain",),
        rules=(
            Rule(
                AGENT,
                re.compile(r"\.workflow$"),
                having=((semconv.TRACELOOP_INTEGRATION, MADE_BY_CREATE_AGENT),),
            ),
            Rule(AGENT, re.compile(r"^invoke_agent\b"), is_guess=True),  # every graph, a RAG one too
            # Every outermost chain says `invoke_agent`, a plain RAG chain too.
            Rule(VAGUE, having=((semconv.OPERATION, re.compile("^invoke_agent$")),)),
        ),
        kinds=(kinds.LLM_REQUEST, kinds.OPERATION, kinds.TRACELOOP),
        has_empty_runs=True,
    ),
    Dialect(
        "OpenLLMetry: LlamaIndex",
        scopes=("opentelemetry.instrumentation.llamaindex",),
        rules=(
            # The run, not the steps of its workflow, which bear the name of the base class.
            Rule(AGENT, re.compile(r"^(?!BaseWorkflow)\w*Agent(?:Workflow|Runner)?\.(?:workflow|task)$")),
            Rule(TOOL, re.compile(r"^\w*Tool\.(?:workflow|task)$")),
        ),
        kinds=(kinds.OPERATION, kinds.TRACELOOP),  # `task` on everything, model calls too
    ),
    Dialect(
        "OpenLLMetry: CrewAI",
        scopes=("opentelemetry.instrumentation.crewai",),
        kinds=(kinds.LLM_REQUEST, kinds.TRACELOOP),  # crew, task and agent all say `invoke_agent`
        markers=semconv.CREWAI_IDS,
        has_telling_names=False,  # a task's name is its whole text
    ),
    Dialect(
        "LangSmith",
        scopes=("langsmith",),
        markers=(semconv.LANGSMITH_KIND,),
        rules=agents_by_keys(
            (semconv.LANGSMITH_KIND, re.compile("^chain$")),
            semconv.LANGSMITH_INTEGRATION,
            semconv.LANGSMITH_NODE,
        ),
        has_failed_with_event=True,
        kinds=(kinds.LANGSMITH,),  # its operation is `chat` on prompts and `embeddings` on retrievers
    ),
    Dialect(
        "Langfuse",
        scopes=("langfuse-sdk",),
        markers=(semconv.LANGFUSE_TYPE,),
        rules=agents_by_keys(
            (semconv.LANGFUSE_TYPE, re.compile("^chain$")),
            semconv.LANGFUSE_INTEGRATION,
            semconv.LANGFUSE_NODE,
        ),
    ),
    Dialect(
        "MLflow",
        scopes=("mlflow",),
        markers=(semconv.MLFLOW_TYPE,),
        rules=agents_by_metadata((semconv.MLFLOW_TYPE, re.compile('^"?CHAIN"?$'))),
    ),
    Dialect(
        "NeMo Agent Toolkit",
        scopes=("nat", "aiq"),
        markers=(semconv.NAT_KIND,),
        rules=(
            Rule(
                AGENT,
                having=(
                    (semconv.NAT_KIND, re.compile("^WORKFLOW$")),
                    (semconv.NAT_SUBSPAN, re.compile(r"agent(?!\w)|^(?:react|rewoo|reasoning|router)\b")),
                ),
            ),
            Rule(
                NOTHING,
                re.compile(r"^(?:agent|tool|LangGraph)$"),
                having=((semconv.NAT_KIND, re.compile("^FUNCTION$")),),
            ),
        ),
        kinds=(kinds.NAT, kinds.OPENINFERENCE),
        has_loose_steps=True,
    ),
    Dialect(
        "Haystack",
        prefix="haystack.",
        rules=(
            Rule(AGENT, re.compile(r"^haystack\.agent\.run$")),
            Rule(STEP, re.compile(r"^haystack\.agent\.step$")),
            Rule(GENERATION, re.compile(r"^haystack\.agent\.step\.llm$")),
            Rule(TOOL, re.compile(r"^haystack\.agent\.step\.tool$|^haystack\.tool\b")),
            *(
                Rule(stage, having=((semconv.HAYSTACK_COMPONENT, re.compile(pattern)),))
                for pattern, stage in (
                    (r"Embedder$", EMBEDDING),
                    (r"Ranker$", RERANK),
                    (r"Retriever$", RETRIEVAL),
                    (r"Generator$", GENERATION),
                    (r"PromptBuilder$", CONTEXT_ASSEMBLY),
                    (r"^ToolInvoker$", TOOL),
                )
            ),
            Rule(NOTHING),
        ),
    ),
    Dialect(
        "Logfire: OpenAI Agents",
        scopes=("logfire.openai_agents",),
        rules=(
            Rule(AGENT, re.compile(r"^Agent run\b")),
            Rule(GENERATION, re.compile(r"^(?:Chat completion|Responses API) with\b")),
            Rule(TOOL, re.compile(r"^Function: ")),
            Rule(STEP, re.compile(r"^Turn\b")),
            Rule(VAGUE, re.compile(r"^Custom span: ")),
            Rule(NOTHING),
        ),
        name_key=semconv.LOGFIRE_NAME,
        hides_errors=True,
    ),
    # Its span of a call that failed has neither a status nor an error.
    Dialect("OpenLLMetry: Cohere", scopes=("opentelemetry.instrumentation.cohere",), fails_silently=True),
    Dialect(
        "OpenLLMetry: OpenAI Agents",
        scopes=("opentelemetry.instrumentation.openai_agents",),
        hides_errors=True,
    ),
    Dialect(
        "Logfire",
        scopes=("logfire",),
        markers=(semconv.LOGFIRE_TYPE,),
        rules=(Rule(NOTHING, having=((semconv.LOGFIRE_TYPE, re.compile("^(?:log|pending_span)$")),)),),
    ),
    Dialect("Pydantic AI", scopes=("pydantic-ai",), markers=(semconv.PYDANTIC_AI_CALL,), fails_silently=True),
    Dialect("OpenLIT", scopes=("openlit",), stamps_first_chunk=True),
    Dialect(
        "OpenLIT: LangChain",
        scopes=("openlit.instrumentation.langchain",),
        rules=(_AGENT_IF_IT_LOOPS,),  # on every chain with "agent" in its name
        stamps_first_chunk=True,
    ),
    Dialect(
        "OpenLIT: LlamaIndex",
        scopes=("openlit.instrumentation.llamaindex",),
        # `retrieval` on a whole query, `chat` on what prepares the model call.
        rules=(Rule(NOTHING, re.compile(r"^(?:retrieval query_engine|chat response)_")),),
        stamps_first_chunk=True,
    ),
    Dialect(
        "OpenLIT: OpenAI Agents",
        scopes=("openlit.instrumentation.openai_agents",),
        # The SDK's task and turns, too.
        rules=(
            Rule(
                NOTHING,
                having=((semconv.OPERATION, re.compile("^invoke_agent$")),),
                lacking=(semconv.AGENT_NAME,),
            ),
        ),
        stamps_first_chunk=True,
    ),
    Dialect(
        "OpenLIT: LangGraph",
        scopes=("openlit.instrumentation.langgraph",),
        rules=(
            Rule(AGENT, having=((semconv.OPERATION, re.compile("^invoke_workflow$")),), is_guess=True),
            # Every node of a graph, one that retrieves or asks the model once, too.
            Rule(VAGUE, having=((semconv.OPERATION, re.compile("^invoke_agent$")),)),
        ),
        name_key=semconv.AGENT_NAME,
    ),
    Dialect(
        "Vercel AI SDK",
        scopes=("ai",),
        markers=(semconv.VERCEL_OPERATION,),
        rules=(
            Rule(GENERATION, re.compile(r"^ai\.\w+\.do(?:Generate|Stream)$")),
            Rule(TOOL, re.compile(r"^ai\.toolCall$")),
            Rule(EMBEDDING, re.compile(r"^ai\.embed(?:Many)?(?:\.doEmbed)?$")),
            Rule(RERANK, re.compile(r"^ai\.rerank(?:\.doRerank)?$")),
            Rule(VAGUE, re.compile(r"^ai\.")),  # ai.streamText: the loop around the steps
        ),
    ),
    # Its `invoke_agent` is every generateText and streamText.
    Dialect("Vercel AI SDK 7", scopes=("gen_ai",), rules=(_AGENT_IF_IT_LOOPS,)),
    Dialect(
        "LiteLLM",
        scopes=(semconv.LITELLM_SCOPE,),
        rules=(
            Rule(GENERATION, re.compile(r"^raw_gen_ai_request$"), lacking=(semconv.LLM_REQUEST_TYPE,)),
            Rule(
                NOTHING,
                re.compile(r"^(?:Received Proxy Server Request|auth|router|redis|postgres|proxy_pre_call)"),
            ),
        ),
        kinds=(kinds.LLM_REQUEST, kinds.OPERATION),
    ),
)
_PREFIXED: Final = tuple(dialect for dialect in DIALECTS if dialect.prefix)
_MARKED: Final = tuple((marker, dialect) for dialect in DIALECTS for marker in dialect.markers)
_WITHOUT_SCOPE: Final = _OPENINFERENCE._replace(
    name="OpenInference, in a file that holds no scopes: Phoenix's, the console's",
    rules=tuple(
        rule
        for dialect in DIALECTS
        if dialect.name.startswith(_OPENINFERENCE.name) and not dialect.name.endswith("OpenAI Agents")
        for rule in dialect.rules
    ),
    answers_always=False,
)


def dialect_of(span: SpanRecord) -> Dialect | None:
    """Return the entry of the span's writer; `None` where the general rules are enough."""
    for dialect in _PREFIXED:
        if span.name.startswith(dialect.prefix):
            return dialect
    return _of_scope(span.scope.name) if span.scope.name else _of_marker(span)


def _of_marker(span: SpanRecord) -> Dialect | None:
    attributes = span.attributes
    for marker, dialect in _MARKED:
        if marker in attributes:
            return dialect
    return _WITHOUT_SCOPE if semconv.OPENINFERENCE_KIND in attributes else None


@lru_cache(maxsize=1024)
def _of_scope(scope: str) -> Dialect | None:
    """Return the entry with the longest beginning of the scope's name.

    OpenInference's JavaScript libraries are named after their packages, and say the same as Python's.
    """
    if scope.startswith(semconv.OPENINFERENCE_SCOPE_JS):
        library = scope.removeprefix(semconv.OPENINFERENCE_SCOPE_JS)
        scope = semconv.OPENINFERENCE_SCOPE + library.replace("-", ".", 1).replace("-", "_")
    found = [
        (len(start), dialect)
        for dialect in DIALECTS
        for start in dialect.scopes
        if scope == start or scope.startswith((f"{start}.", f"{start}/", f"{start}-"))
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None
