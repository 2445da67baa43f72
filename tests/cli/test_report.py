"""`hotspan report`."""

from __future__ import annotations

import csv
import gzip
import json

import pytest


def test_the_breakdown_of_a_file(cli, trace_file):
    """Per stage: calls, percentiles, self time, the share of the critical path; on standard output alone."""
    result = cli("report", trace_file)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("run.jsonl · 10 requests · 30 spans, all complete")
    assert lines[1].startswith("Request      p50 550 ms*   p95 955 ms*")
    assert lines[3].split() == ["Stage", "calls", "each", "p50", "p95", "p99", "self", "critical", "path"]
    shares = {line.split()[0]: line.split()[-2] for line in lines[4:] if line.endswith("%")}
    assert (shares["generation"], shares["retrieval"]) == ("80.0", "20.0")


@pytest.mark.parametrize("options", [(), ("--format", "json")])
def test_a_file_without_spans_is_refused(cli, write, options):
    """A valid file that says nothing is no report of zeros, for people and programs alike; `show` agrees."""
    path = write([])
    result = cli("report", *options, path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"No span in {path}" in result.stderr
    assert cli("show", path).exit_code == 2


def test_a_file_that_broke_off_before_its_first_span_says_so(cli, tmp_path):
    """What was wrong with it is known: it is not asked whether anything was recorded."""
    path = tmp_path / "run.pb"
    path.write_bytes(b"\x0a\x40\x0a\x10\x0a")  # 64 bytes were to come, and of the resource in them 16
    result = cli("report", path)
    assert result.exit_code == 2
    assert f"No span in {path}.\n{path}: the end of the file" in result.stderr
    assert "flushed" not in result.stderr


def test_json_is_the_contract(cli, trace_file):
    """`--format json` is one object with the promised keys; times in ms."""
    result = cli("report", "--format", "json", trace_file)
    document = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list(document) == [
        "schema",
        "evidence",
        "request",
        "stages",
        "unattributed",
        "generation",
        "amplification",
        "what_if",
        "findings",
        "tail",
        "telemetry",
    ]
    assert document["schema"] == "hotspan.report/1"
    assert document["evidence"]["files"] == [str(trace_file)]
    assert document["request"]["duration_ms"]["p50"] == 550.0
    shares = [row["critical_path_ratio"] or 0.0 for row in document["stages"]]
    assert sum(shares) + document["unattributed"]["critical_path_ratio"] == pytest.approx(1.0)


def test_several_files_are_one_run(cli, write, spans):
    """The spans of one trace may be spread over files."""
    root, search, chat = spans["request"](7, 100)
    first, second = write([root], name="a.jsonl"), write([search, chat], name="b.jsonl")
    result = cli("report", first, second)
    assert result.stdout.startswith("a.jsonl and 1 more file · 1 request · 3 spans, all complete")


def test_standard_input(process, trace_file):
    """`-` reads standard input, plain or compressed."""
    plain = trace_file.read_bytes()
    for content in (plain, gzip.compress(plain)):
        result = process("report", "-", input=content)
        assert result.returncode == 0, result.stderr
        assert "10 requests · 30 spans" in result.stdout.decode()


def test_wide_prints_names_whole(cli, write, spans):
    """Names are cut in the middle, and whole with `--wide`."""
    name = "a_very_long_stage_of_my_own_" * 8
    path = write(spans["request"](1, 100, retrieval=name))
    assert name not in cli("report", path).stdout
    assert name in cli("report", "--wide", path).stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "no such file", id="missing"),
        pytest.param(b"", None, id="empty"),
        pytest.param(bytes(range(256)) * 40, None, id="binary"),
        pytest.param(b"hello\nworld\n", None, id="text"),
        pytest.param(b'{"a": 1}\n', None, id="other-json"),
    ],
)
def test_a_file_that_cannot_be_used(process, tmp_path, content, says):
    """One sentence that names the file on standard error, exit code 2, nothing on standard output."""
    path = tmp_path / "odd.jsonl"
    if content is not None:
        path.write_bytes(content)
    result = process("report", path)
    error = result.stderr.decode()
    assert result.returncode == 2, error
    assert result.stdout == b""
    assert error.startswith("Error: ")
    assert "odd.jsonl" in error
    assert says is None or says in error
    assert "Traceback" not in error


