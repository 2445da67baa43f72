"""One huge attribute does not take the other spans of its batch with it."""

import subprocess
import sys

import hotspan
from hotspan.testing import capture

PROGRAM = """
import sys
import hotspan
hotspan.configure(otlp=sys.argv[1])
with hotspan.request():
    for i in range(99):
        with hotspan.stage("s") as span:
            span.set("prompt", "é" * 5_000_000 if i == 50 else "short")
result = hotspan.flush(20)
sys.exit(0 if result.ok and result.exported == 100 else f"{result}")
"""


NAMES = """
import sys
import hotspan
from opentelemetry.trace import StatusCode
hotspan.configure(otlp=sys.argv[1], file=sys.argv[2], capture_content=True)
def huge(how):
    with hotspan.stage("s") as span:
        how(span)
try:
    with hotspan.request():
        for _ in range(30):
            huge(lambda span: None)
        huge(lambda span: span.update_name("é" * 5_000_000))
        huge(lambda span: span.add_event("é" * 5_000_000))
        huge(lambda span: span.set_status(StatusCode.ERROR, "é" * 5_000_000))
        huge(lambda span: span.update_name(3))
        huge(lambda span: span.add_event(4))
        huge(lambda span: span.set_status(StatusCode.ERROR, 5))
        with hotspan.stage("é" * 5_000_000), hotspan.step("é" * 5_000_000):
            raise ValueError("é" * 5_000_000)
except ValueError:
    pass
result = hotspan.flush(20)
sys.exit(0 if result.ok and result.exported == 39 else f"{result}")
"""


def test_names_and_messages_of_any_size_and_type_lose_no_span(tmp_path):
    """Names of spans, events and stages, messages of statuses and of exceptions are text within a bound."""
    path = tmp_path / "run.jsonl"
    with hotspan.receiver() as receiver, capture() as arrived:
        subprocess.run([sys.executable, "-c", NAMES, receiver.endpoint, path], timeout=60, check=True)
    names = {span.name for span in arrived.spans} | {e.name for span in arrived.spans for e in span.events}

    assert len(arrived.spans) == path.read_text("utf-8").count('"spanId"') == 39
    assert {"3", "4", "é" * 1_024} <= names
    assert "5" in {span.status_message for span in arrived.spans}
    assert path.stat().st_size < 4_000_000


def test_the_other_spans_arrive():
    """All 100 spans arrive; the 5 MB text is cut on a character border, with its length said."""
    with hotspan.receiver() as receiver, capture() as arrived:
        subprocess.run([sys.executable, "-c", PROGRAM, receiver.endpoint], timeout=60, check=True)

    prompts = [span.attributes for span in arrived.spans if "prompt" in span.attributes]
    (cut,) = [each for each in prompts if each["prompt"] != "short"]
    assert len(arrived.spans) == 100
    assert set(cut["prompt"]) == {"é"}
    assert cut["prompt.hotspan.original_length"] == 5_000_000
