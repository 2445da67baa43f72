"""`python -m hotspan`: the same as the `hotspan` command."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from hotspan.cli import main

        main(prog_name="hotspan")
    except KeyboardInterrupt:  # while it was imported; later ones are the command line's own
        sys.exit(130)
