"""Every attribute key and stage name that Hotspan writes or reads, with one line of meaning each.

Written: OpenTelemetry GenAI semantic conventions v1.41 where they have a name, `hotspan.*` where they have
none.  What other instrumentations call the same thing is in the table of `analysis/classify.py`, under the
constants from here.
"""

from __future__ import annotations

from typing import Final

GENAI_CONVENTION_VERSION: Final = "1.41.0"
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"
SCOPE_NAME: Final = "hotspan"

# --- Stages -------------------------------------------------------------------------------------------
REQUEST: Final = "request"  # one user request: the root
AGENT: Final = "agent"  # one agent run
STEP: Final = "step"  # one turn of an agent's loop
EMBEDDING: Final = "embedding"  # text to vector
RETRIEVAL: Final = "retrieval"  # vector or query to passages
RERANK: Final = "rerank"  # passages to better ordered passages
CONTEXT_ASSEMBLY: Final = "context_assembly"  # passages to prompt, within a budget
GENERATION: Final = "generation"  # one model call
TOOL: Final = "tool"  # one tool call

STAGES: Final = (REQUEST, AGENT, STEP, EMBEDDING, RETRIEVAL, RERANK, CONTEXT_ASSEMBLY, GENERATION, TOOL)
ENVELOPES: Final = frozenset({REQUEST, AGENT, STEP})  # their own critical-path time is `unattributed`

# --- Hotspan: any stage -------------------------------------------------------------------------------
STAGE: Final = "hotspan.stage"  # the stage's name
# cancelled | abandoned | truncated | interrupted; absent: ok, or the status; others may write ok, error
OUTCOME: Final = "hotspan.outcome"
STREAM_ITEMS: Final = "hotspan.stream.items"  # items that a traced stream yielded
STREAM_BUSY_NS: Final = "hotspan.stream.busy_ns"  # time inside the producer
STREAM_HOLD_NS: Final = "hotspan.stream.hold_ns"  # time between a yielded item and the next pull
BATCH_SIZE: Final = "hotspan.batch_size"  # texts, pairs or queries of one call
CUT_SHORT: Final = "hotspan.cut_short"  # true: a model call's span ended before its first chunk; in no file
HIDDEN_CALLS: Final = "hotspan.hidden_calls"  # true: calls written onto it have no spans; in no file
NOT_SELECTED: Final = "hotspan.not_selected"  # true: of a call that `--where` left out; in no file
ENTRY: Final = "hotspan.entry"  # true: requests enter the program here; the parent is another library's
OUTER_STAGE: Final = "hotspan.outer_stage_id"  # below another library's span: the id of the stage around that
COLD: Final = "hotspan.cold"  # true: the first traced call of this very model or index
INDEX_TYPE: Final = "hotspan.retrieval.index_type"  # class of the index
INDEX_SIZE: Final = "hotspan.retrieval.index_size"  # vectors in the index

CANCELLED: Final = "cancelled"  # the task was cancelled
ABANDONED: Final = "abandoned"  # the consumer stopped before the end of the stream
TRUNCATED: Final = "truncated"  # the stream ended without a finish reason and without [DONE]
INTERRUPTED: Final = "interrupted"  # Ctrl-C, or an exit with a status other than 0

