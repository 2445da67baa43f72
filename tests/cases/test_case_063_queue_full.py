"""A burst against a slow exporter: what is lost is counted exactly, and the file says so."""

import json

import hotspan
from hotspan.exporters.files import FileExporter
from hotspan.tracer import channel, recorder
from hotspan.tracer.config import recording_to
from hotspan.tracer.settings import Settings

N_SPANS = 10_000


def test_the_file_knows_what_it_lacks(tmp_path, monkeypatch):
    """Spans in the file + spans that the file says are lost = spans that were started."""
    monkeypatch.setattr(recorder, "MAX_BUFFERED", 1_000)
    monkeypatch.setattr(channel, "MAX_WAITING", 1_000)
    path = tmp_path / "run.jsonl"
    with recording_to(FileExporter(path), Settings()) as running:
        for _ in range(N_SPANS):
            with hotspan.step():
                pass
        result = running.flush(30)

    n_spans = n_lost = 0
    for line in path.read_text("utf-8").splitlines():
        for group in json.loads(line)["resourceSpans"]:
            n_spans += sum(len(scope["spans"]) for scope in group.get("scopeSpans", ()))
            attributes = {pair["key"]: pair["value"] for pair in group["resource"]["attributes"]}
            n_lost += int(attributes.get("hotspan.lost_spans", {"intValue": 0})["intValue"])
    assert n_spans + n_lost == N_SPANS
    assert (result.exported, result.lost) == (n_spans, n_lost)
    report = hotspan.analyse(hotspan.load(path))
    assert report.evidence.n_dropped_spans == n_lost > 0
    assert report.findings[0].id == "spans-lost"
