"""The one shape into which every inference server's account of itself is read.  Standard library only.

All times are durations in nanoseconds, and those of one `Account` have one origin: a time that a server
counts from a request's arrival is never put beside one that it counts from the moment of scheduling.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hotspan.tracer.record import Attributes, SpanRecord

NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000
NS_PER_US: Final = 1_000
_MAX_S: Final = 10**7  # some hundred days: beyond it a number is a moment, not a duration

# What a series of a metrics endpoint is about, whatever its server calls it.
Role = Literal[
    "running",  # gauge: requests in the running batch
    "waiting",  # gauge: requests in the queue
    "kv_cache_usage",  # gauge: ratio
    "requests",  # counter: requests that finished
    "queue",  # counter or histogram: time in the queue, as the two below
    "prefill",
    "decode",
    "prompt_tokens",  # counter, cached ones included
    "computed_tokens",  # counter: prompt tokens without the cached ones
    "output_tokens",  # counter
    "cache_queries",  # counter: prompt tokens looked up in the prefix cache
    "cache_hits",  # counter: of these, or of all prompt tokens, found there
    "preemptions",  # counter
    "drafted",  # counter: tokens of speculative decoding
    "accepted",  # counter: and of these, tokens kept
]
Kind = Literal["gauge", "sum", "histogram"]


class Account(NamedTuple):
    """Where a server says the time of one request went; `None` where it does not say.

    Attributes:
        queue_ns: Waiting for a place in the running batch.
        prefill_ns: From there to the first token.
        decode_ns: From the first token to the last one.
        undivided_ns: Queue and prefill as one, where the server does not tell them apart.
        request_id: The server's name for the request.
        n_drafted: Tokens of speculative decoding.
        n_accepted: Of these, tokens kept.
    """

    queue_ns: int | None = None
    prefill_ns: int | None = None
    decode_ns: int | None = None
    undivided_ns: int | None = None
    request_id: str | None = None
    n_drafted: int | None = None
    n_accepted: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it says no duration at all."""
        return self[:4] == (None, None, None, None)


NO_ACCOUNT: Final = Account()


class Series(NamedTuple):
    """One series of a metrics endpoint.

    Attributes:
        role: What it is about.
        kind: How it is exposed; a histogram is read by its sum and count alone.
        scale: Factor to nanoseconds, for times.
        only: A label and its value, where one name holds several things.
    """

    role: Role
    kind: Kind
    scale: float = 1.0
    only: tuple[str, str] | None = None


def _no_span(_span: SpanRecord) -> bool:
    return False


def _no_account(_span: SpanRecord, _below: Sequence[SpanRecord]) -> Account:
    return NO_ACCOUNT


def _no_response(_said: object) -> Account:
    return NO_ACCOUNT


def _as_stated(_attributes: Attributes, account: Account) -> Account:
    return account


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine:
    """What is known of one kind of server: one file of this package each.

    Attributes:
        name: As in `hotspan.engine`.
        is_span: Whether the server wrote a span as the outermost one of its account of a request.
        read_spans: The account in that span and those below it.
        response_field: The field of its responses that holds an account.
        read_response: The account in that field's value.
        completed: The account of a response, with what the client's own stamps add to it.
        series: The metrics endpoint's names (without a counter's `_total`).
        metrics_paths: Where that endpoint is, below the server's address; the first that answers counts.
        metrics_option: What the server is started with to have one, where it has none by itself.
    """

    name: str
    is_span: Callable[[SpanRecord], bool] = _no_span
    read_spans: Callable[[SpanRecord, Sequence[SpanRecord]], Account] = _no_account
    response_field: str = ""
    read_response: Callable[[object], Account] = _no_response
    completed: Callable[[Attributes, Account], Account] = _as_stated
    series: Mapping[str, Series] = field(default_factory=lambda: MappingProxyType({}))
    metrics_paths: tuple[str, ...] = ("/metrics",)
    metrics_option: str = ""


def duration_ns(value: object, unit_ns: int = NS_PER_S) -> int | None:
    """Return a duration that a server states as a number of units, `None` where it makes no sense.

    Not a number, infinite, negative, or a moment since 1970: the server's clock stepped, or it had nothing to
    say.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return round(value * unit_ns) if 0 <= value * unit_ns < _MAX_S * NS_PER_S else None


def count(value: object) -> int | None:
    """Return a plausible count, `None` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def text(value: object) -> str | None:
    """Return a text that is not empty, `None` for anything else."""
    return value if isinstance(value, str) and value else None


def between(later: object, earlier: object) -> int | None:
    """Return the time between two moments of one clock, in seconds both; `None` where it makes no sense."""
    pair = (later, earlier)
    if any(not isinstance(moment, int | float) or isinstance(moment, bool) for moment in pair):
        return None
    stop, start = pair
    difference: Any = stop - start  # type: ignore[operator]  # both are numbers, see above
    return duration_ns(difference)


def plus(*durations: int | None) -> int | None:
    """Return the sum of what is known, `None` where nothing is."""
    known = [ns for ns in durations if ns is not None]
    return sum(known) if known else None


def less(whole: int | None, *parts: int | None) -> int | None:
    """Return what the parts leave of a whole; `None` where one is not known or the rest is negative."""
    if whole is None:
        return None
    for part in parts:
        if part is None:
            return None
        whole -= part
    return whole if whole >= 0 else None