# --- Hotspan: generation; offsets are from `send`, the moment before the request is written --------------
SEND_OFFSET_NS: Final = "hotspan.generation.send_offset_ns"  # send of the last attempt, from the span's start
CONNECT_NS: Final = "hotspan.generation.connect_ns"  # wait for a connection before `send`
REQUEST_WRITE_NS: Final = "hotspan.generation.request_write_ns"  # writing the request
HEADERS_NS: Final = "hotspan.generation.headers_ns"  # send to the response's headers
TTFB_NS: Final = "hotspan.generation.ttfb_ns"  # send to the first byte of the body
TTFT_NS: Final = "hotspan.generation.ttft_ns"  # send to the first token of any kind
TTFA_NS: Final = "hotspan.generation.time_to_first_answer_ns"  # send to the first content token
LAST_TOKEN_NS: Final = "hotspan.generation.last_token_ns"  # noqa: S105 - send to the last token; no password
TPOT_NS: Final = "hotspan.generation.tpot_ns"  # time per output token after the first
CHUNK_GAPS_NS: Final = "hotspan.generation.chunk_gaps_ns"  # gaps between token-bearing chunks, in order
HELD_STAMPS: Final = "hotspan.generation.held_stamps"  # chunks that may have come long before they were read
CHUNKS: Final = "hotspan.generation.chunks"  # token-bearing chunks
TOKENS_ESTIMATED: Final = "hotspan.generation.tokens_estimated"  # true: output tokens are counted chunks
USAGE_DISAGREES: Final = (
    "hotspan.generation.usage_disagrees"  # true: usage says fewer tokens than chunks came
)
BUFFERED: Final = "hotspan.generation.buffered"  # true: asked to stream, and it came in one read, or whole
ATTEMPTS: Final = "hotspan.generation.attempts"  # HTTP attempts of this call
BACKOFF_NS: Final = "hotspan.generation.backoff_ns"  # from the first attempt's start to the last one's
ATTEMPT_EVENT: Final = "hotspan.attempt"  # event at the end of an HTTP attempt that failed; status or error
ATTEMPT_NUMBER: Final = "hotspan.attempt.number"  # from 1, in one call
ATTEMPT_DURATION_NS: Final = "hotspan.attempt.duration_ns"  # the attempt alone, without the back-off after it
ENGINE: Final = "hotspan.engine"  # vllm | transformers | llamacpp | …: what answered, where it is known

# --- Hotspan: what the answer itself says of the server's time (tracer/engines/); durations ----------------
ACCOUNT_SOURCE: Final = "hotspan.account.source"  # field of the response: metrics | timings | meta_info
ACCOUNT_QUEUE_NS: Final = "hotspan.account.queue_ns"  # in the engine's queue
ACCOUNT_PREFILL_NS: Final = "hotspan.account.prefill_ns"  # scheduled to first token
ACCOUNT_DECODE_NS: Final = "hotspan.account.decode_ns"  # first to last token
ACCOUNT_DRAFT_TOKENS: Final = "hotspan.account.draft_tokens"  # speculative decoding: tokens drafted
ACCOUNT_ACCEPTED_TOKENS: Final = "hotspan.account.accepted_tokens"  # and of these, tokens kept

# --- Hotspan: the process, and the quality of what it wrote -------------------------------------------
HOTSPAN_VERSION: Final = "hotspan.version"  # resource: the library's version
CONVENTION: Final = "hotspan.genai_convention"  # resource: the GenAI conventions' version that was written
SAMPLE_RATIO: Final = "hotspan.sample_ratio"  # resource: share of requests that were traced
LOST_SPANS: Final = "hotspan.lost_spans"  # resource of a line without spans: spans lost since the line before
FAULTS: Final = "hotspan.faults"  # resource of a line without spans: faults of the tracing itself
UNENDED_SPANS: Final = "hotspan.unended_spans"  # likewise: of the lost ones, those open at the program's end
BROKEN_CALLS: Final = "hotspan.broken_calls"  # likewise: calls to worker processes that died
OVERHEAD_NS: Final = (
    "hotspan.overhead_per_span_ns"  # resource: measured cost of one span on the calling thread
)
CHUNK_OVERHEAD_NS: Final = (
    "hotspan.overhead_per_chunk_ns"  # resource: measured cost of one item of a traced stream, likewise
)
ORIGINAL_LENGTH: Final = "hotspan.original_length"  # suffix of a key: length of a value that was cut

# --- OpenTelemetry: resource and general --------------------------------------------------------------
SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE_ID: Final = "service.instance.id"
PROCESS_PID: Final = "process.pid"
HOST_NAME: Final = "host.name"
SDK_NAME: Final = "telemetry.sdk.name"
SDK_LANGUAGE: Final = "telemetry.sdk.language"
SDK_VERSION: Final = "telemetry.sdk.version"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
HTTP_STATUS: Final = "http.response.status_code"
ERROR_TYPE: Final = "error.type"
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"
EXCEPTION_ESCAPED: Final = "exception.escaped"  # true: it left the span

# --- OpenTelemetry GenAI ------------------------------------------------------------------------------
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"  # seconds
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"  # cached ones included
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
AGENT_NAME: Final = "gen_ai.agent.name"
TOOL_NAME: Final = "gen_ai.tool.name"
DATA_SOURCE: Final = "gen_ai.data_source.id"
EMBEDDING_DIMENSIONS: Final = "gen_ai.embeddings.dimension.count"
INPUT_MESSAGES: Final = "gen_ai.input.messages"  # content: only when asked for
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"  # content: only when asked for

