"""Output encodings that cannot hold what is printed: cp1252, latin-1, ASCII, the C locale.

Seen as UnicodeEncodeError, sometimes after minutes of work: repowise-dev/repowise#271, ffroliva/gflow-cli#82,
Textualize/rich#2411, Rockhopper-Technologies/enlighten#13.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

STAGE = "检索→排序"
SPAN = {
    "traceId": f"{1:032x}",
    "spanId": f"{1:016x}",
    "name": "回答",
    "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000000250000000",
    "attributes": [{"key": "hotspan.stage", "value": {"stringValue": "request"}}],
}
CHILD = SPAN | {
    "spanId": f"{2:016x}",
    "parentSpanId": f"{1:016x}",
    "name": "查找",
    "attributes": [{"key": "hotspan.stage", "value": {"stringValue": STAGE}}],
}


@pytest.fixture
def run(tmp_path):
    """Run a command on a file whose names are Chinese, output piped, in a bare environment."""
    path = tmp_path / "运行.jsonl"
    path.write_text(
        json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN, CHILD]}]}]}), encoding="utf-8"
    )

    def run(command, *options, **environ):
        environ = {"PATH": os.environ["PATH"]} | environ
        argv = [sys.executable, "-m", "hotspan", command, *options, os.fspath(path)]
        return subprocess.run(argv, capture_output=True, check=False, env=environ)

    return run


@pytest.mark.parametrize("command", ["report", "show"])
@pytest.mark.parametrize(
    ("environ", "encoding"),
    [
        pytest.param({"PYTHONIOENCODING": "ascii"}, "ascii", id="ascii"),
        pytest.param({"PYTHONIOENCODING": "latin-1"}, "latin-1", id="latin-1"),
        pytest.param({"PYTHONIOENCODING": "cp1252"}, "cp1252", id="cp1252"),
        pytest.param({"LC_ALL": "C"}, "ascii", id="c-locale"),
        pytest.param({"LC_ALL": "POSIX"}, "ascii", id="posix-locale"),
        pytest.param({"LC_ALL": "C.UTF-8"}, "utf-8", id="utf-8"),
    ],
)
def test_any_encoding_can_print_it(run, command, environ, encoding):
    """The whole result is printed, in ASCII where there is nothing better; exit code 0."""
    result = run(command, **environ)
    text = result.stdout.decode(encoding)
    assert (result.returncode, result.stderr) == (0, b"")
    if encoding == "utf-8":
        assert STAGE in text
    else:
        assert text.isascii()
        assert r"\u68c0" in text
        assert "250 ms" in text


@pytest.mark.parametrize("output_format", ["csv", "markdown"])
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_every_format_can_be_printed(run, output_format, encoding):
    """Names are escaped where they must be, symbols become letters; exit code 0."""
    result = run("report", "--format", output_format, PYTHONIOENCODING=encoding)
    text = result.stdout.decode(encoding)
    assert (result.returncode, result.stderr) == (0, b"")
    assert (STAGE in text) is (encoding == "utf-8")
    assert (r"\u68c0\u7d22->\u6392\u5e8f" in text) is (encoding != "utf-8")


@pytest.mark.parametrize("command", ["report", "show"])
def test_json_is_the_same_in_every_encoding(run, command):
    """A machine's format does not depend on the terminal."""
    outputs = {
        run(command, "--format", "json", **environ).stdout
        for environ in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"})
    }
    assert len(outputs) == 1
    assert STAGE in {
        span.get("stage")
        for span in json.loads(outputs.pop()).get("spans" if command == "show" else "stages")
    }
