"""docs/cli.md is what the commands say of themselves."""

from __future__ import annotations

import runpy
from pathlib import Path

from hotspan.cli import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date():
    """The page is what `python docs/generate_cli.py` writes; run that after a change of a command."""
    document = runpy.run_path(str(DOCS / "generate_cli.py"))["document"]
    assert document() == (DOCS / "cli.md").read_text(encoding="utf-8")


def test_every_command_has_a_section():
    """Nothing that is listed is left out."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert all(f"\n## hotspan {name}\n" in page for name in COMMANDS)
