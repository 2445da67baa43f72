"""What the reader's screen can show: its width, its characters, its colours.

Renderers ask a `Screen`, never a stream: the same report and the same screen give the same text.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TextIO, cast

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from hotspan.exporters.reports import names, widths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ColourSystem = Literal["standard", "256", "truecolor"]

DEFAULT_WIDTH: Final = 80  # of a pipe, a file, and a terminal that does not say
_NARROWEST, _WIDEST = 20, 400
_WHOLE_NAMES: Final = 4000  # cells of a line when names are not to be cut
_PROBE: Final = "\N{EN DASH}…·→µ█▌─"  # an encoding that holds these holds everything that we draw with


@dataclass(frozen=True, slots=True)
class Screen:
    """The abilities of one output."""

    width: int = DEFAULT_WIDTH  # terminal cells
    encoding: str = "utf-8"
    draws: bool = False  # a terminal: bars and waterfalls are drawn
    colour: ColourSystem | None = None
    wide: bool = False  # names are printed whole, and lines as long as that takes

    @classmethod
    def of(cls, stream: TextIO, *, wide: bool = False, environ: Mapping[str, str] = os.environ) -> Screen:
        """Return what a stream can show; `NO_COLOR`, `COLUMNS` and `TERM` are respected."""
        probe = Console(file=stream, width=DEFAULT_WIDTH, height=25)  # its own reading of COLUMNS can fail
        return cls(
            width=_width(stream, environ),
            encoding=_encoding(stream, environ),
            draws=probe.is_terminal,
            colour=None if environ.get("NO_COLOR") else cast("ColourSystem | None", probe.color_system),
            wide=wide,
        )

    @property
    def has_symbols(self) -> bool:
        """Whether the encoding holds the symbols of a report; without them it is plain ASCII."""
        return names.encodable(_PROBE, self.encoding) == _PROBE

    def text(self, text: str) -> str:
        """Return any text so that it can be printed here: no control characters, nothing unencodable."""
        encoding = self.encoding if self.has_symbols else "ascii"
        return names.encodable(names.printable(text), encoding)

    def name(self, name: str, width: int) -> str:
        """Return a name from a trace, printable and cut in the middle to a number of cells."""
        shown = self.text(name) or names.UNNAMED
        return shown if self.wide else widths.cut(shown, width, "…" if self.has_symbols else "..")

    def bar(self, ratio: float, width: int) -> str:
        """Return a bar of at most `width` cells for a ratio in [0, 1]; at least a sliver when it is not 0."""
        if not self.has_symbols:
            return "#" * min(width, max(round(ratio * width), 1 if ratio > 0 else 0))
        eighths = min(8 * width, max(round(8 * ratio * width), 1 if ratio > 0 else 0))
        return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()

    def print(self, parts: Iterable[RenderableType]) -> str:
        """Return the parts as this screen shows them, one below the other, every line ended."""
        buffer = io.StringIO()
        console = self._console(buffer)
        for part in parts:
            console.print(part, soft_wrap=self.wide)
        # What does not fit rich cuts with an ellipsis of its own.
        text = buffer.getvalue() if self.has_symbols else buffer.getvalue().replace("…", ".")
        lines = text.removesuffix("\n").split("\n")
        return "".join(f"{line.rstrip(' ')}\n" for line in lines)

    def measure(self, part: RenderableType) -> int:
        """Return how many cells the part would like to have."""
        return self._console(io.StringIO()).measure(part).maximum

    def _console(self, file: io.StringIO) -> Console:
        return Console(
            file=file,
            width=_WHOLE_NAMES if self.wide else self.width,
            height=25,  # rich ignores the width of a dumb terminal unless it has the height too
            force_terminal=self.colour is not None,
            color_system=self.colour,
            no_color=self.colour is None,
            legacy_windows=False,
            force_jupyter=False,
            markup=False,
            highlight=False,
            emoji=False,
        )


def hanging(bullet: str, text: str, style: str = "") -> Table:
    """Return a paragraph behind a bullet, its lines aligned; further rows may be added."""
    grid = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    grid.add_row(Text(bullet, style), Text(text, style))
    return grid


def _width(stream: TextIO, environ: Mapping[str, str]) -> int:
    columns = environ.get("COLUMNS", "")[:9]
    width = int(columns) if columns.isascii() and columns.isdigit() else 0
    return max(_NARROWEST, min(width or _terminal_width(stream) or DEFAULT_WIDTH, _WIDEST))


def _terminal_width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # no terminal, or no file at all
        return 0


def _encoding(stream: TextIO, environ: Mapping[str, str]) -> str:
    # Under LC_ALL=C Python writes UTF-8 all the same (PEP 540).  Whoever sets it asked for ASCII.
    asked = environ.get("PYTHONIOENCODING") or environ.get("PYTHONUTF8")
    if environ.get("LC_ALL") in ("C", "POSIX") and not asked:
        return "ascii"
    return getattr(stream, "encoding", None) or "utf-8"
