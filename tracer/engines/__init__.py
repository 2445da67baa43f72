"""What model servers say of themselves: in their spans, their responses and their metrics endpoints.

One file per kind of server, each with one `Engine`; one more server is one more file, named in `ENGINES`.
Capture asks `response_attributes`, the sampler and the analysis the tables.  Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv
from hotspan.tracer.engines import llamacpp, sglang, transformers, triton, trtllm, vllm
from hotspan.tracer.engines.base import Account, Engine, Series, count

if TYPE_CHECKING:
    from hotspan.tracer.record import Attributes, AttributeValue, SpanRecord

__all__ = [
    "ENGINES",
    "Account",
    "Engine",
    "Series",
    "engine_of",
    "engine_of_series",
    "response_account",
    "response_attributes",
]

# Those that say their name first; TensorRT-LLM is told by what the others have and it has not.
ENGINES: Final = (
    sglang.ENGINE,
    triton.ENGINE,
    vllm.ENGINE,
    trtllm.ENGINE,
    llamacpp.ENGINE,
    transformers.ENGINE,
)
_BY_FIELD: Final = {engine.response_field: engine for engine in ENGINES if engine.response_field}
_BY_SERIES: Final = {name: engine for engine in ENGINES for name in engine.series}
_KEYS: Final = (
    (semconv.ACCOUNT_QUEUE_NS, "queue_ns"),
    (semconv.ACCOUNT_PREFILL_NS, "prefill_ns"),
    (semconv.ACCOUNT_DECODE_NS, "decode_ns"),
    (semconv.ACCOUNT_DRAFT_TOKENS, "n_drafted"),
    (semconv.ACCOUNT_ACCEPTED_TOKENS, "n_accepted"),
)


def engine_of(span: SpanRecord) -> Engine | None:
    """Return the kind of server that wrote a span as its account of a request; `None`: no server did."""
    if semconv.STAGE in span.attributes:  # a stage of a traced program, whatever else it says
        return None
    return next((engine for engine in ENGINES if engine.is_span(span)), None)


def engine_of_series(name: str) -> Engine | None:
    """Return the kind of server that has a series of this name (without `_total`) at its metrics endpoint."""
    return _BY_SERIES.get(name)


def response_attributes(body: Mapping[str, object]) -> dict[str, AttributeValue]:
    """Return what a response, or a chunk of one, says of the server's own time, under its attribute keys.

    Args:
        body: The JSON object as the server sent it.

    Returns:
        `hotspan.account.*`; empty where it says nothing.
    """
    for name, engine in _BY_FIELD.items():
        said = body.get(name)
        if said is None and name == "meta_info":
            said = _of_first_choice(body, name)
        if said is None:
            continue
        account = engine.read_response(said)
        if not account.is_empty:
            known = {key: getattr(account, field) for key, field in _KEYS}
            found: dict[str, AttributeValue] = {
                key: value for key, value in known.items() if value is not None
            }
            return {semconv.ACCOUNT_SOURCE: name, **found}
    return {}


def _of_first_choice(body: Mapping[str, object], name: str) -> object:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, Sequence) and choices else None
    return first.get(name) if isinstance(first, Mapping) else None


def response_account(attributes: Attributes) -> tuple[str, Account] | None:
    """Return what `response_attributes` left on a call's span: the response's field, and the account in it.

    The client's own stamps on the same span complete it, where the server's account has a known gap.
    """
    name = attributes.get(semconv.ACCOUNT_SOURCE)
    engine = _BY_FIELD.get(name) if isinstance(name, str) else None
    if engine is None or not isinstance(name, str):
        return None
    queue, prefill, decode, drafted, accepted = (count(attributes.get(key)) for key, _ in _KEYS)
    account = Account(queue, prefill, decode, n_drafted=drafted, n_accepted=accepted)
    return name, engine.completed(attributes, account)
