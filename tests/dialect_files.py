"""One request as each writer of JSON writes it: a search, and a model call that fails after its first chunk.

Written by hand after what the writers write; nobody's content.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

TRACE = "7c1f0e9a52b84d6e9d0b3a4c5e6f7081"
ROOT, SEARCH, CHAT = "a1b2c3d4e5f60718", "b1b2c3d4e5f60718", "c1b2c3d4e5f60718"
NAMES = {ROOT: "answer", SEARCH: "search", CHAT: "chat tiny"}
PARENTS = {ROOT: None, SEARCH: ROOT, CHAT: ROOT}
START_US = 1_790_000_000_123_456
# From the start of the request, in microseconds.
TIMES_US = {ROOT: (0, 900_000), SEARCH: (1_000, 41_000), CHAT: (50_000, 880_000)}
CHUNK_US = 130_000
KINDS = {ROOT: "CHAIN", SEARCH: "RETRIEVER", CHAT: "LLM"}
UUIDS = {span_id: f"0b0e4d1c-52b8-4d6e-{span_id[:4]}-{span_id[4:]}" for span_id in NAMES}
RUN_TYPES = {ROOT: "chain", SEARCH: "retriever", CHAT: "llm"}
MESSAGE = "ConnectionError: no answer"


def _b64(digits):
    return base64.b64encode(bytes.fromhex(digits)).decode()


def _iso(offset_us):
    seconds, micros = divmod(START_US + offset_us, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).strftime(f"%Y-%m-%dT%H:%M:%S.{micros:06d}")


def _each(make):
    return [make(span_id, *TIMES_US[span_id]) for span_id in (CHAT, SEARCH, ROOT)]  # children first


def _dumps(document):
    return json.dumps(document)


def _lines(documents):
    return "".join(json.dumps(document) + "\n" for document in documents)


# --- Jaeger -------------------------------------------------------------------------------------------
def _jaeger_span(span_id, start, end):
    tags = [{"key": "span.kind", "type": "string", "value": "client"}] if span_id == CHAT else []
    error = [
        {"key": "error", "type": "bool", "value": True},
        {"key": "otel.status_code", "type": "string", "value": "ERROR"},
        {"key": "otel.status_description", "type": "string", "value": MESSAGE},
    ]
    chunk = {
        "timestamp": START_US + CHUNK_US,
        "fields": [{"key": "event", "type": "string", "value": "new_token"}],
    }
    parent = {"refType": "CHILD_OF", "traceID": TRACE, "spanID": PARENTS[span_id]}
    return {
        "traceID": TRACE,
        "spanID": span_id,
        "flags": 1,
        "operationName": NAMES[span_id],
        "references": [parent] if PARENTS[span_id] else [],
        "startTime": START_US + start,
        "duration": end - start,
        "tags": [*tags, *(error if span_id == CHAT else [])],
        "logs": [chunk] if span_id == CHAT else [],
        "processID": "p1",
        "warnings": None,
    }


def jaeger_trace():
    """Return one trace as Jaeger has it."""
    tags = [{"key": "process.pid", "type": "int64", "value": 7}]
    return {
        "traceID": TRACE,
        "spans": _each(_jaeger_span),
        "processes": {"p1": {"serviceName": "handbook", "tags": tags}},
    }


def jaeger_api():
    """Return an answer of Jaeger's API."""
    answer = {"data": [jaeger_trace()], "total": 0, "limit": 0, "offset": 0, "errors": None}
    return json.dumps(answer, indent=2)


def jaeger_page():
    """Return what Jaeger's user interface keeps."""
    return _dumps({"data": jaeger_trace(), "id": TRACE, "state": "FETCH_DONE"})


# --- Phoenix ------------------------------------------------------------------------------------------
def _phoenix_span(span_id, start, end):
    chunk = {"name": "new_token", "timestamp": _iso(CHUNK_US) + "+00:00", "attributes": {}}
    return {
        "id": _b64(span_id),
        "name": NAMES[span_id],
        "context": {"trace_id": TRACE, "span_id": span_id},
        "span_kind": KINDS[span_id],
        "parent_id": PARENTS[span_id],
        "start_time": _iso(start) + "+00:00",
        "end_time": _iso(end) + "+00:00",
        "status_code": "ERROR" if span_id == CHAT else "OK",
        "status_message": MESSAGE if span_id == CHAT else "",
        "attributes": {"llm.model_name": "tiny"} if span_id == CHAT else {},
        "events": [chunk] if span_id == CHAT else [],
    }


def phoenix_spans():
    """Return an answer of Phoenix's REST API for spans."""
    return _dumps({"data": _each(_phoenix_span), "next_cursor": None})


def phoenix_client():
    """Return what `get_spans` of Phoenix's client gives."""
    return _dumps(_each(_phoenix_span))


