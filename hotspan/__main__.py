"""`python -m hotspan`: the same as the `hotspan` command."""

from __future__ import annotations

from hotspan.cli import main

if __name__ == "__main__":
    main(prog_name="hotspan")
