"""The documentation does not lie: its code runs, its links lead somewhere, its commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import hotspan

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
# A block that cannot run as it stands says why: `<!-- not run: needs a GPU -->` on the line before it.
BLOCK = re.compile(r"(?P<before>[^\n]*)\n+```(?P<language>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r"<!-- not run: \w.* -->")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def each_page(pages=PAGES):
    """Make one case of each page."""
    return pytest.mark.parametrize(
        "page", [pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in pages]
    )


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the code blocks of a page that are meant to run."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [m["text"] for m in found if m["language"] in languages and not NOT_RUN.search(m["before"])]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading)) for heading in headings]
    return {heading.strip().lower().replace(" ", "-") for heading in plain}


@cache
def help_of(*command: str) -> str:
    """Return what `hotspan … --help` prints; it must be a command."""
    done = subprocess.run(
        [sys.executable, "-m", "hotspan", *command, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@each_page([page for page in PAGES if blocks(page, "python")])
def test_the_code_of_a_page_runs(page, tmp_path):
    """A page's Python blocks are one program, which runs to its end; its tests, where it has some, pass."""
    program = tmp_path / "test_page.py"
    program.write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    is_test = re.search(r"^def test_", program.read_text(encoding="utf-8"), re.MULTILINE)
    runner = ("-m", "pytest", "-q", "-p", "no:cacheprovider") if is_test else ()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HOTSPAN_", "OTEL_", "PYTEST_"))}

    done = subprocess.run(
        [sys.executable, *runner, str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@each_page()
def test_links_lead_to_pages_and_headings_that_exist(page):
    """Every link inside the repository has its file, and every anchor its heading."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)

    assert broken == []


@each_page()
def test_every_command_that_is_typed_exists(page):
    """A `hotspan` command, its options and a `make` target are there to be typed."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for line in "\n".join(blocks(page, "sh", "bash", "console")).splitlines():
        typed = line.partition("#")[0].removeprefix("$ ").split()
        if typed[:1] == ["make"]:
            assert {word for word in typed[1:] if "=" not in word} <= targets, line
        if typed[:1] == ["hotspan"] and len(typed) > 1 and not typed[1].startswith("-"):
            options = {word.partition("=")[0] for word in typed[2:] if word.startswith("--")}
            assert options <= set(re.findall(r"--[a-z-]+", help_of(typed[1]))), line


@each_page()
def test_every_public_name_that_is_written_exists(page):
    """What a page calls `hotspan.something` can be imported, or is an attribute's key in our table."""
    semconv = (ROOT / "tracer" / "semconv.py").read_text(encoding="utf-8")
    code = re.findall(r"`([^`\n]+)`", FENCED.sub("", page.read_text(encoding="utf-8")))
    written = {name for text in code for name in re.findall(r"(?<![\w./-])hotspan\.([A-Za-z_]\w*)", text)}

    unknown = {
        name
        for name in written - set(hotspan.__all__)
        if f'"hotspan.{name}' not in semconv and not (ROOT / name).is_dir() and name not in {"testing", "cli"}
    }
    assert unknown == set()


@each_page()
def test_every_file_that_is_named_exists(page):
    """A path in code quotes, such as `tracer/span.py`, is in the tree."""
    code = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", FENCED.sub("", page.read_text(encoding="utf-8")))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}

    assert [path for path in code if path.partition("/")[0] in folders and not (ROOT / path).exists()] == []
