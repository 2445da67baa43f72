"""NaN, infinities, lone surrogates and large integers give valid JSON and lose no span."""

import json
import subprocess
import sys

PROGRAM = """
import sys
import hotspan
hotspan.configure(file=sys.argv[1])
with hotspan.request() as span:
    span.set("score", float("nan")).set("best", float("inf")).set("id", 2**70).set("prompt", "half \\ud83d")
with hotspan.stage("name \\ud83d"):
    pass
"""


def test_the_file_is_valid_json_and_complete(tmp_path):
    """Every line is strict JSON in UTF-8, and both spans are in it with what they held."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, timeout=60, check=True
    )

    def refuse(constant):
        raise AssertionError(constant)

    spans = {
        span["name"]: {pair["key"]: pair["value"] for pair in span["attributes"]}
        for line in path.read_bytes().decode("utf-8").splitlines()
        for group in json.loads(line, parse_constant=refuse)["resourceSpans"]
        for part in group["scopeSpans"]
        for span in part["spans"]
    }
    assert done.stderr == ""
    assert set(spans) == {"request", "name \ufffd"}
    assert spans["request"]["score"] == {"doubleValue": "NaN"}
    assert spans["request"]["best"] == {"doubleValue": "Infinity"}
    assert spans["request"]["id"] == {"stringValue": str(2**70)}
    assert spans["request"]["prompt"] == {"stringValue": "half \ufffd"}