OPERATION_OF_STAGE: Final = {
    AGENT: "invoke_agent",
    EMBEDDING: "embeddings",
    RETRIEVAL: "retrieval",
    GENERATION: "chat",
    TOOL: "execute_tool",
}

# --- OpenInference: the kind is written beside ours, so that its viewers colour the spans ---------------
OPENINFERENCE_KIND: Final = "openinference.span.kind"
OPENINFERENCE_KIND_OF_STAGE: Final = {
    REQUEST: "CHAIN",
    AGENT: "AGENT",
    STEP: "CHAIN",
    EMBEDDING: "EMBEDDING",
    RETRIEVAL: "RETRIEVER",
    RERANK: "RERANKER",
    CONTEXT_ASSEMBLY: "CHAIN",
    GENERATION: "LLM",
    TOOL: "TOOL",
}

# --- Inference servers' spans; seconds.  Who means what by them: tracer/engines/ -------------------------
VLLM_SPAN_NAME: Final = "llm_request"
ENGINE_QUEUE_S: Final = "gen_ai.latency.time_in_queue"
ENGINE_PREFILL_S: Final = "gen_ai.latency.time_in_model_prefill"  # SGLang's includes the queue
ENGINE_DECODE_S: Final = "gen_ai.latency.time_in_model_decode"
ENGINE_INFERENCE_S: Final = "gen_ai.latency.time_in_model_inference"
ENGINE_TTFT_S: Final = "gen_ai.latency.time_to_first_token"
ENGINE_E2E_S: Final = "gen_ai.latency.e2e"
ENGINE_REQUEST_ID: Final = "gen_ai.request.id"
TRITON_REQUEST_ID: Final = "triton.request_id"
REQUEST_ID_HEADER: Final = "http.request.header.x-request-id"  # as OpenTelemetry's HTTP clients record it

# --- Metrics of the GPUs, by OpenTelemetry's hardware conventions -----------------------------------------
GPU_UTILIZATION: Final = "hw.gpu.utilization"  # ratio of the time in which a kernel ran
GPU_MEMORY_USAGE: Final = "hw.gpu.memory.utilization"  # ratio of the memory that is taken
GPU_POWER: Final = "hw.power"  # watts
GPU_ID: Final = "hw.id"
GPU_NAME: Final = "hw.name"

# --- What went into a call and came out of it: content, where a writer was asked to record it ------------
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
QUERY_TEXT: Final = "gen_ai.retrieval.query.text"
RETRIEVED: Final = "gen_ai.retrieval.documents"
OPENINFERENCE_INPUT: Final = "input.value"
OPENINFERENCE_OUTPUT: Final = "output.value"
OPENINFERENCE_SECOND_TEXT: Final = "embedding.embeddings.1.embedding.text"  # present: not one text alone
TRACELOOP_INPUT: Final = "traceloop.entity.input"
TRACELOOP_OUTPUT: Final = "traceloop.entity.output"
LANGFUSE_INPUT: Final = "langfuse.observation.input"
LANGFUSE_OUTPUT: Final = "langfuse.observation.output"
MLFLOW_INPUTS: Final = "mlflow.spanInputs"
MLFLOW_OUTPUTS: Final = "mlflow.spanOutputs"
PYDANTIC_N_INPUTS: Final = "inputs_count"  # texts of an embedding call

