"""vLLM's in-process classes as far as `trace_vllm` sees them, with an engine that works by a fake clock.

Each step takes 10 ms and gives every running request one token.  The engine's own clock, in seconds, has
nothing to do with the program's; what it writes into `metrics` is laid out as vLLM does.
"""

from __future__ import annotations

import enum
import sys
import types
from dataclasses import dataclass, field
from typing import Any

ENGINE_EPOCH_S = 5_000.0  # of the engine's monotonic clock
ARRIVAL_S = 1_700_000_000.0  # of the wall clock
STEP_MS = 10.0
TEXT = "canary4711 "


class RequestOutputKind(enum.Enum):
    """What a stream of outputs holds."""

    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class SamplingParams:
    """What is asked of the engine."""

    max_tokens: int = 4
    temperature: float = 0.0
    top_k: int = 0
    n: int = 1
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE


@dataclass
class Metrics:
    """Times of two clocks: the first is wall time, the others are the engine's."""

    arrival_time: float = ARRIVAL_S
    queued_ts: float = 0.0
    scheduled_ts: float = 0.0
    first_token_ts: float = 0.0
    last_token_ts: float = 0.0
    num_generation_tokens: int = 0


@dataclass
class CompletionOutput:
    """One answer."""

    index: int
    token_ids: list[int]
    text: str
    finish_reason: str | None = None


@dataclass
class RequestOutput:
    """What there is of a request."""

    request_id: str
    prompt: str
    outputs: list[CompletionOutput]
    finished: bool
    metrics: Metrics | None
    prompt_token_ids: list[int] = field(default_factory=lambda: [1, 2, 3])
    num_cached_tokens: int | None = 2


def output(
    request_id: str, n_tokens: int, *, reason: str | None = None, metrics: Metrics | None = None, n: int = 1
) -> RequestOutput:
    """Return an output of `n` answers of so many tokens each."""
    answers = [CompletionOutput(index, list(range(n_tokens)), TEXT * n_tokens, reason) for index in range(n)]
    return RequestOutput(request_id, TEXT, answers, reason is not None, metrics)


@dataclass
class _Request:
    request_id: str
    params: SamplingParams
    metrics: Metrics
    trace_headers: dict[str, str] | None


def _refuse_empty(prompt: str) -> None:
    if not prompt:
        msg = "The prompt is empty"
        raise ValueError(msg)


class LLMEngine:
    """An engine that runs two requests at a time."""

    def __init__(self, clock: Any, *, stats: bool = True, endpoint: str | None = None) -> None:
        self.observability_config = types.SimpleNamespace(otlp_traces_endpoint=endpoint)
        self.requests: list[_Request] = []
        self.seen: list[_Request] = []
        self.on_step: Any = None
        self._clock, self._stats = clock, stats
        self._now_s = ENGINE_EPOCH_S

    def add_request(
        self,
        request_id: str,
        prompt: str,
        params: SamplingParams,
        *,
        trace_headers: dict[str, str] | None = None,
    ) -> str:
        """Take a request; a prompt of nothing is refused."""
        _refuse_empty(prompt)
        self.requests.append(_Request(request_id, params, Metrics(queued_ts=self._now_s), trace_headers))
        self.seen.append(self.requests[-1])
        return f"{request_id}-internal"

    def step(self) -> list[RequestOutput]:
        """Work for 10 ms; return the requests that are finished."""
        if self.on_step is not None:
            self.on_step()
        begun_s = self._now_s
        self._now_s += STEP_MS / 1e3
        self._clock.advance(ms=STEP_MS)
        finished = [request for request in self.requests[:2] if self._advance(request, begun_s)]
        self.requests = [request for request in self.requests if request not in finished]
        return [
            output(
                request.request_id,
                request.params.max_tokens,
                reason="length",
                metrics=request.metrics if self._stats else None,
                n=request.params.n,
            )
            for request in finished
        ]

    def _advance(self, request: _Request, begun_s: float) -> bool:
        metrics = request.metrics
        metrics.scheduled_ts = metrics.scheduled_ts or begun_s
        metrics.first_token_ts = metrics.first_token_ts or self._now_s
        metrics.last_token_ts = self._now_s
        metrics.num_generation_tokens += 1
        return metrics.num_generation_tokens == request.params.max_tokens


class LLM:
    """The class of the same name."""

    def __init__(self, engine: LLMEngine, name: str | list[str] | None = "tiny") -> None:
        self.llm_engine = engine
        self.model_config = types.SimpleNamespace(served_model_name=name, model="/models/big-model")
        self.refuses_early = False  # before a prompt is a request, as vLLM does where it is too long
        self._n_requests = 0

    def generate(self, prompts: list[str], params: SamplingParams) -> list[RequestOutput]:
        """Generate for each prompt."""
        self.enqueue(prompts, params)
        return self.wait_for_completion()

    def chat(self, messages: list[str], params: SamplingParams) -> list[RequestOutput]:
        """Answer each conversation."""
        self._add(messages, params)
        return self.wait_for_completion()

    def enqueue(self, prompts: list[str], params: SamplingParams) -> list[str]:
        """Begin to generate for each prompt."""
        return self._add(prompts, params)

    def wait_for_completion(self) -> list[RequestOutput]:
        """Return all outputs."""
        outputs = []
        while self.llm_engine.requests:
            outputs += self.llm_engine.step()
        return sorted(outputs, key=lambda one: int(one.request_id))

    def embed(self, prompts: list[str]) -> list[RequestOutput]:
        """Do something else with the engine."""
        self._add(prompts, SamplingParams(max_tokens=1))
        return self.wait_for_completion()

    def _add(self, prompts: list[str], params: SamplingParams) -> list[str]:
        ids: list[str] = []
        try:
            for prompt in prompts:
                if self.refuses_early:
                    _refuse_empty(prompt)
                ids.append(self.llm_engine.add_request(str(self._n_requests), prompt, params))
                self._n_requests += 1
        except Exception:
            self.llm_engine.requests = [
                r for r in self.llm_engine.requests if f"{r.request_id}-internal" not in ids
            ]
            raise
        return ids


class AsyncLLM:
    """The class of the same name, with the outputs that a test gives it."""

    def __init__(self, outputs: Any, endpoint: str | None = None) -> None:
        self.model_config = types.SimpleNamespace(served_model_name=["tiny", "other"], model="x")
        self.observability_config = types.SimpleNamespace(otlp_traces_endpoint=endpoint)
        self.trace_headers: Any = None
        self._outputs = outputs

    async def generate(
        self,
        prompt: str,  # noqa: ARG002 - vLLM's signature
        sampling_params: SamplingParams,  # noqa: ARG002 - the same
        request_id: str,  # noqa: ARG002 - the same
        *,
        trace_headers: dict[str, str] | None = None,
    ) -> Any:
        """Generate for a prompt."""
        self.trace_headers = trace_headers
        async for one in self._outputs():
            yield one


def install(monkeypatch: Any) -> None:
    """Make these the classes of vLLM, whether or not it is installed."""
    for name, content in (
        ("vllm", {}),
        ("vllm.entrypoints.llm", {"LLM": LLM}),
        ("vllm.v1.engine.async_llm", {"AsyncLLM": AsyncLLM}),
    ):
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
