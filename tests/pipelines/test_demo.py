"""The demo: what it leaves behind, whole or broken off."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest
from scripted_engine import BROKEN, MODELS, NOT_FOUND, SPOKEN, decision
from servers import Close, ScriptedServer, answer, delta, event, head, message, piece

import hotspan
from hotspan.pipelines.demo import Options, check_file, run

LOOK = decision(("lookup_topic", "lambda"))
WARM_UP = [SPOKEN, LOOK, LOOK]
DIES = [head() + piece(event(delta("It "))), Close()]


@pytest.fixture(autouse=True)
def _tracing_is_left_off():
    yield
    hotspan.configure()


@pytest.fixture
def trace_file(tmp_path):
    """Where the demo writes."""
    return tmp_path / "demo.jsonl"


@pytest.fixture
def said():
    """What the demo told a person; `said.append` is its `say`."""
    return []


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """`hotspan demo`, run once as a user runs it: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-m", "hotspan", "demo", "--questions", "3", "--agent-requests", "1"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.mark.rag
class TestFinished:
    """A whole run on the embedded engine."""

    def test_file_holds_exactly_what_was_asked_for(self, finished):
        """Warm-up and loading are not in it; every request is whole."""
        report = hotspan.analyse(hotspan.load(finished[0] / "hotspan-demo.jsonl")).to_dict()

        assert (report["request"]["n"], report["request"]["errors"]) == (4, 0)
        assert report["evidence"]["partial_traces"] == report["evidence"]["dropped_spans"] == 0
        assert 3 <= report["amplification"]["model_calls"]["max"] <= 10

    def test_every_stage_is_in_the_breakdown(self, finished):
        """All five stages of RAG and those of the agent have their rows, in the file and on the screen."""
        report = hotspan.analyse(hotspan.load(finished[0] / "hotspan-demo.jsonl")).to_dict()

        stages = {row["stage"] for row in report["stages"]}
        expected = {
            "embedding",
            "retrieval",
            "rerank",
            "context_assembly",
            "generation",
            "agent",
            "step",
            "tool",
        }
        assert expected <= stages
        assert all(stage in finished[1].stdout for stage in expected)

    def test_shares_add_up_and_little_is_unattributed(self, finished):
        """Per request: stage shares and the unattributed rest are 100 %, the rest under 5 %."""
        for trace in hotspan.load(finished[0] / "hotspan-demo.jsonl"):
            report = hotspan.analyse([trace]).to_dict()
            shares = [row["critical_path_ratio"] or 0.0 for row in report["stages"]]
            unattributed = report["unattributed"]["critical_path_ratio"]
            assert sum(shares) + unattributed == pytest.approx(1.0, abs=1e-9)
            assert unattributed < 0.05

    def test_it_says_what_it_is(self, finished):
        """Recall, the noise, the file and what to try next are on the screen; progress is beside it."""
        out, err = finished[1].stdout, finished[1].stderr

        assert "recall@5" in out
        assert "random weights" in out
        assert "Wrote hotspan-demo.jsonl" in out
        assert "Asking 3 RAG requests" in err
        assert "Asking" not in out

    def test_the_next_commands_work(self, finished):
        """Each command that it names can be typed as it stands; those that only read are tried."""
        folder, done = finished
        commands = [line.strip() for line in done.stdout.split("Next:")[1].splitlines() if line.strip()]

        assert len(commands) == 3
        for command in commands[:2]:
            tried = subprocess.run(
                shlex.split(command), cwd=folder, capture_output=True, text=True, check=False
            )
            assert tried.returncode == 0, tried.stderr


@pytest.mark.rag
def test_an_engine_that_dies_leaves_what_was_recorded(trace_file, said):
    """The requests before the fault, and the broken one, are in the file that the error names."""
    script = [MODELS, NOT_FOUND, SPOKEN, SPOKEN, DIES, BROKEN]
    with ScriptedServer(script) as server:
        options = Options(trace_file, n_questions=3, n_tasks=0, base_url=server.url)
        with pytest.raises(hotspan.EngineError, match="1 whole request") as caught:
            run(options, said.append)

    report = hotspan.analyse(hotspan.load(trace_file)).to_dict()
    assert str(trace_file) in str(caught.value)
    assert (report["request"]["n"], report["request"]["errors"]) == (2, 1)


@pytest.mark.rag
def test_an_unreachable_collector_is_said_after_the_breakdown(tmp_path):
    """File and breakdown are whole; the exit code and a sentence say that the collector has nothing."""
    with ScriptedServer([MODELS, NOT_FOUND, SPOKEN, SPOKEN]) as server:
        arguments = ["--questions", "1", "--agent-requests", "0", "--base-url", server.url]
        done = subprocess.run(
            [sys.executable, "-m", "hotspan", "demo", *arguments, "--otlp", "http://127.0.0.1:9"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 2
    assert "http://127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Wrote hotspan-demo.jsonl (6 spans)" in done.stdout


@pytest.mark.rag
def test_ctrl_c_leaves_what_was_recorded(trace_file, said):
    """A real SIGINT before the agent requests: one sentence, and the RAG requests are in the file."""

    def say(text):
        said.append(text)
        if "1 agent request" in text:
            signal.raise_signal(signal.SIGINT)

    with ScriptedServer([MODELS, NOT_FOUND, *WARM_UP, SPOKEN]) as server:
        options = Options(trace_file, n_questions=2, n_tasks=1, base_url=server.url)
        with pytest.raises(KeyboardInterrupt):
            run(options, say)

    report = hotspan.analyse(hotspan.load(trace_file)).to_dict()
    assert said[-1].startswith("Interrupted.")
    assert str(trace_file) in said[-1]
    assert report["request"]["n"] == 2


@pytest.mark.rag
def test_a_server_that_ignores_the_schema_is_one_sentence(trace_file, said):
    """What the agent needs and how to go without it; an older file stays, and nobody says it was replaced."""
    trace_file.write_text('{"resourceSpans":[]}\n', encoding="utf-8")
    prose = answer(message("Sure! I would search."))
    with ScriptedServer([MODELS, NOT_FOUND, *[prose] * 4]) as server:
        options = Options(trace_file, n_questions=0, n_tasks=1, base_url=server.url)
        with pytest.raises(hotspan.EngineError, match="--agent-requests 0") as caught:
            run(options, said.append)

    assert "Error" not in str(caught.value)
    assert not any("Replacing" in line for line in said)
    assert trace_file.read_text(encoding="utf-8") == '{"resourceSpans":[]}\n'


@pytest.mark.rag
def test_own_corpus(tmp_path, trace_file, said, monkeypatch):
    """Questions come from the headings of the user's own text; there is no recall without known answers."""
    monkeypatch.setenv("HOTSPAN_CACHE", str(tmp_path / "cache"))
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "cats.md").write_text("# Cats\n\nThey sleep.", encoding="utf-8")
    with ScriptedServer([MODELS, NOT_FOUND, SPOKEN, SPOKEN]) as server:
        options = Options(trace_file, n_questions=1, n_tasks=0, base_url=server.url, corpus=notes)
        outcome = run(options, said.append)

    asked = str(server.requests[-1].json)
    assert (outcome.n_passages, outcome.quality) == (1, None)
    assert "about Cats?" in asked
    assert "They sleep." in asked


@pytest.mark.parametrize("line", ['{"resourceSpans":[]}\n', '{"resourceMetrics":[]}\n'])
def test_an_older_trace_file_may_be_replaced(trace_file, line):
    """An earlier run's file is no obstacle, and stays as it is until the run has something to write."""
    trace_file.write_text(line, encoding="utf-8")

    check_file(trace_file)

    assert trace_file.read_text(encoding="utf-8") == line


def test_no_other_file_is_replaced(trace_file):
    """A file that is no trace is refused and stays as it is."""
    trace_file.write_text(json.dumps({"my": "notes"}), encoding="utf-8")

    with pytest.raises(hotspan.ConfigurationError, match="not a trace file"):
        check_file(trace_file)
    assert trace_file.read_text(encoding="utf-8") == '{"my": "notes"}'


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.parent.rmdir(), id="no-folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(tmp_path, spoil):
    """Said before any model is loaded."""
    file = tmp_path / "runs" / "demo.jsonl"
    file.parent.mkdir()
    spoil(file)

    with pytest.raises(hotspan.ConfigurationError, match="cannot be written") as caught:
        check_file(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--base-url", "http://127.0.0.1:1"], "127.0.0.1:1", id="no-server"),
        pytest.param(["--corpus", "nowhere"], "not a folder", id="no-corpus"),
        pytest.param(["--file", "nowhere/demo.jsonl"], "nowhere/demo.jsonl", id="no-folder-for-the-file"),
        pytest.param(["--otlp", "127.0.0.1:4318"], "http://127.0.0.1:4318", id="otlp-is-no-url"),
        pytest.param(["--questions", "-1"], "-1", id="negative-count"),
        pytest.param(["--base-url", ""], "--base-url is empty", id="unset-variable"),
        pytest.param(["--file", ""], "is a folder", id="empty-file"),
        pytest.param(["--file", "/dev"], "is a folder", id="folder"),
        pytest.param(["--file", "/dev/null"], "no regular file", id="device"),
        pytest.param(["--file", "/dev/stdout"], "no regular file", id="pipe"),
        pytest.param(["--questions", "0", "--agent-requests", "0"], "at least one", id="nothing-to-do"),
        pytest.param(
            ["--engine", "vllm", "--base-url", "http://127.0.0.1:1"], "--base-url", id="two-engines"
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence(tmp_path, arguments, says):
    """Exit code 2, a sentence on standard error, no traceback, nothing on standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "hotspan", "demo", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
