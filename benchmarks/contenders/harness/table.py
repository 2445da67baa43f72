"""The table: a line per contender, a column per thing measured, ratios to the OpenTelemetry SDK beside."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from contenders.harness.rows import BASELINE, FLOOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from contenders.harness.environments import Contender
    from contenders.harness.rows import Row

BEGIN: Final = "<!-- overhead: begin -->"
NOTHING: Final = "–"  # noqa: RUF001 - a dash
END: Final = "<!-- overhead: end -->"


@dataclass(slots=True)
class Result:
    """What was measured of one contender.

    Attributes:
        versions: Package -> version.
        rounds: Row -> the figure of each round.
        lost_ratio: Row -> share of the spans that did not arrive, of each round.
        problems: Row, or "" for all of them -> why there is no figure.
        refused: Addresses outside of this machine that it tried to reach.
    """

    versions: dict[str, str] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    lost_ratio: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


def render(
    results: dict[str, Result], contenders: dict[str, Contender], rows: Sequence[Row], header: Iterable[str]
) -> str:
    """Return the table and its notes as Markdown."""
    rows = [row for row in rows if any(result.rounds.get(row.key) for result in results.values())]
    notes = _Notes()
    lines = [
        "| | " + " | ".join(f"{row.title}, {row.unit}" for row in rows) + " |",
        "| --- |" + " ---: |" * len(rows),
    ]
    for key, result in results.items():
        cells = [_cell(row, key, results, contenders[key], notes) for row in rows]
        lines.append(f"| {_name(contenders[key], result)} | " + " | ".join(cells) + " |")
    lines.append("| *goal of Hotspan* | " + " | ".join(row.goal for row in rows) + " |")
    lines += ["", *header, ""]
    lines += [f"{number}. {text}" for text, number in notes.numbers.items()]
    lines += _problems(results, contenders)
    return "\n".join(lines).rstrip() + "\n"


class _Notes:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def mark(self, text: str | None) -> str:
        if not text:
            return ""
        return f" <sup>{self.numbers.setdefault(text, len(self.numbers) + 1)}</sup>"


def _name(contender: Contender, result: Result) -> str:
    version = "" if contender.key == FLOOR else next(iter(result.versions.values()), "")
    return f"{contender.title} {version}".strip()


def _cell(row: Row, key: str, results: dict[str, Result], contender: Contender, notes: _Notes) -> str:
    value = median(results[key], row.key, results)
    if value is None:
        return NOTHING
    baseline = median(results[BASELINE], row.key, results) if BASELINE in results else None
    text = figure(value)
    if key != BASELINE and baseline is not None and value > 0:
        text += f" ({ratio(value / baseline)})"
    if row.target in {"file", "otlp"}:
        lost = statistics.median(results[key].lost_ratio[row.key])
        text += f", {lost:.1%} lost" if lost else ", 0 lost"
    return text + notes.mark(contender.notes.get(row.key))


def median(result: Result, row: str, results: dict[str, Result]) -> float | None:
    """Return the median over the rounds; for the openai client over what the bare client took in each."""
    rounds = result.rounds.get(row)
    if not rounds:
        return None
    if row == "openai":
        bare = results[FLOOR].rounds.get(row, []) if FLOOR in results else []
        if result is not results.get(FLOOR) and bare:
            return statistics.median(a - b for a, b in zip(rounds, bare, strict=False))
    return statistics.median(rounds)


def figure(value: float) -> str:
    """Return a figure with as many digits as it has meaning."""
    n_digits = max(0, 2 - math.floor(math.log10(max(abs(value), 0.01))))
    return f"{value:,.{min(n_digits, 2)}f}"


def ratio(value: float) -> str:
    """Return a ratio as it is said: a part below 1, a multiple from there."""
    return f"1/{figure(1 / value)}" if value < 1 else f"×{figure(value)}"  # noqa: RUF001 - the sign for "times"


def _problems(results: dict[str, Result], contenders: dict[str, Contender]) -> list[str]:
    lines = []
    for key, result in results.items():
        for row, why in result.problems.items():
            lines.append(f"- {contenders[key].title}{f', {row}' if row else ''}: not measured: {why}")
        if result.refused:
            tried = ", ".join(sorted(result.refused))
            lines.append(f"- {contenders[key].title} tried to reach {tried}: refused.")
    return ["", *lines] if lines else []


def write(page: Path, table: str, markers: tuple[str, str] = (BEGIN, END)) -> None:
    """Put the table between its markers in the page.

    Raises:
        ValueError: The page has no markers.
    """
    text = page.read_text()
    before, begin, rest = text.partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not begin or not end:
        msg = f"{page} has no lines {markers[0]} and {markers[1]} to put the table between"
        raise ValueError(msg)
    page.write_text(f"{before}{begin}\n\n{table}\n{end}{after}")
