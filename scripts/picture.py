"""Draw the README's picture: the breakdown of a trace file, as `hotspan report` prints it, as an SVG.

    hotspan demo
    python scripts/picture.py hotspan-demo.jsonl docs/breakdown.svg

The text is the command's own, colours and all; nothing is typed by hand.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

import hotspan
from hotspan.exporters.reports.console import render
from hotspan.exporters.reports.screen import Screen

WIDTH = 96
FONT = '"SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace'


def picture(file: Path) -> str:
    """Return the SVG of a trace file's report; it needs no network and names no folder of this machine."""
    report = hotspan.analyse(hotspan.load(file))
    text = render(report, Screen(width=WIDTH, draws=True, colour="truecolor"))
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(text))
    svg = console.export_svg(
        title=f"hotspan report {file.name}",
        theme=SVG_EXPORT_THEME,
        unique_id="breakdown",
        font_aspect_ratio=0.602,
    )
    # rich asks a content network for its font; a monospaced font of the reader's own does as well.
    svg = re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", FONT.replace('"', "'")).replace("Fira Code", "monospace")


def main() -> int:
    """Write the picture of one file to another."""
    if len(sys.argv) != 3:  # noqa: PLR2004 - the program and its two arguments
        print(__doc__, file=sys.stderr)
        return 2
    Path(sys.argv[2]).write_text(picture(Path(sys.argv[1])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