def phoenix_traces():
    """Return an answer of Phoenix's REST API for traces."""

    def brief(span):
        kept = ("id", "parent_id", "name", "span_kind", "status_code", "start_time", "end_time")
        return {"span_id": span["context"]["span_id"]} | {key: span[key] for key in kept}

    spans = [brief(span) for span in _each(_phoenix_span)]
    trace = {"id": "VHJhY2U6MQ==", "trace_id": TRACE, "project_id": "UHJvamVjdDox", "spans": spans}
    return _dumps({"data": [trace], "next_cursor": None})


def phoenix_row(span_id, start, end):
    """Return one row of Phoenix's data frame."""
    span = _phoenix_span(span_id, start, end)
    row = {key: span[key] for key in ("name", "span_kind", "parent_id", "status_code", "status_message")}
    return row | {
        "start_time": (START_US + start) // 1000,
        "end_time": (START_US + end) // 1000,
        "events": span["events"],
        "context.span_id": span_id,
        "context.trace_id": TRACE,
        "attributes.llm.model_name": "tiny" if span_id == CHAT else None,
    }


def phoenix_frame():
    """Return the data frame as records."""
    return _dumps(_each(phoenix_row))


def phoenix_frame_lines():
    """Return the data frame with ISO times, a record a line."""

    def row(span_id, start, end):
        times = {"start_time": _iso(start)[:-3] + "Z", "end_time": _iso(end)[:-3] + "Z"}
        return phoenix_row(span_id, start, end) | times

    return _lines(_each(row))


def phoenix_frame_columns():
    """Return the data frame as pandas writes it unless told otherwise."""
    rows = {row.pop("context.span_id"): row for row in _each(phoenix_row)}
    return _dumps({name: {key: row[name] for key, row in rows.items()} for name in rows[ROOT]})


# --- MLflow -------------------------------------------------------------------------------------------
def _mlflow_span(span_id, start, end):
    chunk = {"name": "new_token", "time_unix_nano": (START_US + CHUNK_US) * 1000, "attributes": {}}
    code = "STATUS_CODE_ERROR" if span_id == CHAT else "STATUS_CODE_OK"
    return {
        "trace_id": _b64(TRACE),
        "span_id": _b64(span_id),
        "parent_span_id": _b64(PARENTS[span_id]) if PARENTS[span_id] else None,
        "name": NAMES[span_id],
        "start_time_unix_nano": (START_US + start) * 1000,
        "end_time_unix_nano": (START_US + end) * 1000,
        "events": [chunk] if span_id == CHAT else [],
        "status": {"code": code, "message": MESSAGE if span_id == CHAT else ""},
        "attributes": {"mlflow.spanType": json.dumps(KINDS[span_id])},
        "links": [],
    }


def mlflow_traces():
    """Return traces of MLflow 3."""
    info = {"trace_id": f"tr-{TRACE}", "state": "ERROR", "tags": {"service.name": "handbook"}}
    return _dumps([{"info": info, "data": {"spans": _each(_mlflow_span)}}])


def phoenix_otlp():
    """Return an answer of Phoenix's REST API for spans in OTLP's own shape."""

    def span(span_id, start, end):
        pairs = [{"key": "llm.model_name", "value": {"string_value": "tiny"}}]
        return _mlflow_span(span_id, start, end) | {"attributes": pairs if span_id == CHAT else []}

    return _dumps({"data": _each(span), "next_cursor": None})


def mlflow_spans():
    """Return the spans that MLflow keeps beside a run."""
    return _dumps({"spans": _each(_mlflow_span)})


def mlflow_2_trace():
    """Return a trace of MLflow 2."""

    def span(span_id, start, end):
        parent = PARENTS[span_id]
        chunk = {"name": "new_token", "timestamp": (START_US + CHUNK_US) * 1000, "attributes": {}}
        return {
            "name": NAMES[span_id],
            "context": {"span_id": f"0x{span_id}", "trace_id": f"0x{TRACE}"},
            "parent_id": f"0x{parent}" if parent else None,
            "start_time": (START_US + start) * 1000,
            "end_time": (START_US + end) * 1000,
            "status_code": "ERROR" if span_id == CHAT else "OK",
            "status_message": MESSAGE if span_id == CHAT else "",
            "attributes": {"mlflow.spanType": json.dumps(KINDS[span_id])},
            "events": [chunk] if span_id == CHAT else [],
        }

    return _dumps({"info": {"request_id": "9f", "timestamp_ms": 0}, "data": {"spans": _each(span)}})