# --- What other writers say of a span: read by analysis/dialects/, never written ---------------------------
OPENINFERENCE_SCOPE: Final = "openinference.instrumentation"  # beginning of its scopes' names
OPENINFERENCE_SCOPE_JS: Final = "@arizeai/openinference-instrumentation"  # the same of its JavaScript ones
TRACELOOP_KIND: Final = "traceloop.span.kind"
TRACELOOP_INTEGRATION: Final = "traceloop.association.properties.ls_integration"
LLM_REQUEST_TYPE: Final = "llm.request.type"
IS_STREAM: Final = "gen_ai.request.is_stream"  # OpenLIT before 1.36
IS_STREAMING: Final = "llm.is_streaming"  # OpenLLMetry, LiteLLM: a boolean, or its name
LITELLM_SCOPE: Final = "litellm"
LITELLM_CALL: Final = "litellm.call_id"  # on whatever span LiteLLM wrote a call onto
LANGFUSE_TYPE: Final = "langfuse.observation.type"
LANGFUSE_LEVEL: Final = "langfuse.observation.level"  # ERROR: it failed
LANGFUSE_INTEGRATION: Final = "langfuse.observation.metadata.ls_integration"  # JSON
LANGFUSE_NODE: Final = "langfuse.observation.metadata.langgraph_node"  # JSON; as LANGSMITH_NODE
LANGSMITH_KIND: Final = "langsmith.span.kind"
LANGSMITH_METADATA: Final = "langsmith.metadata."  # before the name of what an application said of a run
LANGSMITH_INTEGRATION: Final = "langsmith.metadata.ls_integration"
LANGSMITH_NODE: Final = "langsmith.metadata.langgraph_node"  # present: a node of a graph, not the graph
MLFLOW_TYPE: Final = "mlflow.spanType"  # JSON in a string: the quotes are part of the value
NAT_KIND: Final = "nat.span.kind"
NAT_SUBSPAN: Final = "nat.subspan.name"
HAYSTACK_COMPONENT: Final = "haystack.component.type"
LOGFIRE_TYPE: Final = "logfire.span_type"  # log: a moment, no span
LOGFIRE_MESSAGE: Final = "logfire.msg"  # the span's name with its values filled in
LOGFIRE_NAME: Final = "name"  # of what the Agents SDK traced
LOGFIRE_DURATION: Final = "duration"  # seconds, of what a log tells of
SPRING_AI_KIND: Final = "spring.ai.kind"
GENKIT_SUBTYPE: Final = "genkit:metadata:subtype"
GENKIT_NAME: Final = "genkit:name"  # of a model's or an embedder's span: the model
GENKIT_OUTPUT: Final = "genkit:output"  # JSON, with the usage
VERCEL_OPERATION: Final = "ai.operationId"  # on the Vercel AI SDK's spans
AG2_TYPE: Final = "ag2.span.type"
PYDANTIC_AI_CALL: Final = "model_request_parameters"  # on Pydantic AI's model spans
CREWAI_IDS: Final = ("crewai.crew.id", "crewai.task.id", "crewai.agent.id")  # one on each of CrewAI's spans
ADK_EVENT: Final = "gcp.vertex.agent.event_id"  # on Google ADK's spans
OPENINFERENCE_METADATA: Final = "metadata"  # JSON
OPENINFERENCE_AGENT: Final = "agent.name"
OPENINFERENCE_NODE: Final = "graph.node.id"
OPENINFERENCE_TOOL: Final = "tool.name"
OPENINFERENCE_FINISH: Final = "llm.finish_reason"
HTTP_METHOD: Final = "http.request.method"
HTTP_METHOD_OLD: Final = "http.method"
HTTP_STATUS_OLD: Final = "http.status_code"
URL: Final = "url.full"
URL_OLD: Final = "http.url"
URL_PATH: Final = "url.path"
URL_PATH_OLD: Final = "http.target"
ROUTE: Final = "http.route"
ASGI_EVENT: Final = "asgi.event.type"
ASGI_HANG_UPS: Final = ("http.disconnect", "websocket.disconnect")  # waits for the client to hang up
RPC_SYSTEM: Final = "rpc.system"
MESSAGING_SYSTEM: Final = "messaging.system"
DB_SYSTEM: Final = "db.system.name"
DB_SYSTEM_OLD: Final = "db.system"
DB_OPERATION: Final = "db.operation.name"
DB_TOP_K: Final = "db.vector.query.top_k"  # of a vector store: present on searches
TASK_STATUS: Final = "gen_ai.task.status"  # OpenLLMetry: failure
PROVIDER_OLD: Final = "gen_ai.system"

