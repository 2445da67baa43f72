"""Options that several commands share, and the form of the examples in their help."""

from __future__ import annotations

import click

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
    help="A table for people, or JSON for programs.",
)
skew_option = click.option(
    "--skew-adjust",
    is_flag=True,
    help="Move spans of other processes into their parents, and say by how much.",
)
wide_option = click.option("--wide", is_flag=True, help="Print names whole, however long the lines get.")


def examples(*pairs: tuple[str, str]) -> str:
    """Return the examples of a command as the end of its help: what to type, and what that does."""
    width = max(len(command) for command, _ in pairs)
    lines = (f"  {command:<{width}}  # {effect}" for command, effect in pairs)
    return "\b\nExamples:\n" + "\n".join(lines)  # \b: click keeps the lines as they are
