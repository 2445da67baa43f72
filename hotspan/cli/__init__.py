"""The command line: one file per command, loaded when it is called.

A command parses, makes one library call, and renders.  Exit codes: 0 fine, 2 usage or unusable data, 130
after Ctrl-C.  What was asked for goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import click

from hotspan.cli.group import LazyGroup

# name -> one line for `hotspan --help`, in the order of use; the module of the same name has the command.
COMMANDS = {
    "demo": "Run the reference pipelines and print where their time goes.",
    "report": "Print where the time of recorded requests went.",
    "show": "Show one request as a waterfall.",
}


@click.group(
    cls=LazyGroup,
    commands_of="hotspan.cli",
    summaries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="'hotspan COMMAND --help' has examples for every command.",
)
@click.version_option(None, "-V", "--version", package_name="hotspan", message="%(prog)s %(version)s")
def main() -> None:
    """Find where the time of a RAG or agent request goes, from the application through the engine."""


__all__ = ["COMMANDS", "main"]
