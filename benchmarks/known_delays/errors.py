"""How far what a client recorded is from what the server did.

The truth of a figure is the server's own: from the arrival of the request to the stamps taken just before
each chunk was sent.  So the way to the server and back, tens of microseconds on one machine, is in every
error, the bare client's too; what a client adds is its error less the bare client's.
"""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FIGURES: Final = ("ttfb", "ttft", "tpot", "gaps")
_FEWEST_TOKENS: Final = 2


class Spread(NamedTuple):
    """Median and 99th percentile of absolute errors, ns, over n of them."""

    p50: float
    p99: float
    n: int


def true_account(stamps: Sequence[int]) -> dict[str, Any]:
    """Return the figures of an answer from the server's stamps: arrival, role, token, token, …; all in ns.

    Raises:
        ValueError: There are fewer than two tokens.
    """
    arrived, role, *tokens = stamps
    if len(tokens) < _FEWEST_TOKENS:
        msg = f"an answer of {len(tokens)} tokens has no time between them"
        raise ValueError(msg)
    return {
        "ttfb": role - arrived,
        "ttft": tokens[0] - arrived,
        "tpot": (tokens[-1] - tokens[0]) / (len(tokens) - 1),
        "gaps": [later - earlier for earlier, later in itertools.pairwise(tokens)],
    }


def errors(
    accounts: Mapping[str, Mapping[str, Any]], truth: Mapping[str, Sequence[int]]
) -> dict[str, list[float]]:
    """Return figure -> recorded less true, ns, over all calls that count; gaps one by one.

    A call of which a client recorded no such figure, or another number of gaps, has no error there: see
    `missing_ratio`.
    """
    found: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for model in counted(truth):
        recorded, true = accounts.get(model, {}), true_account(truth[model])
        for figure in FIGURES:
            value = recorded.get(figure)
            if figure != "gaps" and value is not None:
                found[figure].append(value - true[figure])
            elif value is not None and len(value) == len(true["gaps"]):
                found["gaps"] += [mine - its for mine, its in zip(value, true["gaps"], strict=True)]
    return found


def counted(truth: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the models of the calls that count: those that warmed up do not."""
    return [model for model in truth if "-warm-" not in model]


def missing_ratio(
    accounts: Mapping[str, Mapping[str, Any]], truth: Mapping[str, Sequence[int]], figure: str
) -> float:
    """Return the share of calls of which this figure was not recorded."""
    models = counted(truth)
    n_known = sum(accounts.get(model, {}).get(figure) is not None for model in models)
    return 1 - n_known / len(models) if models else 0.0


def spread(values: Iterable[float]) -> Spread | None:
    """Return median and 99th percentile of the absolute values, by linear interpolation; None of none."""
    ordered = sorted(abs(value) for value in values)
    if not ordered:
        return None
    return Spread(percentile(ordered, 0.5), percentile(ordered, 0.99), len(ordered))


def percentile(ordered: Sequence[float], ratio: float) -> float:
    """Return the percentile of sorted values by linear interpolation (Hyndman-Fan 7)."""
    at = ratio * (len(ordered) - 1)
    below, above = math.floor(at), math.ceil(at)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def over_rounds(rounds: Sequence[Spread]) -> Spread | None:
    """Return the median over the rounds of each percentile, and the number of errors in all of them."""
    if not rounds:
        return None
    return Spread(
        statistics.median(each.p50 for each in rounds),
        statistics.median(each.p99 for each in rounds),
        sum(each.n for each in rounds),
    )


def above(rounds: Sequence[Spread], bare: Sequence[Spread]) -> Spread | None:
    """Return the median over the rounds of each percentile less the bare client's of the same round."""
    pairs = list(zip(rounds, bare, strict=False))
    return over_rounds([Spread(mine.p50 - its.p50, mine.p99 - its.p99, mine.n) for mine, its in pairs])
