"""Numbers of numpy are numbers in the file, None is nothing, and an embedding is not written out."""

import json
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import hotspan
hotspan.configure(file=sys.argv[1])
with hotspan.retrieval("faiss", top_k=np.int64(3)) as span:
    span.set("scores", np.array([0.5, 0.25], np.float32)).set("best", np.float32(1.5)).set("none", None)
    span.set("mixed", [1, "a", None, 2.5]).set("vector", np.zeros(768, np.float32))
    span.set("vector_list", np.zeros(768).tolist()).set("ok", np.bool_(True))
"""


def test_real_numbers_in_the_file(tmp_path):
    """Doubles and integers are written as such, with nothing in the log."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, path],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (line,) = path.read_text("utf-8").splitlines()
    (span,) = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    attributes = {pair["key"]: pair["value"] for pair in span["attributes"]}

    assert done.stderr == ""
    assert attributes["gen_ai.request.top_k"] == {"intValue": "3"}
    assert attributes["scores"] == {"arrayValue": {"values": [{"doubleValue": 0.5}, {"doubleValue": 0.25}]}}
    assert attributes["best"] == {"doubleValue": 1.5}
    assert attributes["ok"] == {"boolValue": True}
    assert attributes["none"] == {}
    assert [*map(next, map(iter, attributes["mixed"]["arrayValue"]["values"][:2]))] == [
        "intValue",
        "stringValue",
    ]
    assert "768" in attributes["vector"]["stringValue"]
    assert "768" in attributes["vector_list"]["stringValue"]
    assert len(line) < 4_000
