"""Every dialect of JSON gives the same request, and what only some of them say."""

from __future__ import annotations

import gzip
import json

import dialect_files as files
import pytest
from dialect_files import CHAT, ROOT, SEARCH

from hotspan.analysis import analyse, load
from hotspan.tracer import semconv
from hotspan.tracer.errors import TraceFileError

DIALECTS = [pytest.param(name, id=name) for name in files.FILES]
WITHOUT_EVENTS = {"phoenix-traces"}
WITHOUT_OK = {"console", "jaeger-api", "jaeger-page", "jaeger-trace", "jaeger-spans"}


def _spans(tmp_path, name):
    make, _ = files.FILES[name]
    path = tmp_path / "traces"
    path.write_text(make())
    reader = load(path)
    (trace,) = reader
    return trace, {span.span_id: span for span in trace.spans}, reader.evidence


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_gives_the_same_tree_at_the_same_times(tmp_path, name):
    """Whatever ids, units and references the writer has: one trace of three spans, exact to its own unit."""
    trace, spans, _ = _spans(tmp_path, name)
    unit_us = files.FILES[name][1]

    if name != "nat":  # it has no trace ids
        assert trace.trace_id == files.TRACE
    assert {span_id: span.parent_id for span_id, span in spans.items()} == files.PARENTS
    assert {span_id: span.name for span_id, span in spans.items()} == files.NAMES
    for span_id, offsets in files.TIMES_US.items():
        expected = tuple((files.START_US + offset) // unit_us * unit_us * 1000 for offset in offsets)
        assert (spans[span_id].start_ns, spans[span_id].end_ns) == expected


@pytest.mark.parametrize("name", [name for name in files.FILES if name != "nat"])
def test_every_dialect_tells_of_the_failure(tmp_path, name):
    """Status and message of the call that failed, and of no other; the toolkit's steps have no status."""
    _, spans, _ = _spans(tmp_path, name)

    assert spans[CHAT].status == "error"
    assert spans[SEARCH].status == ("unset" if name in WITHOUT_OK else "ok")
    if name != "phoenix-traces":
        assert "no answer" in spans[CHAT].status_message


@pytest.mark.parametrize("name", [name for name in files.FILES if name not in WITHOUT_EVENTS])
def test_every_dialect_tells_of_the_first_chunk(tmp_path, name):
    """The event keeps its time to the microsecond, whatever unit the span's own times have."""
    _, spans, _ = _spans(tmp_path, name)

    (at,) = [event.time_ns for event in spans[CHAT].events if event.name == "new_token"]
    assert at == (files.START_US + files.CHUNK_US) * 1000


@pytest.mark.parametrize("name", DIALECTS)
def test_a_report_is_made_of_every_dialect(tmp_path, name):
    """Compressed and analysed: one request, and not the least complaint but of what is no span."""
    make, _ = files.FILES[name]
    path = tmp_path / "traces.gz"
    path.write_bytes(gzip.compress(make().encode()))

    report = analyse(load(path))

    assert (report.evidence.n_spans, report.evidence.n_traces) == (3, 1)
    assert all("not JSON" in warning for warning in report.evidence.warnings if "traces.gz" in warning)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("phoenix-spans", semconv.OPENINFERENCE_KIND, "LLM"),
        ("phoenix-traces", semconv.OPENINFERENCE_KIND, "LLM"),
        ("phoenix-otlp", semconv.OPENINFERENCE_MODEL, "tiny"),
        ("phoenix-frame", semconv.OPENINFERENCE_MODEL, "tiny"),
        ("phoenix-frame-columns", semconv.OPENINFERENCE_MODEL, "tiny"),
        ("mlflow-traces", semconv.MLFLOW_TYPE, '"LLM"'),
        ("langsmith-lines", semconv.LANGSMITH_KIND, "llm"),
        ("langsmith-lines", semconv.REQUEST_MODEL, "tiny"),
        ("langsmith-lines", semconv.INPUT_TOKENS, 12),
        ("nat", semconv.NAT_KIND, "LLM"),
        ("nat", semconv.OPENINFERENCE_INPUT_TOKENS, 12),
    ],
)
def test_the_kind_the_model_and_the_tokens_have_the_names_of_opentelemetry_exports(
    tmp_path, name, key, value
):
    """What tells the stage of a span is where an OTLP export of the same tool has it."""
    _, spans, _ = _spans(tmp_path, name)

    assert spans[CHAT].attributes[key] == value


