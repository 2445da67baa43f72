"""Traces of a RAG service, as Hotspan writes them: requests of five spans, four of them below the first.

Nothing is measured: durations, token counts and chunk gaps are drawn, with a seed, from distributions like
those of a real run.  Answers come as streams, each chunk stamped, or whole, with nothing to stamp.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.exporters import otlp_lines
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPANS_PER_REQUEST: Final = 5
_SPANS_PER_LINE: Final = 500  # about what the recorder drains at a time
_START_NS: Final = 1_790_000_000_000_000_000
_MS: Final = 1_000_000
_TOGETHER: Final = 0.1  # of the requests run their embedding and their retrieval at once
_FAILING: Final = 0.02  # of the requests
_N_AT_ONCE: Final = 8  # requests whose spans are mixed in the file, as those of concurrent users are
_RESOURCE: Final = Resource({
    semconv.SERVICE_NAME: "support-bot",
    semconv.SERVICE_INSTANCE_ID: "7d444840-9dc0-11d1-b245-5ffdce74fad2",
    semconv.PROCESS_PID: 4711,
    semconv.HOST_NAME: "worker-3",
    semconv.SDK_NAME: "hotspan",
    semconv.SDK_LANGUAGE: "python",
    semconv.SAMPLE_RATIO: 1.0,
    semconv.OVERHEAD_NS: 1022,
})  # fmt: skip
_SCOPE: Final = Scope(semconv.SCOPE_NAME, "", {}, semconv.SCHEMA_URL)


def write(path: Path, n_spans: int, *, is_streamed: bool = True, seed: int = 1) -> None:
    """Write a file of `n_spans` spans, as OTLP/JSON lines."""
    with path.open("w") as file:
        batch: list[SpanRecord] = []
        rng = random.Random(seed)  # noqa: S311 - no secret
        for span in _mixed(n_spans // SPANS_PER_REQUEST, rng, is_streamed=is_streamed):
            batch.append(span)
            if len(batch) == _SPANS_PER_LINE:
                file.writelines(otlp_lines.lines(batch))
                batch.clear()
        file.writelines(otlp_lines.lines(batch))


def _mixed(n_requests: int, rng: random.Random, *, is_streamed: bool) -> Iterator[SpanRecord]:
    """Yield the spans in the order in which they end, some requests at once."""
    for first in range(0, n_requests, _N_AT_ONCE):
        start_ns = _START_NS + first * 100 * _MS
        group = [
            span
            for _ in range(first, min(first + _N_AT_ONCE, n_requests))
            for span in _request(start_ns + rng.randrange(400 * _MS), rng, is_streamed=is_streamed)
        ]
        yield from sorted(group, key=lambda span: span.end_ns or 0)


class _Times(NamedTuple):
    """Starts and ends, in nanoseconds from the start of the request."""

    embedding: tuple[int, int]
    retrieval: tuple[int, int]
    rerank: tuple[int, int]
    generation: tuple[int, int]
    end: int


def _times(rng: random.Random) -> _Times:
    def some(median_ms: float) -> int:
        return int(median_ms * _MS * rng.lognormvariate(0, 0.4))

    pause = some(0.02)
    embedding = (pause, pause + some(12))
    together = rng.random() < _TOGETHER
    begin = embedding[0] if together else embedding[1] + pause
    retrieval = (begin, begin + some(6))
    begin = max(embedding[1], retrieval[1]) + pause
    rerank = (begin, begin + some(35))
    begin = rerank[1] + some(1)
    generation = (begin, begin + some(420))
    return _Times(embedding, retrieval, rerank, generation, generation[1] + some(0.5))


def _request(start_ns: int, rng: random.Random, *, is_streamed: bool) -> Iterator[SpanRecord]:
    trace_id = f"{rng.getrandbits(128) | 1:032x}"
    root_id = f"{rng.getrandbits(64) | 1:016x}"
    times = _times(rng)
    fails = rng.random() < _FAILING

    def child(name: str, span: tuple[int, int], attributes: dict[str, object], status: str) -> SpanRecord:
        span_id = f"{rng.getrandbits(64) | 1:016x}"
        start, end = start_ns + span[0], start_ns + span[1]
        return SpanRecord(
            trace_id, span_id, root_id, name, start, end, attributes,  # type: ignore[arg-type]  # plain values
            "client" if status else "internal", status or "unset",  # type: ignore[arg-type]  # of the enums
            resource=_RESOURCE, scope=_SCOPE, flags=1,
        )  # fmt: skip

    yield child("embeddings minilm", times.embedding, _stage("embedding", "embeddings") | _MINILM, "")
    top_k = {semconv.DATA_SOURCE: "faiss", semconv.REQUEST_TOP_K: 30, "documents": rng.randrange(10, 31)}
    yield child("retrieval faiss", times.retrieval, _stage("retrieval", "retrieval") | top_k, "")
    yield child("rerank minilm", times.rerank, _stage("rerank") | _MINILM | {"documents": 30}, "")
    spent = times.generation[1] - times.generation[0]
    answer = _model_call(spent, rng) if not fails else {semconv.ERROR_TYPE: "InternalServerError"}
    if not is_streamed:
        answer = {key: value for key, value in answer.items() if key not in _OF_STREAMS}
        answer[semconv.REQUEST_STREAM] = False
    status = "error" if fails else "ok"
    yield child("chat tiny", times.generation, _stage("generation", "chat") | _CHAT | answer, status)
    attributes = _stage("request") | {"session.id": f"{rng.getrandbits(64):016x}", "user.tier": "free"}
    yield SpanRecord(
        trace_id, root_id, None, "answer", start_ns, start_ns + times.end, attributes,  # type: ignore[arg-type]  # plain values
        status="error" if fails else "unset", resource=_RESOURCE, scope=_SCOPE, flags=1,
    )  # fmt: skip


_MINILM: Final[dict[str, object]] = {semconv.REQUEST_MODEL: "all-MiniLM-L6-v2"}
_CHAT: Final[dict[str, object]] = {
    semconv.PROVIDER: "vllm",
    semconv.REQUEST_MODEL: "tiny",
    semconv.REQUEST_STREAM: True,
    semconv.REQUEST_MAX_TOKENS: 256,
    semconv.SERVER_ADDRESS: "127.0.0.1",
    semconv.SERVER_PORT: 8000,
    semconv.ATTEMPTS: 1,
}


_OF_STREAMS: Final = frozenset({
    semconv.STREAM_BUSY_NS,
    semconv.STREAM_HOLD_NS,
    semconv.TTFT_NS,
    semconv.TTFA_NS,
    semconv.LAST_TOKEN_NS,
    semconv.TPOT_NS,
    semconv.CHUNK_GAPS_NS,
    semconv.CHUNKS,
})  # fmt: skip


def _stage(stage: str, operation: str = "") -> dict[str, object]:
    said: dict[str, object] = {
        semconv.STAGE: stage,
        semconv.OPENINFERENCE_KIND: semconv.OPENINFERENCE_KIND_OF_STAGE[stage],
    }
    return said | {semconv.OPERATION: operation} if operation else said


def _model_call(duration_ns: int, rng: random.Random) -> dict[str, object]:
    """Return what a streamed answer's span says, with stamps that fit into its duration."""
    n_tokens = rng.randrange(8, 40)
    send, wait = duration_ns // 400, duration_ns // 5
    stream = duration_ns - send - wait - duration_ns // 100
    gaps = [
        stream // (n_tokens - 1) + rng.randrange(-stream // 100, stream // 100) for _ in range(n_tokens - 1)
    ]
    last = wait + sum(gaps) - max(0, sum(gaps) - stream)
    return {
        semconv.HTTP_STATUS: 200,
        semconv.STREAM_BUSY_NS: duration_ns - duration_ns // 300,
        semconv.STREAM_HOLD_NS: duration_ns // 300,
        semconv.SEND_OFFSET_NS: send,
        semconv.CONNECT_NS: send // 2,
        semconv.REQUEST_WRITE_NS: send // 4,
        semconv.TTFB_NS: wait,
        semconv.TTFT_NS: wait,
        semconv.TTFA_NS: wait,
        semconv.LAST_TOKEN_NS: last,
        semconv.TPOT_NS: (last - wait) / (n_tokens - 1),
        semconv.CHUNK_GAPS_NS: gaps,
        semconv.CHUNKS: n_tokens,
        semconv.INPUT_TOKENS: rng.randrange(400, 1200),
        semconv.CACHED_TOKENS: rng.randrange(0, 400),
        semconv.OUTPUT_TOKENS: n_tokens,
        semconv.RESPONSE_ID: f"chatcmpl-{rng.getrandbits(64):016x}",
        semconv.RESPONSE_MODEL: "tiny",
        semconv.FINISH_REASONS: ["stop"],
    }
