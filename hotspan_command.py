"""The `hotspan` command's first steps.

A module beside the package and not in it: to import any part of the package is to import the package, and a
Ctrl-C in that moment would end the command with a traceback.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a Ctrl-C while it is being imported ends it as a later one does."""
    try:
        from hotspan.cli import main as run  # noqa: PLC0415 - what the `try` is about

        run(prog_name="hotspan")
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT
