"""Hostile and broken files: spans, or a sentence; never a traceback, or figures from nonsense."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import dialect_files as files
import pytest

from hotspan.analysis import analyse, load
from hotspan.analysis.readers import values
from hotspan.analysis.readers.formats import items
from hotspan.analysis.readers.source import Source
from hotspan.tracer.errors import TraceFileError, UnusableTraceError

TRACE = files.TRACE


def _jaeger(tmp_path, spans):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"data": [{"traceID": TRACE, "spans": spans, "processes": {}}]}))
    return path


def _span(number, parent=None, **more):
    reference = {"refType": "CHILD_OF", "traceID": TRACE, "spanID": f"{parent:x}"} if parent else None
    span = {
        "spanID": f"{number:x}",
        "operationName": "work",
        "startTime": files.START_US,
        "duration": 1000,
        "references": [reference] if parent else [],
    }
    return span | more


@pytest.mark.parametrize(
    ("parent_of", "n_cycles"),
    [
        pytest.param(lambda n: n - 1, 0, id="a-chain"),
        pytest.param(lambda n: 1 if n > 1 else 0, 0, id="siblings"),
        pytest.param(lambda n: n - 1 or 20_000, 1, id="a-cycle"),
        pytest.param(lambda n: n, 20_000, id="each-its-own-parent"),
    ],
)
def test_trees_of_any_shape_are_read_and_analysed(tmp_path, parent_of, n_cycles):
    """Tens of thousands of spans, deep, broad or in circles: every one is counted once."""
    path = _jaeger(tmp_path, [_span(n, parent_of(n)) for n in range(1, 20_001)])

    report = analyse(load(path))

    assert report.evidence.n_spans == 20_000
    assert report.evidence.n_cycles_cut == n_cycles


@pytest.mark.parametrize("n_documents", [1, 30])
def test_objects_of_many_megabytes_over_many_lines_are_read(tmp_path, n_documents):
    """One that takes many reads, behind others that do, with a long member before the array."""
    tag = {"key": "prompt", "type": "string", "value": "x" * 20_000}
    trace = {"traceID": TRACE, "spans": [_span(n, tags=[tag]) for n in range(1, 301)], "processes": {}}
    answer = {"note": "y" * 5_000_000, "data": [trace] * n_documents}
    (tmp_path / "t.json").write_text(json.dumps(answer, indent=1))

    n_spans = sum(1 for _ in items(Source(tmp_path / "t.json"), pytest.fail))

    assert n_spans == 300 * n_documents


def test_a_huge_attribute_is_read(tmp_path):
    """Megabytes in one value, in JSON in JSON."""
    tag = {"key": "prompt", "type": "string", "value": json.dumps(["x" * 1000] * 5000)}

    (trace,) = load(_jaeger(tmp_path, [_span(1, tags=[tag])]))

    assert len(trace.spans[0].attributes["prompt"]) > 5_000_000


@pytest.mark.parametrize("name", files.FILES)
def test_a_file_that_is_cut_anywhere_is_read_to_there_or_refused(tmp_path, name):
    """A killed writer: what was whole is kept and the rest is said, or nothing was whole and that is said."""
    text = files.FILES[name][0]().encode()
    path = tmp_path / "t"
    for cut in range(1, len(text) - 2, len(text) // 25):
        path.write_bytes(text[:cut])
        reader = load(path)
        try:
            n_spans = sum(map(len, reader))
        except TraceFileError as exc:
            assert str(exc).startswith(str(path))  # noqa: PT017 - it may, but need not be raised
        else:
            assert 0 < n_spans <= 3


WRONG = [None, True, -1, 1.5, 1e300, float("nan"), float("inf"), "", "x", "\ud800", [], [[]], {}, {"a": [1]}]


@pytest.mark.parametrize("name", files.FILES)
def test_wrong_types_in_any_place_are_spans_or_a_sentence(tmp_path, name):
    """Each value of each object, one after the other, replaced by each kind of nonsense."""
    text = files.FILES[name][0]()
    if name == "console":
        text = text[text.index("{") : text.index("\nGET")]
    documents = [json.loads(line) for line in text.splitlines()] if name in LINES else [json.loads(text)]
    path = tmp_path / "t"
    for place in _places(documents[0]):
        for wrong in WRONG:
            changed = _changed(documents[0], place, wrong)
            path.write_text("\n".join(map(json.dumps, [changed, *documents[1:]])))
            try:
                analyse(load(path))
            except (TraceFileError, UnusableTraceError) as exc:
                assert str(exc).startswith(str(path))  # noqa: PT017 - it may, but need not be raised


LINES = {"jaeger-spans", "phoenix-frame-lines", "langsmith-lines", "nat"}


def _places(value, path=()):
    """Return the path of every value of a document, of an array's those of the first element."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else list(enumerate(value))[:1]
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def _changed(value, path, wrong):
    if not path:
        return wrong
    copy = value.copy()
    copy[path[0]] = _changed(value[path[0]], path[1:], wrong)
    return copy


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        pytest.param(1, None, id="microseconds-as-they-should-be"),
        pytest.param(1 / 1000, "as microseconds", id="milliseconds"),
        pytest.param(1 / 1_000_000, "as milliseconds", id="seconds"),
        pytest.param(1e-9, "as seconds", id="seconds-as-nanoseconds"),
        pytest.param(1000, "would be the year", id="nanoseconds"),
    ],
)
def test_a_unit_that_is_off_by_a_thousand_is_said(tmp_path, factor, said):
    """Too small: kept and said once, as a machine's own clock gives such times too.  Too large: left out."""
    spans = [_span(n, startTime=int(files.START_US * factor)) for n in range(1, 30)]
    reader = load(_jaeger(tmp_path, spans))

    with pytest.raises(UnusableTraceError) if factor > 1 else nullcontext():
        assert sum(len(trace.spans) for trace in reader) == 29

    assert reader.evidence.n_refused_spans == (29 if factor > 1 else 0)
    assert [said in warning for warning in reader.evidence.warnings[:1]] == ([True] if said else [])
    assert len(reader.evidence.warnings) == (5 if factor > 1 else 1 if said else 0)


@pytest.mark.parametrize(
    ("value", "unit_ns", "expected"),
    [
        pytest.param(1.79e18, values.NANOSECONDS, 1_790_000_000_000_000_000, id="float-nanoseconds"),
        pytest.param(1790000000.123456, values.SECONDS, 1_790_000_000_123_456_000, id="float-seconds"),
        pytest.param("1790000000123", values.MILLISECONDS, 1_790_000_000_123_000_000, id="digits"),
        pytest.param("2026-09-21T22:13:20.123456789Z", 1, 1_790_028_800_123_456_789, id="nanoseconds-in-iso"),
        pytest.param("2026-09-22 00:13:20+02:00", 1, 1_790_028_800_000_000_000, id="another-zone"),
        pytest.param("2026-09-21T22:13:20", 1, 1_790_028_800_000_000_000, id="no-zone-is-utc"),
        pytest.param(None, 1, None, id="none"),
        pytest.param(float("nan"), 1, None, id="nan-as-frames-have-it"),
        pytest.param("", 1, None, id="empty"),
    ],
)
def test_times_of_every_spelling(value, unit_ns, expected):
    """Exact to what the text says: digits are never lost to a float."""
    assert values.time_ns(value, unit_ns) == expected


@pytest.mark.parametrize("value", [True, [], {}, "yesterday", "9" * 40, 1e30, "1e999999999", 10**4000])
def test_what_is_no_time_is_a_sentence(value):
    """Never a number that was meant otherwise, and never hours of arithmetic."""
    with pytest.raises(ValueError, match="a time of"):
        values.time_ns(value, values.MICROSECONDS)


