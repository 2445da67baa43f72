"""Write docs/cli.md from the commands themselves, so that it cannot say what they do not do.

python docs/generate_cli.py            # writes docs/cli.md
python docs/generate_cli.py --check    # exits with 1 when it is out of date
"""  # noqa: INP001 - a script, not a package

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hotspan.cli import COMMANDS, main

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = Path(__file__).with_name("cli.md")

_TYPES = {"integer range": "number", "float range": "number", "directory": "folder"}

INTRODUCTION = """\
# The command line

<!-- Written by docs/generate_cli.py from the commands themselves.  Edit their help, then run it. -->

| command | does |
| --- | --- |
{table}

Results go to standard output, everything else to standard error.  A bar on standard error shows that work
takes longer than a second, when that is a terminal.

| exit code | means |
| --- | --- |
| 0 | fine; also when the reader of a pipe, such as `head`, has seen enough |
| 2 | misuse, or data that cannot be used: one sentence on standard error says what to do |
| 130 | interrupted by Ctrl-C |

`COLUMNS` sets the width (otherwise the terminal's, 80 in a pipe), `NO_COLOR` and `TERM=dumb` switch colour
off, and an output encoding without the symbols of the tables (`LC_ALL=C`, latin-1, …) gets plain ASCII.
"""

MARKS = """\
## Reading the tables

- Three significant digits, a unit on every figure.  `\N{EN DASH}` was not measured, `~` is an estimate, `*`
  marks a percentile with fewer than 10 samples beyond it.
- A screen that is too narrow loses columns, without a word: self, p99, each, p95 and calls, in this order.
  `--wide` and `COLUMNS` bring them back.
- The shares of the stages and `unattributed` add up to 100.0 % as printed, the phases of `generation` to its
  share, with a `rest` for calls that failed: phases are those of calls that succeeded, in JSON too.  What
  every figure means: [definitions](definitions.md).
- Percents have one decimal.  A share of the table reads the same in findings and in the comparison with the
  slowest; so that the rows add up, it may be a tenth away from the ratio in JSON and CSV.
- What was lost, sampled, selected or repaired, and failures that flatter the percentiles, stand above the
  figures, each line with a `!`.
- With `--where`, shares are of the whole time of the requests that are left; what other calls took in them is
  the row `not selected`.  [The conditions](definitions.md#a-part-of-a-run)
- With `--tail`, means of a request: all of them against the slowest.  With `--by`, a block for each value at
  the end.
- Each line of "What would help" is a [finding](findings.md): the figures for it, one against it, and a next
  step.
- Names are cut in the middle with `…`; `--wide` prints them whole.
"""


def document() -> str:
    """Return the whole page."""
    table = "\n".join(f"| [`hotspan {name}`](#hotspan-{name}) | {text} |" for name, text in COMMANDS.items())
    context = click.Context(main, info_name="hotspan")
    sections = []
    for name in COMMANDS:
        command = main.get_command(context, name)
        if command is not None:
            sections.append("\n".join(_section(command, click.Context(command, context, info_name=name))))
    return "\n".join([INTRODUCTION.format(table=table), *sections, MARKS])


def _section(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## hotspan {command.name}\n"
    yield f"```\nhotspan {command.name} {usage}\n```\n"
    yield f"{inspect.cleandoc(command.help or '')}\n"
    yield from _options(command)
    yield from _examples(command)


def _options(command: click.Command) -> Iterator[str]:
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    if options:
        yield "| option | does |\n| --- | --- |"
        yield from (_option(option) for option in options)
        yield ""


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" {_value(option)}"
    default = f" Default: `{option.default}`." if option.show_default is True else ""
    return f"| {names}{value} | {(option.help or '').replace('|', chr(92) + '|')}{default} |"


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " or ".join(f"`{choice}`" for choice in option.type.choices)
    return f"*{option.metavar or _TYPES.get(option.type.name, option.type.name)}*".lower()


def _examples(command: click.Command) -> Iterator[str]:
    lines = (command.epilog or "").split("Examples:\n")[-1].splitlines()
    if lines:
        yield "```sh"
        yield from (line.removeprefix("  ") for line in lines)
        yield "```\n"


if __name__ == "__main__":
    text = document()
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text else 1)
    TARGET.write_text(text, encoding="utf-8")
