"""Requests written by hand: stages with times in ms, model calls with what a client and an engine say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotspan.testing import build_trace
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Resource, Trace

MS = 1_000_000


@dataclass
class Call:
    """One span below the root, or below the call named `inside`; times in ms from the request's start."""

    stage: str | None
    name: str
    start: float
    end: float
    attributes: dict[str, Any] = field(default_factory=dict)
    inside: str | None = None
    status: str = "unset"
    events: tuple[Event, ...] = ()


def request(number, duration, *calls, at=None, pid=1, status="unset", attributes=None):  # noqa: PLR0913 - a recipe
    """One request of `duration` ms that starts `at` ms; by default each begins long after the one before."""
    zero = 10_000 * number if at is None else at
    root = Call("request", "answer", 0, duration, dict(attributes or {}), status=status)
    spans, details = [], {}
    for place, call in enumerate((root, *calls)):
        key = f"{number}-{place}"
        parent = () if call is root else (_key(number, calls, call.inside),)
        spans.append((key, round((zero + call.start) * MS), round((zero + call.end) * MS), *parent))
        details[key] = call
    trace = build_trace(
        *spans,
        stages={key: call.stage for key, call in details.items() if call.stage},
        attributes={key: call.attributes for key, call in details.items()},
        trace_id=str(number),
    )
    resource = Resource({semconv.SERVICE_NAME: "made", semconv.PROCESS_PID: pid})
    return Trace(trace.trace_id, [_finished(span, details[span.span_id], resource) for span in trace.spans])


def _key(number, calls, inside):
    if inside is None:
        return f"{number}-0"
    return f"{number}-{1 + next(i for i, call in enumerate(calls) if call.name == inside)}"


def _finished(span, call, resource):
    return span._replace(name=call.name, status=call.status, events=call.events, resource=resource)


def answer(start, end, *, ttft=None, last=None, prompt=None, output=None, cached=None, **more):  # noqa: PLR0913 - a recipe
    """One model call; `ttft` and `last` (token) in ms from its start, `more` are further fields of `Call`."""
    said = {
        semconv.TTFT_NS: None if ttft is None else round(ttft * MS),
        semconv.LAST_TOKEN_NS: None if last is None else round(last * MS),
        semconv.INPUT_TOKENS: prompt,
        semconv.OUTPUT_TOKENS: output,
        semconv.CACHED_TOKENS: cached,
    }
    attributes = {key: value for key, value in said.items() if value is not None}
    attributes |= more.pop("attributes", {})
    return Call("generation", more.pop("name", "chat"), start, end, attributes, **more)


def engine(queue, prefill, decode, *, inside="chat"):
    """What an engine's span says of the model call `inside`: ms."""
    attributes = {
        semconv.ENGINE_QUEUE_S: queue / 1000,
        semconv.ENGINE_PREFILL_S: prefill / 1000,
        semconv.ENGINE_DECODE_S: decode / 1000,
    }
    return Call(None, semconv.VLLM_SPAN_NAME, 0, 1, attributes, inside=inside)


def many(n, make):
    """`n` requests, each made from its number."""
    return [make(number) for number in range(1, n + 1)]
