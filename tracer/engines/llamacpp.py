"""llama.cpp's server: no spans, `timings` in the response, Prometheus counters.

`prompt_ms` is from the slot's start to the first token, `predicted_ms` from the first to the last one.  The
time in the queue is in no field; but the server holds the response's headers back until a slot takes the
request, so that the client's own stamp of the headers tells it, with the way there and the parsing in it.
The endpoint counts prompts that were read in one batch once, each call's `prompt_ms` all of their time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv
from hotspan.tracer.engines.base import (
    NO_ACCOUNT,
    NS_PER_MS,
    NS_PER_S,
    Account,
    Engine,
    Series,
    count,
    duration_ns,
    less,
    plus,
)

if TYPE_CHECKING:
    from hotspan.tracer.record import Attributes

# What an idle server takes from the request to the headers, at most: below it, nothing is called a queue.
IDLE_NS: Final = 20 * NS_PER_MS


def _read_response(timings: object) -> Account:
    if not isinstance(timings, Mapping):
        return NO_ACCOUNT
    return Account(
        prefill_ns=duration_ns(timings.get("prompt_ms"), NS_PER_MS),
        decode_ns=duration_ns(timings.get("predicted_ms"), NS_PER_MS),
        n_drafted=count(timings.get("draft_n")),
        n_accepted=count(timings.get("draft_n_accepted")),
    )


def _completed(attributes: Attributes, account: Account) -> Account:
    """Add the queue, as the response's headers tell it.

    A write that seems to last until after the headers was stamped late, by a thread that did not run: then
    nothing is called a queue, which is still known.
    """
    waited = count(attributes.get(semconv.HEADERS_NS))
    if attributes.get(semconv.REQUEST_STREAM) is not True:  # then the headers come with the whole answer
        waited = less(waited, plus(account.prefill_ns, account.decode_ns))
    if waited is None:
        return account
    written = count(attributes.get(semconv.REQUEST_WRITE_NS)) or 0
    return account._replace(queue_ns=max(0, waited - written - IDLE_NS))


ENGINE: Final = Engine(
    name="llamacpp",
    response_field="timings",
    read_response=_read_response,
    completed=_completed,
    series={
        "llamacpp:requests_processing": Series("running", "gauge"),
        "llamacpp:requests_deferred": Series("waiting", "gauge"),
        "llamacpp:kv_cache_usage_ratio": Series("kv_cache_usage", "gauge"),  # older builds
        "llamacpp:prompt_seconds": Series("prefill", "sum", NS_PER_S),
        "llamacpp:tokens_predicted_seconds": Series("decode", "sum", NS_PER_S),
        "llamacpp:prompt_tokens": Series("computed_tokens", "sum"),
        "llamacpp:prompt_tokens_cached": Series("cache_hits", "sum"),
        "llamacpp:tokens_predicted": Series("output_tokens", "sum"),
        "llamacpp:spec_decode_num_draft_tokens": Series("drafted", "sum"),
        "llamacpp:spec_decode_num_accepted_tokens": Series("accepted", "sum"),
    },
    metrics_option="--metrics",
)
