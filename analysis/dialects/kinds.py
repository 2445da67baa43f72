"""What the values of the vendors' kinds, and of OpenTelemetry's operation, mean as stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.rules import NOTHING, VAGUE
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
    from hotspan.analysis.dialects.rules import Kinds

OPENINFERENCE: Final[Kinds] = (
    semconv.OPENINFERENCE_KIND,
    {
        "LLM": GENERATION,
        "EMBEDDING": EMBEDDING,
        "RETRIEVER": RETRIEVAL,
        "RERANKER": RERANK,
        "AGENT": AGENT,
        "TOOL": TOOL,
        "PROMPT": CONTEXT_ASSEMBLY,
        "CHAIN": VAGUE,
        "UNKNOWN": VAGUE,
        "GUARDRAIL": NOTHING,
        "EVALUATOR": NOTHING,
    },
)
TRACELOOP: Final[Kinds] = (
    semconv.TRACELOOP_KIND,
    {
        "llm": GENERATION,  # of programs that write their spans by hand
        "agent": AGENT,
        "tool": TOOL,
        "task": VAGUE,
        "workflow": VAGUE,
        "unknown": VAGUE,
    },
)
LANGFUSE: Final[Kinds] = (
    semconv.LANGFUSE_TYPE,
    {
        "generation": GENERATION,
        "embedding": EMBEDDING,
        "retriever": RETRIEVAL,
        "agent": AGENT,
        "tool": TOOL,
        "chain": VAGUE,
        "span": VAGUE,
        "event": NOTHING,
        "evaluator": NOTHING,
        "guardrail": NOTHING,
    },
)
LANGSMITH: Final[Kinds] = (
    semconv.LANGSMITH_KIND,
    {
        "llm": GENERATION,
        "embedding": EMBEDDING,
        "retriever": RETRIEVAL,
        "tool": TOOL,
        "prompt": CONTEXT_ASSEMBLY,
        "chain": VAGUE,
        "parser": NOTHING,
    },
)
_MLFLOW_TYPES: Final = {
    "LLM": GENERATION,
    "CHAT_MODEL": GENERATION,
    "EMBEDDING": EMBEDDING,
    "RETRIEVER": RETRIEVAL,
    "RERANKER": RERANK,
    "AGENT": AGENT,
    "TOOL": TOOL,
    "CHAIN": VAGUE,
    "PARSER": VAGUE,
    "TASK": VAGUE,
    "UNKNOWN": VAGUE,
    "WORKFLOW": VAGUE,
    "MEMORY": NOTHING,
    "GUARDRAIL": NOTHING,
    "EVALUATOR": NOTHING,
}
MLFLOW: Final[Kinds] = (semconv.MLFLOW_TYPE, _MLFLOW_TYPES)
NAT: Final[Kinds] = (
    semconv.NAT_KIND,
    {
        "LLM": GENERATION,
        "EMBEDDER": EMBEDDING,
        "RETRIEVER": RETRIEVAL,
        "RERANKER": RERANK,
        "AGENT": AGENT,
        "TOOL": TOOL,
        "FUNCTION": VAGUE,
        "SPAN": VAGUE,
        "TASK": VAGUE,
        "WORKFLOW": VAGUE,
        "CUSTOM": VAGUE,
        "UNKNOWN": VAGUE,
        "GUARDRAIL": NOTHING,
        "EVALUATOR": NOTHING,
    },
)
SPRING_AI: Final[Kinds] = (
    semconv.SPRING_AI_KIND,
    {"chat_client": VAGUE, "advisor": VAGUE, "vector_store": RETRIEVAL, "tool_call": TOOL},
)
AG2: Final[Kinds] = (
    semconv.AG2_TYPE,
    {"agent": AGENT, "llm": GENERATION, "tool": TOOL, "conversation": VAGUE, "multi_conversation": VAGUE},
)
GENKIT: Final[Kinds] = (
    semconv.GENKIT_SUBTYPE,
    {
        "model": GENERATION,
        "embedder": EMBEDDING,
        "retriever": RETRIEVAL,
        "reranker": RERANK,
        "tool": TOOL,
        "prompt": CONTEXT_ASSEMBLY,
        "flow": VAGUE,
        "indexer": NOTHING,
        "evaluator": NOTHING,
    },
)
LLM_REQUEST: Final[Kinds] = (  # OpenLLMetry before 0.50, LiteLLM
    semconv.LLM_REQUEST_TYPE,
    {
        "chat": GENERATION,
        "completion": GENERATION,
        "acompletion": GENERATION,
        "embedding": EMBEDDING,
        "aembedding": EMBEDDING,
        "rerank": RERANK,
        "arerank": RERANK,
        "unknown": VAGUE,
    },
)
OPERATION: Final[Kinds] = (
    semconv.OPERATION,
    {
        "chat": GENERATION,
        "text_completion": GENERATION,
        "generate_content": GENERATION,
        "completion": GENERATION,
        "acompletion": GENERATION,
        "chat.completions": GENERATION,
        "text.completions": GENERATION,
        "responses": GENERATION,
        "embeddings": EMBEDDING,
        "embedding": EMBEDDING,
        "aembedding": EMBEDDING,
        "retrieval": RETRIEVAL,
        "vector_db_retrieve": RETRIEVAL,
        "rerank": RERANK,
        "arerank": RERANK,
        "execute_tool": TOOL,
        "invoke_agent": AGENT,
        "execute_event_loop_cycle": STEP,
        "create_agent": NOTHING,
        "plan": NOTHING,
        "execute_task": VAGUE,
        "invoke_workflow": VAGUE,
        **_MLFLOW_TYPES,  # MLflow's convention mode writes its own types where it has no operation
    },
)

# Asked in this order of every span whose writer has no kinds of its own in the table.  The general convention
# comes after the vendors, because frameworks fill it with whatever comes nearest.
VENDORS: Final[tuple[Kinds, ...]] = (
    OPENINFERENCE,
    TRACELOOP,
    LANGFUSE,
    LANGSMITH,
    MLFLOW,
    NAT,
    AG2,
    SPRING_AI,
    GENKIT,
    LLM_REQUEST,
)