@pytest.mark.parametrize("name", ["jaeger-api", "mlflow-traces", "console"])
def test_the_service_is_read_where_it_is_written(tmp_path, name):
    """The process that wrote a span is its resource."""
    _, spans, _ = _spans(tmp_path, name)

    assert {span.resource.attributes[semconv.SERVICE_NAME] for span in spans.values()} == {"handbook"}


def test_what_a_program_prints_between_its_spans_is_counted_and_no_trouble(tmp_path):
    """The console is everybody's: other lines cost nothing."""
    _, spans, evidence = _spans(tmp_path, "console")

    assert len(spans) == 3
    assert (evidence.n_other_lines, evidence.warnings) == (3, [])


def test_tags_of_jaeger_become_the_fields_that_they_stand_for(tmp_path):
    """Kind, status, scope and trace state are fields; the rest keeps its type, even a number in a text."""
    tags = [
        ("span.kind", "string", "server"),
        ("otel.scope.name", "string", "my.lib"),
        ("otel.library.version", "string", "1.2"),
        ("w3c.tracestate", "string", "a=b"),
        ("internal.span.format", "string", "otlp"),
        ("error", "string", "true"),
        ("n", "int64", "9007199254740993"),
        ("x", "float64", 2),
        ("b", "bool", "true"),
        ("raw", "binary", "AAE="),
        ("odd", "int64", "many"),
    ]
    span = files.jaeger_trace()["spans"][0]
    span |= {"tags": [{"key": key, "type": kind, "value": value} for key, kind, value in tags], "logs": []}
    (tmp_path / "t.json").write_text(json.dumps({"traceID": files.TRACE, "spans": [span]}))

    ((found,),) = (trace.spans for trace in load(tmp_path / "t.json"))

    assert (found.kind, found.status, found.scope[:2], found.trace_state) == (
        "server", "error", ("my.lib", "1.2"), "a=b",
    )  # fmt: skip
    assert found.attributes == {
        "n": 9007199254740993,
        "x": 2.0,
        "b": True,
        "raw": b"\0\1",
        "odd": "many",
    }
    assert isinstance(found.attributes["x"], float)


@pytest.mark.parametrize(
    ("references", "parent", "links"),
    [
        pytest.param([], None, [], id="none"),
        pytest.param([("CHILD_OF", ROOT)], ROOT, [], id="parent"),
        pytest.param([("FOLLOWS_FROM", ROOT)], None, [ROOT], id="a-link-does-not-block"),
        pytest.param([("CHILD_OF", CHAT), ("CHILD_OF", ROOT)], ROOT, [], id="itself-and-another"),
        pytest.param([("CHILD_OF", CHAT)], CHAT, [], id="itself-alone"),
        pytest.param([("CHILD_OF", ROOT), ("CHILD_OF", SEARCH)], ROOT, [SEARCH], id="two-parents"),
        pytest.param([("CHILD_OF", "")], None, [], id="empty"),
    ],
)
def test_references_of_jaeger(tmp_path, references, parent, links):
    """The first parent that is another span is the parent; every other reference is a link."""
    span = files.jaeger_trace()["spans"][0]
    span["references"] = [
        {"refType": kind, "traceID": files.TRACE, "spanID": target} for kind, target in references
    ]
    (tmp_path / "t.json").write_text(json.dumps({"data": [{"traceID": files.TRACE, "spans": [span]}]}))

    ((found,),) = (trace.spans for trace in load(tmp_path / "t.json"))

    assert found.parent_id == parent
    assert [link.span_id for link in found.links] == links