def test_a_half_written_file_gives_what_was_written(cli, trace_file):
    """The last line of a program that died is missing its end: the rest is reported, and that is said."""
    content = trace_file.read_bytes()
    trace_file.write_bytes(content[:-40])
    result = cli("report", trace_file)
    assert result.exit_code == 0
    assert "9 requests · 27 spans" in result.stdout
    assert "\n! " in result.stdout


def test_a_file_without_requests_is_still_told(cli, write, spans):
    """A part of a trace has stages, and no request to share."""
    path = write(spans["request"](1, 100)[1:])
    result = cli("report", path)
    assert result.exit_code == 0
    assert "no complete request in the file" in result.stdout
    assert "partial trace" in result.stdout


def test_a_special_file_that_cannot_be_read_is_named(process):
    """The system refuses without a name; the message has it, and what to give instead."""
    done = process("report", "/proc/self/mem")

    assert done.returncode == 2
    assert done.stderr.startswith(
        b"Error: /proc/self/mem: cannot be read (Input/output error). Give a trace file"
    )


def test_a_part_of_a_run(cli, trace_file):
    """`--where` keeps what fulfils it, says how much that is and what shares are of; repeated, it narrows."""
    longer = ("--where", "request.duration>500ms")
    requests = cli("report", *longer, trace_file).stdout
    calls = cli("report", *longer, "--where", "stage=generation", trace_file).stdout
    assert "! where request.duration>500ms: 5 of 10 requests; figures are of these requests" in requests
    assert "retrieval" in requests
    assert "shares are of these requests' whole time" in calls.replace("\n  ", " ")
    shares = {line.split("  ")[0]: line.split()[-2] for line in calls.splitlines() if line.endswith("%")}
    assert {
        name: shares.get(name) for name in ("generation", "unattributed", "not selected", "retrieval")
    } == {
        "generation": "80.0",
        "unattributed": "0.0",
        "not selected": "20.0",
        "retrieval": None,
    }


