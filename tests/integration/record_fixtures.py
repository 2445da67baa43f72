"""Records tests/recorded/*.jsonl anew: what real libraries write of one small program.

    python -m tests.integration.record_fixtures [LIBRARY…]

What tells the machine (paths, hosts, processes) is taken out; the rest is as it came.
"""

import base64
import json
import sys
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.integration.environments import python_with
from tests.integration.recording import LIBRARIES, record

FOLDER = Path(__file__).parents[1] / "recorded"
OF_THE_MACHINE = ("code.", "thread.", "process.", "host.", "os.", "exception.stacktrace", "service.instance")


def main(names):
    """Record the named libraries; without a name, all."""
    for name in names or LIBRARIES:
        module, packages = LIBRARIES[name]
        bodies = record(python_with(*packages), module)
        lines = [json.dumps(clean(as_json(body)), separators=(",", ":")) + "\n" for body in bodies]
        (FOLDER / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def as_json(body):
    """Return an OTLP request in the form of OTLP/JSON: camelCase, numbers for enums, and ids in base64."""
    return MessageToDict(ExportTraceServiceRequest.FromString(body), use_integers_for_enums=True)


def clean(value, key=""):
    """Return JSON data with ids in hex, and without what tells the machine."""
    if isinstance(value, list):
        return [clean(item) for item in value if not is_of_the_machine(item)]
    if isinstance(value, dict):
        return {name: clean(inner, name) for name, inner in value.items()}
    if key in {"traceId", "spanId", "parentSpanId"}:
        return base64.b64decode(value).hex()
    return value


def is_of_the_machine(item):
    """Return whether an item of a list is an attribute that says something about the machine."""
    return isinstance(item, dict) and str(item.get("key", "")).startswith(OF_THE_MACHINE)


if __name__ == "__main__":
    main(sys.argv[1:])
