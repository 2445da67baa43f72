"""What a screen can show is asked once, from the stream and the environment."""

from __future__ import annotations

import io

import pytest

from hotspan.exporters.reports.screen import Screen


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self):
        """Say so."""
        return True


@pytest.fixture
def environ(monkeypatch):
    """An environment in which nothing speaks of terminals, unless the test says so."""
    for name in (
        "COLUMNS",
        "NO_COLOR",
        "FORCE_COLOR",
        "TTY_COMPATIBLE",
        "LC_ALL",
        "PYTHONIOENCODING",
        "PYTHONUTF8",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return monkeypatch


@pytest.mark.parametrize(
    ("columns", "width"),
    [
        pytest.param(None, 80, id="unset"),
        pytest.param("132", 132, id="set"),
        pytest.param("0", 80, id="zero-says-nothing"),
        pytest.param("-5", 80, id="negative"),
        pytest.param("wide", 80, id="no-number"),
        pytest.param("²", 80, id="a-digit-that-is-none"),
        pytest.param("3", 20, id="too-narrow-for-anything"),
        pytest.param("9" * 400, 400, id="absurd"),
    ],
)
def test_columns_decides_the_width_of_a_pipe(environ, columns, width):
    """COLUMNS counts where it is a sensible number; a pipe has 80 cells otherwise."""
    if columns is not None:
        environ.setenv("COLUMNS", columns)
    assert Screen.of(io.StringIO()).width == width


@pytest.mark.parametrize(
    ("variables", "has_colour"),
    [
        pytest.param({}, True, id="terminal"),
        pytest.param({"NO_COLOR": "1"}, False, id="no-color"),
        pytest.param({"NO_COLOR": ""}, True, id="empty-no-color-says-nothing"),
        pytest.param({"TERM": "dumb"}, False, id="dumb"),
    ],
)
def test_colour_is_for_terminals_that_want_it(environ, variables, has_colour):
    """NO_COLOR and TERM=dumb are respected; a pipe never gets colour."""
    for name, value in variables.items():
        environ.setenv(name, value)
    assert (Screen.of(Terminal()).colour is not None) is has_colour
    assert Screen.of(io.StringIO()).colour is None


def test_a_dumb_terminal_keeps_the_asked_width(environ):
    """TERM=dumb says nothing about the width."""
    environ.setenv("TERM", "dumb")
    environ.setenv("COLUMNS", "40")
    screen = Screen.of(Terminal())
    assert screen.width == 40
    assert all(len(line) <= 40 for line in screen.print(["word " * 40]).splitlines())


@pytest.mark.parametrize(
    ("encoding", "variables", "has_symbols"),
    [
        pytest.param("utf-8", {}, True, id="utf-8"),
        pytest.param("latin-1", {}, False, id="latin-1"),
        pytest.param("cp1252", {}, False, id="cp1252"),
        pytest.param("utf-8", {"LC_ALL": "C"}, False, id="c-locale-asks-for-ascii"),
        pytest.param(
            "utf-8", {"LC_ALL": "C", "PYTHONIOENCODING": "utf-8"}, True, id="unless-utf-8-is-asked-for"
        ),
    ],
)
def test_symbols_are_for_encodings_that_hold_them(environ, encoding, variables, has_symbols):
    """Without the block characters a report is plain ASCII."""
    for name, value in variables.items():
        environ.setenv(name, value)
    assert Screen.of(Terminal(encoding)).has_symbols is has_symbols


def test_bars_grow_by_eighths_of_a_cell():
    """A bar is as long as its ratio, and a ratio that is not 0 is seen."""
    screen = Screen(draws=True)
    assert [screen.bar(ratio, 4) for ratio in (0.0, 0.001, 0.5, 0.78125, 1.0)] == [
        "",
        "▏",
        "██",
        "███▏",
        "████",
    ]
    assert [Screen(encoding="ascii").bar(ratio, 4) for ratio in (0.0, 0.001, 0.5, 1.0)] == [
        "",
        "#",
        "##",
        "####",
    ]