def test_a_part_of_a_run_as_json(cli, trace_file):
    """A program reads the same under `where`."""
    result = cli("report", "--where", "stage=generation", "--format", "json", trace_file)
    document = json.loads(result.stdout)
    assert [row["stage"] for row in document["stages"]] == ["generation"]
    assert document["where"] == {
        "expression": "stage=generation",
        "requests_read": 10,
        "requests_kept": 10,
        "selects_calls": True,
        "not_selected": {"critical_path_ms": 1100.0, "critical_path_ratio": pytest.approx(0.2)},
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(("--where", "stage"), "--where cannot be read", id="no-condition"),
        pytest.param(("--where", "stage=unheard"), "No request of 10 fulfils: stage=unheard", id="nothing"),
        pytest.param(("--where", "stage=retrievel"), "Did you mean retrieval?", id="misspelt-value"),
        pytest.param(("--where", "stge=retrieval"), "Did you mean stage?", id="misspelt-field"),
        pytest.param(("--where", "name=a b"), 'needs quotes: name="a b"', id="blank"),
        pytest.param(
            ("--where", "stage=unheard", "--by", "name"), "No request of 10 fulfils: stage=unheard", id="both"
        ),
        pytest.param(("--by", "unheard"), "no request has such an attribute", id="no-attribute"),
        pytest.param(("--by", "stage"), "every row is a stage already", id="by-stage"),
        pytest.param(("--tail", "100"), "--tail", id="no-tail"),
        pytest.param(("--format", "yaml"), "--format", id="no-format"),
    ],
)
def test_what_cannot_be_asked(cli, trace_file, options, says):
    """One sentence on standard error, exit code 2, nothing on standard output."""
    result = cli("report", *options, trace_file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr


def test_a_breakdown_for_each_value(cli, write, spans):
    """`--by` prints a block a value behind the whole, and has a report of each as JSON."""
    path = write(
        *(
            [spans["span"](n, 1, "answer", (0, 100 * n), hotspan__stage="request", tenant=tenant)]
            for n, tenant in enumerate("ab", start=1)
        )
    )
    text = cli("report", "--by", "tenant", path).stdout
    document = cli("report", "--by", "tenant", "--format", "json", path).stdout
    assert text.index("Request      p50 150 ms") < text.index("\ntenant = a\nRequest      p50 100 ms")
    assert "\ntenant = b\nRequest      p50 200 ms" in text
    by = json.loads(document)["by"]
    assert (by["attribute"], [group["value"] for group in by["groups"]]) == ("tenant", ["a", "b"])
    assert by["groups"][1]["report"]["request"]["duration_ms"]["p50"] == 200.0


def test_clocks_are_adjusted_when_asked(cli, write, spans):
    """Nothing moves by itself; with `--skew-adjust` the shift is said above the figures."""
    root, search, chat = spans["request"](7, 100)
    path = write([root, search, chat])
    document = json.loads(path.read_text("utf-8"))
    far = {"attributes": [{"key": "service.name", "value": {"stringValue": "far"}}]}
    chat |= {key: str(int(chat[key]) + 10**10) for key in ("startTimeUnixNano", "endTimeUnixNano")}
    document["resourceSpans"][0]["scopeSpans"][0]["spans"] = [root, search]
    document["resourceSpans"].append({"resource": far, "scopeSpans": [{"scope": {}, "spans": [chat]}]})
    path.write_text(json.dumps(document), encoding="utf-8")
    plain, adjusted = cli("report", path).stdout, cli("report", "--skew-adjust", path).stdout
    assert "1 late span" in plain
    assert "the clock of far was shifted by -10010.000 ms" in adjusted
    assert "80.0 %" in adjusted


def test_the_slowest_against_all(cli, trace_file):
    """`--tail` adds a table of means: all requests, and those from the percentile on."""
    plain, compared = cli("report", trace_file).stdout, cli("report", "--tail", "80", trace_file).stdout
    assert "Slowest" not in plain
    block = compared[compared.index("Slowest 20 %: 2 requests of 10, from 820 ms") :].splitlines()
    assert block[1].split() == ["mean", "of", "a", "request", "all", "slowest", "of", "all", "of", "slowest"]
    assert block[2].split() == ["request", "550", "ms", "950", "ms"]
    assert block[3].split() == ["generation", "440", "ms", "760", "ms", "80.0", "%", "80.0", "%"]


def test_csv_goes_to_a_program_and_troubles_to_the_reader(cli, write, spans):
    """One row a stage on standard output; what was lost is said on standard error."""
    root, search, chat = spans["request"](7, 100)
    late = spans["span"](7, 4, "log", (50, 150), 1, hotspan__stage="tool")
    result = cli("report", "--format", "csv", write([root, search, chat, late]))
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["stage"] for row in rows] == ["request", "generation", "retrieval", "tool", "unattributed"]
    assert rows[1]["duration_p50_ms"] == "80.0"
    assert "1 late span" in result.stderr


def test_markdown_has_what_the_table_has(cli, trace_file):
    """The same figures as a table of an issue or a pull request."""
    text = cli("report", "--format", "markdown", "--tail", "80", trace_file).stdout
    assert text.startswith("**run.jsonl · 10 requests · 30 spans, all complete**")
    assert "| generation | 10 | 1.00 | 440 ms&#42; |" in text
    assert "| 80.0 % |" in text
    assert "**Slowest 20 %: 2 requests of 10, from 820 ms**" in text
    assert "1. **10 requests are few" in text
