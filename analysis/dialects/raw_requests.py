"""LiteLLM's raw requests: the spans of its calls, below one that only seems to be a call.

Where the application has a span of its own, LiteLLM's callback opens none for the call: it writes what it
knows onto the application's, each call over the one before, and its own span of the raw request has only the
provider's fields.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects import kinds
from hotspan.analysis.dialects.rules import kind_of
from hotspan.analysis.dialects.table import dialect_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.tracer.record import AttributeValue, SpanRecord

_NAME: Final = "raw_gen_ai_request"
_FIELD: Final = re.compile(r"llm\.[^.]+\.(\w+)")  # llm.PROVIDER.FIELD, of the request or of the response
# What a request was for, by the fields that only such a one has; in order.
_FOR: Final = (
    ("rerank", frozenset({"documents", "results", "top_n"})),
    ("completion", frozenset({"choices", "contents", "messages", "output", "prompt"})),
    ("embedding", frozenset({"encoding_format", "input"})),
)
_COUNT: Final = re.compile(r"'(\w+)': (\d+)")  # usage is the text of a Python dict
_COUNTS: Final = {"prompt_tokens": semconv.INPUT_TOKENS, "completion_tokens": semconv.OUTPUT_TOKENS}
_TEXTS: Final = {"model": semconv.REQUEST_MODEL, "id": semconv.RESPONSE_ID}
_OF_ONE_CALL: Final = (
    semconv.OPERATION,
    semconv.LLM_REQUEST_TYPE,
    semconv.IS_STREAMING,
    semconv.REQUEST_MODEL,
    semconv.RESPONSE_MODEL,
    semconv.RESPONSE_ID,
    semconv.FINISH_REASONS,
    semconv.OUTPUT_MESSAGES,
    semconv.INPUT_TOKENS,
    semconv.OUTPUT_TOKENS,
    semconv.CACHED_TOKENS,
)
_MODEL_STAGES: Final = frozenset({semconv.GENERATION, semconv.EMBEDDING, semconv.RERANK})


def with_raw_requests(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with each raw request saying what it was for, and the application's no longer a call.

    POST /ask  |-----------------------|   `chat`, a model, tokens: of whichever call ended last
    raw          |---|  |--|  |------|     embedding, rerank, completion

    Without raw requests, a span that holds nothing else is taken for the call; another one is marked: its
    calls have no spans.
    """
    below: dict[str, list[int]] = {}
    hosts: list[int] = []
    for index, span in enumerate(spans):
        if span.name == _NAME and span.scope.name == semconv.LITELLM_SCOPE:
            below.setdefault(span.parent_id or "", []).append(index)
        elif semconv.LITELLM_CALL in span.attributes and _is_host(span):
            hosts.append(index)
    if not (below or hosts):
        return spans
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    for parent, requests in below.items():
        host = index_of.get(parent)
        _complete(spans, requests, None if host is None else spans[host])
        if host is not None and _is_host(spans[host]):
            spans[host] = _without_call(spans[host])
    parents = {span.parent_id for span in spans}
    for host in hosts:
        span = spans[host]
        if span.span_id not in below and (span.kind == "server" or span.span_id in parents):
            hidden = _without_call(span)
            spans[host] = hidden._replace(attributes={**hidden.attributes, semconv.HIDDEN_CALLS: True})
    return spans


def _is_host(span: SpanRecord) -> bool:
    """Return whether a span of the application says that it is a call."""
    if span.scope.name in {"", semconv.LITELLM_SCOPE} or dialect_of(span) is not None:
        return False
    return kind_of(span, (kinds.LLM_REQUEST, kinds.OPERATION)) in _MODEL_STAGES


def _without_call(span: SpanRecord) -> SpanRecord:
    kept = {key: value for key, value in span.attributes.items() if key not in _OF_ONE_CALL}
    return span._replace(attributes=kept)


def _complete(spans: list[SpanRecord], requests: Sequence[int], host: SpanRecord | None) -> None:
    """Write what each request says, and where it is the only one, what the span around it says of it."""
    written = {} if host is None else {k: host.attributes[k] for k in _OF_ONE_CALL if k in host.attributes}
    is_its_own = host is not None and host.name == "litellm_request"
    for index in requests:
        span = spans[index]
        said: dict[str, AttributeValue] = dict(_said(span))
        meant = written.get(semconv.LLM_REQUEST_TYPE)
        if is_its_own and meant is not None:
            said = {semconv.LLM_REQUEST_TYPE: meant}  # one call of both, and the outer one has the rest
        elif len(requests) == 1 and said.get(semconv.LLM_REQUEST_TYPE, meant) == meant:
            said = {**said, **written}
        said.setdefault(semconv.LLM_REQUEST_TYPE, "completion")
        spans[index] = span._replace(attributes={**span.attributes, **said})


def _said(span: SpanRecord) -> Iterator[tuple[str, int | str]]:
    fields = {
        match[1]: value
        for key, value in span.attributes.items()
        if (match := _FIELD.fullmatch(key)) is not None
    }
    meant = next((meant for meant, telling in _FOR if not telling.isdisjoint(fields)), None)
    if meant is not None:
        yield semconv.LLM_REQUEST_TYPE, meant
    for name, key in _TEXTS.items():
        if isinstance(value := fields.get(name), str) and value:
            yield key, value
    usage = fields.get("usage")
    for name, count in _COUNT.findall(usage) if isinstance(usage, str) else ():
        if name in _COUNTS:
            yield _COUNTS[name], int(count)