def test_the_first_token_is_told_from_the_first_chunk_where_the_chunks_are_there(tmp_path):
    """An empty chunk bears the role alone: the toolkit's steps hold what was in each."""
    _, spans, _ = _spans(tmp_path, "nat")

    offsets = {event.name: event.time_ns // 1000 - files.START_US for event in spans[CHAT].events}
    assert offsets == {"new_token": files.CHUNK_US, "first_token": files.CHUNK_US + 5_000}


def test_a_step_that_never_ended_is_an_unfinished_span(tmp_path):
    """The only sign of a failure in these files."""
    lines = files.nat_steps().splitlines(keepends=True)
    (tmp_path / "steps.jsonl").write_text("".join(lines[:-1]))

    (trace,) = load(tmp_path / "steps.jsonl")

    assert [span.name for span in trace.spans if span.end_ns is None] == [files.NAMES[ROOT]]


def test_a_run_finds_its_trace_and_its_parent_in_its_dotted_order(tmp_path):
    """Some exports have nothing else: the order names every ancestor."""
    runs = [json.loads(line) for line in files.langsmith_runs().splitlines()]
    root = "20260921T222640123456Z" + files.UUIDS[ROOT]
    for run in runs:
        own = "" if run["id"] == files.UUIDS[ROOT] else f".20260921T222640124456Z{run['id']}"
        run |= {"dotted_order": root + own, "trace_id": None, "parent_run_id": None}
    (tmp_path / "runs.json").write_text(json.dumps(runs))

    (trace,) = load(tmp_path / "runs.json")

    assert {span.span_id: span.parent_id for span in trace.spans} == files.PARENTS


@pytest.mark.parametrize("name", [name for name in files.FILES if name != "console"])
def test_objects_of_something_else_are_left_out_and_said(tmp_path, name):
    """The first known object tells the format; another one in the same file costs itself only."""
    text = files.FILES[name][0]()
    (tmp_path / "mixed").write_text(text.rstrip("\n") + '\n{"level": "info", "text": "done"}\n')
    reader = load(tmp_path / "mixed")

    (trace,) = reader

    assert len(trace) == 3
    assert sum("as the rest of the file" in warning for warning in reader.evidence.warnings) == 1


OTHERS = [
    name
    for name in files.FILES
    if name not in {"phoenix-otlp", "phoenix-frame-columns", "jaeger-api", "console"}
]


@pytest.mark.parametrize("name", OTHERS)
def test_spans_of_another_format_behind_otlp_are_left_out_and_said(tmp_path, name):
    """Nothing is lost without a word, whichever comes first; other output between the lines is no loss."""
    other, _ = json.JSONDecoder().raw_decode(files.FILES[name][0]())  # of lines, the first
    line = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1" * 32, "spanId": "2" * 16}]}]}]}
    span = line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span |= {
        "name": "a",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000000000001000",
    }
    lines = [line, other, {"level": "info"}, {"resourceLogs": []}, line]
    (tmp_path / "mixed").write_text("".join(json.dumps(one) + "\n" for one in lines))
    reader = load(tmp_path / "mixed")

    (trace,) = reader

    assert len(trace) == 2
    (warning,) = reader.evidence.warnings
    assert "mixed:2: the line is" in warning
    assert "and not OTLP/JSON as the rest of the file; left out" in warning


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        pytest.param(
            {"info": {}, "data": {"spans": []}}, ["MLflow trace JSON", "holds no spans"], id="mlflow"
        ),
        pytest.param({"spans": 5, "traces": 1}, ["no known trace format"], id="numbers"),
        pytest.param([{"traceId": "1", "id": "2", "timestamp": 3}], ["Zipkin JSON"], id="zipkin"),
        pytest.param({"$schema": "", "profiles": [], "shared": {}}, ["speedscope"], id="speedscope"),
    ],
)
def test_what_holds_no_spans_is_refused_by_name(tmp_path, document, parts):
    """Never an empty report."""
    (tmp_path / "t.json").write_text(json.dumps(document))

    with pytest.raises(TraceFileError) as caught:
        list(load(tmp_path / "t.json"))

    assert all(part in str(caught.value) for part in parts), caught.value
