"""The table of errors: a line per client and number of streams, median and 99th percentile of each error."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from known_delays.errors import FIGURES, above, over_rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from known_delays.errors import Spread

BEGIN: Final = "<!-- accuracy: begin -->"
END: Final = "<!-- accuracy: end -->"
NOTHING: Final = "–"  # noqa: RUF001 - a dash

# Kind of client -> what the table calls it, and the bare client that does the same.
CLIENTS: Final = {
    "httpx": ("httpx, blocking", None),
    "httpx-async": ("httpx", None),
    "bare-openai": ("openai, blocking", None),
    "bare-openai-async": ("openai", None),
    "llm": ("LLMClient", "httpx"),
    "llm-async": ("AsyncLLMClient", "httpx-async"),
    "openai": ("openai, blocking", "bare-openai"),
    "openai-async": ("openai", "bare-openai-async"),
}
TITLES: Final = {"ttfb": "TTFB", "ttft": "TTFT", "tpot": "TPOT", "gaps": "chunk gaps"}
_NS_PER_MS: Final = 1e6


class Row(NamedTuple):
    """One line of the table."""

    contender: str
    kind: str
    n_streams: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What one round found of one row.

    Attributes:
        errors: Figure -> its absolute errors.
        missing_ratio: Figure -> share of the calls of which it was not recorded.
        cpu_us: CPU time of the client's process per token.
    """

    errors: Mapping[str, Spread]
    missing_ratio: Mapping[str, float]
    cpu_us: float


def render(
    readings: Mapping[Row, Sequence[Reading]],
    titles: Mapping[str, str],
    streams: Sequence[int],
    header: Iterable[str],
) -> str:
    """Return the tables, one for each number of streams, and what they were measured on, as Markdown."""
    lines: list[str] = []
    for n_streams in streams:
        head = [f"{n_streams} streams" if n_streams > 1 else "1 stream", "client"]
        head += [f"{TITLES[figure]}, p50 / p99, ms" for figure in FIGURES] + ["CPU, µs/token"]
        lines += [f"| {' | '.join(head)} |", f"| --- | --- |{' ---: |' * (len(FIGURES) + 1)}"]
        shown = [row for row in readings if row.n_streams == n_streams]
        lines += [_line(row, readings, titles) for row in sorted(shown, key=_place(titles))]
        lines.append("")
    return "\n".join([*lines, *header]).rstrip() + "\n"


def _place(titles: Mapping[str, str]) -> Callable[[Row], tuple[int, int]]:
    contenders, kinds = list(titles), list(CLIENTS)
    return lambda row: (contenders.index(row.contender), kinds.index(row.kind))


def _line(row: Row, readings: Mapping[Row, Sequence[Reading]], titles: Mapping[str, str]) -> str:
    found = readings[row]
    client, bare_kind = CLIENTS[row.kind]
    bare = [] if bare_kind is None else readings.get(Row("floor", bare_kind, row.n_streams), [])
    title = "*bare*" if row.contender == "floor" else titles[row.contender]
    cells = [title, client, *(cell(figure, found, bare) for figure in FIGURES)]
    cells.append(f"{statistics.median(reading.cpu_us for reading in found):.0f}")
    return f"| {' | '.join(cells)} |"


def cell(figure: str, found: Sequence[Reading], bare: Sequence[Reading]) -> str:
    """Return the errors of one figure, and in brackets what they are above the bare client's.

    A figure that was not recorded of every call says so.
    """
    own = over_rounds(_of(figure, found))
    if own is None:
        return NOTHING
    text = f"{_ms(own.p50)} / {_ms(own.p99)}"
    extra = above(_of(figure, found), _of(figure, bare))
    if extra is not None:
        text += f" ({_ms(extra.p50, signed=True)} / {_ms(extra.p99, signed=True)})"
    missing = statistics.mean(reading.missing_ratio[figure] for reading in found)
    return f"{text}, {missing:.0%} missing" if missing else text


def _of(figure: str, readings: Sequence[Reading]) -> list[Any]:
    return [reading.errors[figure] for reading in readings if figure in reading.errors]


def _ms(value_ns: float, *, signed: bool = False) -> str:
    text = f"{value_ns / _NS_PER_MS:{'+' if signed else ''}.{2 if abs(value_ns) < 10 * _NS_PER_MS else 0}f}"
    return text.replace("-", "−")  # noqa: RUF001 - a minus
