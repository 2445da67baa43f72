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


def test_the_other_spans_arrive():
    """All 100 spans arrive; the 5 MB text is cut on a character border, with its length said."""
    with hotspan.receiver() as receiver, capture() as arrived:
        subprocess.run([sys.executable, "-c", PROGRAM, receiver.endpoint], timeout=60, check=True)

    prompts = [span.attributes for span in arrived.spans if "prompt" in span.attributes]
    (cut,) = [each for each in prompts if each["prompt"] != "short"]
    assert len(arrived.spans) == 100
    assert set(cut["prompt"]) == {"é"}
    assert cut["prompt.hotspan.original_length"] == 5_000_000