# --- LangSmith ----------------------------------------------------------------------------------------
def langsmith_run(span_id, start, end):
    """Return one run of LangSmith."""
    chunk = {"name": "new_token", "time": _iso(CHUNK_US), "kwargs": {"token": ""}}
    parent = PARENTS[span_id]
    return {
        "id": UUIDS[span_id],
        "name": NAMES[span_id],
        "run_type": RUN_TYPES[span_id],
        "trace_id": f"{TRACE[:8]}-{TRACE[8:12]}-{TRACE[12:16]}-{TRACE[16:20]}-{TRACE[20:]}",
        "parent_run_id": UUIDS[parent] if parent else None,
        "start_time": _iso(start),
        "end_time": _iso(end),
        "status": "error" if span_id == CHAT else "success",
        "error": "ConnectionError('no answer')\n\nTraceback" if span_id == CHAT else None,
        "extra": {"metadata": {"ls_model_name": "tiny"}} if span_id == CHAT else {},
        "events": [chunk] if span_id == CHAT else [],
        "prompt_tokens": 12 if span_id == CHAT else 0,
        "inputs": {},
        "outputs": None,
    }


def langsmith_runs():
    """Return runs, one a line."""
    return _lines(_each(langsmith_run))


def langsmith_query():
    """Return an answer of LangSmith's API."""
    return _dumps({"runs": _each(langsmith_run), "cursors": {"next": None}})


def langsmith_tree():
    """Return a run with its children inside."""
    chat, search, root = _each(langsmith_run)
    return json.dumps(root | {"child_runs": [search, chat]}, indent=1)


# --- ConsoleSpanExporter ------------------------------------------------------------------------------
def console():
    """Return what `ConsoleSpanExporter` prints among a program's own lines."""

    def span(span_id, start, end):
        parent = PARENTS[span_id]
        chunk = {"name": "new_token", "timestamp": _iso(CHUNK_US) + "Z", "attributes": {}}
        error = {"status_code": "ERROR", "description": MESSAGE}
        return {
            "name": NAMES[span_id],
            "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{span_id}", "trace_state": "[]"},
            "kind": "SpanKind.CLIENT" if span_id == CHAT else "SpanKind.INTERNAL",
            "parent_id": f"0x{parent}" if parent else None,
            "start_time": _iso(start) + "Z",
            "end_time": _iso(end) + "Z",
            "status": error if span_id == CHAT else {"status_code": "UNSET"},
            "attributes": {"ratio": float("nan")},  # as Python's json prints it
            "events": [chunk] if span_id == CHAT else [],
            "links": [],
            "resource": {"attributes": {"service.name": "handbook"}, "schema_url": ""},
        }

    printed = [json.dumps(each, indent=4) for each in _each(span)]
    return "Listening on port 8000\n" + "\nGET / 200\n".join(printed) + "\n"


# --- NeMo Agent Toolkit -------------------------------------------------------------------------------
def nat_steps():
    """Return the steps of NeMo Agent Toolkit's file exporter."""
    kinds = {ROOT: "WORKFLOW", SEARCH: "FUNCTION", CHAT: "LLM"}

    def step(span_id, event, offset_us, chunk=None):
        parent = PARENTS[span_id]
        payload = {
            "event_type": f"{kinds[span_id]}_{event}",
            "event_timestamp": (START_US + offset_us) / 1e6,
            "name": NAMES[span_id],
            "data": {"chunk": chunk},
            "usage_info": {"token_usage": {"prompt_tokens": 12}} if event == "END" else None,
            "UUID": UUIDS[span_id],
        }
        where = {"function_id": "root", "function_name": "root", "parent_id": None, "parent_name": None}
        return {
            "parent_id": UUIDS[parent] if parent else "root",
            "function_ancestry": where,
            "payload": payload,
        }

    steps = [
        (at, step(i, event, at))
        for i in NAMES
        for event, at in zip(("START", "END"), TIMES_US[i], strict=True)
    ]
    steps += [(CHUNK_US, step(CHAT, "NEW_TOKEN", CHUNK_US, ""))]
    steps += [(CHUNK_US + 5_000, step(CHAT, "NEW_TOKEN", CHUNK_US + 5_000, "word "))]
    return _lines(document for _, document in sorted(steps, key=lambda pair: pair[0]))


# What each file is, and to which fraction of a second its times are.
FILES = {
    "jaeger-api": (jaeger_api, 1),
    "jaeger-page": (jaeger_page, 1),
    "jaeger-trace": (lambda: _dumps(jaeger_trace()), 1),
    "jaeger-spans": (lambda: _lines(jaeger_trace()["spans"]), 1),
    "phoenix-spans": (phoenix_spans, 1),
    "phoenix-client": (phoenix_client, 1),
    "phoenix-traces": (phoenix_traces, 1),
    "phoenix-otlp": (phoenix_otlp, 1),
    "phoenix-frame": (phoenix_frame, 1000),
    "phoenix-frame-lines": (phoenix_frame_lines, 1000),
    "phoenix-frame-columns": (phoenix_frame_columns, 1000),
    "mlflow-traces": (mlflow_traces, 1),
    "mlflow-spans": (mlflow_spans, 1),
    "mlflow-2": (mlflow_2_trace, 1),
    "langsmith-lines": (langsmith_runs, 1),
    "langsmith-query": (langsmith_query, 1),
    "langsmith-tree": (langsmith_tree, 1),
    "console": (console, 1),
    "nat": (nat_steps, 1),
}
