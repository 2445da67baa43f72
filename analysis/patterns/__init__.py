"""What repeats in the calls of the requests, beyond the sums of their stages: what findings rest on.

The results are here, one file each adds one of them up.  They are data, and import nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Run:
    """The runs of one stage and name, or of one stage and several, over all requests.

    Only those that a request waited for.
    """

    stage: str
    names: tuple[str, ...]  # one: runs of calls of this name; more: runs in which the names differ
    n_runs: int
    n_calls: int
    n_longest: int  # calls of the longest run
    total_ns: int  # of all calls in runs
    longest_calls_ns: int  # of each run's longest call: what would be left if they ran at once
    n_requests: int
    n_batches: int  # calls that say they had more than one text


@dataclass(frozen=True, slots=True)
class Repeat:
    """The repeated calls of one stage and name."""

    stage: str
    name: str
    n_known: int  # calls whose input was recorded
    n_repeats: int  # of these, calls with the input and output of one before
    n_same_request: int  # of these, within one request
    repeats_ns: int  # durations of the repeats that requests waited for


@dataclass(frozen=True, slots=True)
class PromptGrowth:
    """The agent runs of three model calls or more whose prompts are counted."""

    n_runs: int
    calls_mean: float  # model calls a run
    first_tokens_p50: float  # prompt of a run's first call
    last_tokens_p50: float  # of its last
    growth_p50: float  # last over first
    # Mean duration of the agents' calls with more prompt tokens than their mean, over that of the others.
    long_prompts_time_ratio: float | None


@dataclass(frozen=True, slots=True)
class Asking:
    """The requests with a model call."""

    n_requests: int
    request_ns: int  # their durations
    path_ns: Mapping[str, int]  # stage -> its time on their critical paths

    def ratio(self, stage: str) -> float | None:
        """Return a stage's share of these requests' time; `None` for one that none of them waited for."""
        ns = self.path_ns.get(stage)
        return ns / self.request_ns if ns and self.request_ns else None


@dataclass(frozen=True, slots=True)
class TokenTime:
    """Time per output token after the first, of the successful calls of which it is known.

    The client's TPOT; where that is not known, what the engine says that it decoded over these tokens.
    """

    p50_ns: float
    n_calls: int
    n_by_engine: int  # of these, the engine's


@dataclass(frozen=True, slots=True)
class DecodeLoad:
    """The third of the calls with the fewest others beside them against the third with the most.

    Of the model that answered most calls.  Concurrency is the mean number of its calls in flight while the
    call ran, itself included.
    """

    n_calls: int
    model: str
    low_concurrency: float  # median of the third
    high_concurrency: float
    low_token_ns: float  # median time per token of the third, as in `TokenTime`
    high_token_ns: float
    rank_correlation: float  # Spearman's, of concurrency and time per token over all the calls
    n_by_engine: int = 0  # of the calls, those whose time per token the engine says


@dataclass(frozen=True, slots=True)
class Stall:
    """The innermost calls of one stage that ran while calls of other stages were open in their process."""

    stage: str
    name: str  # of most of them
    n_calls: int
    n_seen: int  # starts and ends of spans inside their intervals
    n_expected: float  # by the rate at which the open calls' requests start and end spans
    busy_ns: int  # of these calls
    process_ns: int  # from the first start to the last end in their processes


@dataclass(frozen=True, slots=True)
class Strays:
    """Requests that are one call each, where others are more."""

    n_calls: int
    n_inside: int  # of them, those that ran while another request did, from start to end
    n_others: int
    busy_ratio: float  # of the time from the first of the others to the last: one of them was in flight


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns of a run; each is empty or `None` where the run has nothing of the kind."""

    runs: tuple[Run, ...] = ()  # most time first
    repeats: tuple[Repeat, ...] = ()  # most time first
    growth: PromptGrowth | None = None
    asking: Asking | None = None
    token_time: TokenTime | None = None
    decode_load: DecodeLoad | None = None
    stalls: tuple[Stall, ...] = ()
    refusals: Mapping[str, int] = field(default_factory=dict)  # why model calls' attempts failed -> number
    failures: Mapping[str, int] = field(default_factory=dict)  # why model calls failed in the end -> calls
    retried: Mapping[str, int] = field(default_factory=dict)  # of these, those tried again
    strays: Strays | None = None
    overlapped_ns: int = 0  # unattributed time in which a call of the request ran