# --- Other writers' names of tokens and models ------------------------------------------------------------
INPUT_TOKENS_OLD: Final = "gen_ai.usage.prompt_tokens"
OUTPUT_TOKENS_OLD: Final = "gen_ai.usage.completion_tokens"
CACHED_TOKENS_OLD: Final = "gen_ai.usage.cache_read_input_tokens"
OPENINFERENCE_INPUT_TOKENS: Final = "llm.token_count.prompt"
OPENINFERENCE_OUTPUT_TOKENS: Final = "llm.token_count.completion"
OPENINFERENCE_CACHED_TOKENS: Final = "llm.token_count.prompt_details.cache_read"
OPENINFERENCE_REASONING_TOKENS: Final = "llm.token_count.completion_details.reasoning"
OPENINFERENCE_MODEL: Final = "llm.model_name"
OPENINFERENCE_EMBEDDING_MODEL: Final = "embedding.model_name"
OPENINFERENCE_MESSAGES: Final = "llm.output_messages."  # before number, and role, content, tool calls
VERCEL_INPUT_TOKENS: Final = "ai.usage.inputTokens"
VERCEL_OUTPUT_TOKENS: Final = "ai.usage.outputTokens"
VERCEL_INPUT_TOKENS_OLD: Final = "ai.usage.promptTokens"
VERCEL_OUTPUT_TOKENS_OLD: Final = "ai.usage.completionTokens"
LANGFUSE_USAGE: Final = "langfuse.observation.usage_details"  # JSON
LANGFUSE_MODEL: Final = "langfuse.observation.model.name"
LANGSMITH_USAGE: Final = "langsmith.metadata.usage_metadata"  # JSON
MLFLOW_USAGE: Final = "mlflow.chat.tokenUsage"  # JSON
MLFLOW_MODEL: Final = "mlflow.llm.model"  # JSON

# --- Other writers' names of the first token and the first chunk, which is often an empty one --------------
FIRST_CHUNK_NS: Final = "hotspan.generation.first_chunk_ns"  # start of the span to the first chunk
CLIENT_TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"  # seconds
TIME_TO_FIRST_TOKEN: Final = "gen_ai.response.time_to_first_token"  # noqa: S105 - seconds or ns; no password
SERVER_TIME_TO_FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"  # noqa: S105 - ms or s; no password
TTFT_MS: Final = "ttft_ms"
VERCEL_FIRST_CHUNK_MS: Final = "ai.response.msToFirstChunk"
LANGFUSE_FIRST_CHUNK: Final = "langfuse.observation.completion_start_time"  # ISO time, JSON
LANGCHAIN_EVENT: Final = "new_token"  # LangChain's: of each chunk
LANGCHAIN_TEXT: Final = "token"  # of such an event: the chunk's text, empty where it has none
LANGCHAIN_CHUNK: Final = "chunk"  # of such an event: the chunk, JSON
MLFLOW_CHUNK: Final = "mlflow.chunk.value"  # of an event: JSON
CHUNK_EVENTS: Final = (  # one a chunk, or of the first
    "First Token Stream Event",  # OpenInference: of the first chunk, whatever it holds
    "gen_ai.content.completion.chunk",
    "llm.content.completion.chunk",
    "gen_ai.content.chunk",
    "ai.stream.firstChunk",
    "new_token",  # LangChain tells of empty chunks too
)

# --- Jaeger's tags: what OpenTelemetry has as a field of its own -------------------------------------------
JAEGER_KIND: Final = "span.kind"
JAEGER_ERROR: Final = "error"
JAEGER_STATUS: Final = "otel.status_code"
JAEGER_STATUS_MESSAGE: Final = "otel.status_description"
JAEGER_SCOPE_NAME: Final = "otel.scope.name"
JAEGER_SCOPE_VERSION: Final = "otel.scope.version"
JAEGER_SCOPE_NAME_OLD: Final = "otel.library.name"
JAEGER_SCOPE_VERSION_OLD: Final = "otel.library.version"
JAEGER_TRACE_STATE: Final = "w3c.tracestate"
JAEGER_FORMAT: Final = "internal.span.format"  # how the span came to Jaeger

# --- Sampling by others: how many requests a recorded one stands for -------------------------------------
TRACE_STATE_VENDOR: Final = "ot"  # OpenTelemetry's member of `tracestate`: `th:` threshold, `p:` power of 2
HONEYCOMB_SAMPLE_RATE: Final = "SampleRate"  # one of so many was kept
JAEGER_SAMPLER_TYPE: Final = "sampler.type"  # probabilistic: the next one is the probability
JAEGER_SAMPLER_PARAM: Final = "sampler.param"
TAIL_SAMPLING_POLICY: Final = "tailsampling.policy"  # why the Collector kept it; no weight is said