def test_files_of_a_directory_are_read_and_what_is_none_is_passed_over(tmp_path):
    """Sorted, below it too, hidden ones left out; a note and a picture are said and cost nothing."""
    (tmp_path / "run" / "more").mkdir(parents=True)
    (tmp_path / "run" / "a.json").write_text(files.FILES["jaeger-api"][0]())
    (tmp_path / "run" / "more" / "b.txt").write_text(files.FILES["nat"][0]())
    (tmp_path / "run" / "README").write_text("What was measured.")
    (tmp_path / "run" / "plot.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "run" / ".hidden.json").write_text("{")

    reader = load(tmp_path / "run")

    assert [len(trace) for trace in reader] == [3, 3]
    assert [name.removeprefix(str(tmp_path)) for name in reader.evidence.files] == [
        "/run/README",
        "/run/a.json",
        "/run/plot.png",
        "/run/more/b.txt",
    ]
    assert sum("The file was passed over" in warning for warning in reader.evidence.warnings) == 2
    assert not any("it begins with" in warning for warning in reader.evidence.warnings)


def test_a_directory_of_nothing_but_other_files_is_refused(tmp_path):
    """Never an empty report."""
    (tmp_path / "README").write_text("What was measured.")

    with pytest.raises(TraceFileError, match="README:1: is not JSON"):
        list(load(tmp_path))


def _line(number):
    span = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": "work",
        "startTimeUnixNano": files.START_US * 1000,
        "endTimeUnixNano": files.START_US * 1000 + 5,
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode() + b"\n"


_HOLE = b"\0" * 4096


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_line(1) + _HOLE + b"\n" + _line(2), id="a-hole-of-nuls"),
        pytest.param(_line(1) + _HOLE + _line(2), id="a-hole-before-a-line"),
        pytest.param(_line(1) + _line(2) + _HOLE, id="nuls-at-the-end"),
        pytest.param(_line(1) + _line(2)[:-1] + _HOLE, id="nuls-behind-a-line"),
        pytest.param(_HOLE + _line(1) + _line(2), id="nuls-at-the-start"),
        pytest.param(_HOLE + b"\n" + _line(1) + _line(2), id="a-first-line-of-nuls"),
        pytest.param(b"\xff\xfe\x80 garbage\n" + _line(1) + _line(2), id="a-first-line-of-garbage"),
        pytest.param(_line(1) + b"\xff\xfe\x80\n" + _line(2), id="a-second-line-of-garbage"),
        pytest.param(_line(1)[:100] + _HOLE + b"\n" + _line(1) + _line(2), id="a-line-that-ends-in-nuls"),
        pytest.param(
            json.dumps(json.loads(_line(1)), indent=1).encode()
            + _HOLE
            + json.dumps(json.loads(_line(2)), indent=1).encode(),
            id="between-objects-of-many-lines",
        ),
    ],
)
def test_damaged_bytes_cost_their_line_only(tmp_path, data):
    """NULs, as a loss of power leaves them, and bytes of no text, wherever they lie, are said."""
    (tmp_path / "t.jsonl").write_bytes(data)

    reader = load(tmp_path / "t.jsonl")

    assert sorted(span.span_id for trace in reader for span in trace.spans) == [f"{1:016x}", f"{2:016x}"]
    assert len(reader.evidence.warnings) in {1, 2}  # the bytes, and the line that they broke off


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_line_that_is_too_long_costs_itself_only(tmp_path, n_before):
    """Be it the first or the second one."""
    path = tmp_path / "t.jsonl"
    huge = _line(9).replace(b'"work"', b'"' + b"x" * (65 << 20) + b'"')
    path.write_bytes(_line(1) * n_before + huge + _line(2) + _line(3))

    reader = load(path)

    found = [span.span_id for trace in reader for span in trace.spans]
    assert found == [f"{number:016x}" for number in (1, 2, 3) if n_before or number > 1]
    (warning,) = reader.evidence.warnings
    assert f":{n_before + 1}: " in warning
    assert "longer than 64 MiB" in warning


def test_what_a_document_without_a_usable_element_begins_with_is_named(tmp_path):
    """Not the file itself: that begins as it should."""
    path = tmp_path / "deep.json"
    path.write_text('{"resourceSpans":' + 20_000 * "[")

    with pytest.raises(
        TraceFileError, match=r":1: is nested too deeply; what stands in its resourceSpans begins"
    ):
        list(load(path))


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full"])
def test_what_has_no_end_and_holds_nothing_is_refused_early(name):
    """A device that gives NUL bytes for ever is told by the first of them."""
    if not Path(name).exists():
        pytest.skip("a device of Linux")

    with pytest.raises(TraceFileError, match=f"^{name}: begins with 65,536 NUL bytes"):
        list(load(name))


def test_a_file_that_begins_with_nul_bytes_is_read_all_the_same(tmp_path):
    """As a loss of power leaves it, however many they are."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(bytes(200_000) + b"\n" + _line(1))
    reader = load(path)

    assert [len(trace) for trace in reader] == [1]
    assert "NUL bytes" in reader.evidence.warnings[0]


def test_standard_input_is_named_once():
    """It cannot be read again: said at once, and not as if the writer had written nothing."""
    with pytest.raises(TraceFileError, match=r"^-: standard input is named more than once.* Name it once\.$"):
        load("-", "-")
