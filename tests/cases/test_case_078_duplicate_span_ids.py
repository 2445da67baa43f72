"""Case 078: the same span twice, and two spans under one id."""

from __future__ import annotations

import json

import pytest

from hotspan.analysis import analyse, load, parse_where, select
from hotspan.tracer.record import SpanRecord, Trace


def _export():
    def span(number, parent):
        return {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": f"{number:016x}",
            "parentSpanId": f"{parent:016x}" if parent else "",
            "name": f"span {number}",
            "startTimeUnixNano": str(number),
            "endTimeUnixNano": str(100 - number),
            "attributes": [
                {"key": "hotspan.stage", "value": {"stringValue": "tool" if parent else "request"}}
            ],
        }

    return {"resourceSpans": [{"scopeSpans": [{"spans": [span(1, 0), span(2, 1)]}]}]}


def test_loading_overlapping_files_doubles_nothing(tmp_path):
    """A file and its copy: the figures of one, and the copies counted."""
    for name in ("run.jsonl", "rotated.jsonl"):
        (tmp_path / name).write_text(json.dumps(_export()) + "\n")

    once, twice = (
        analyse(load(*(tmp_path / name for name in names)))
        for names in (["run.jsonl"], ["run.jsonl", "rotated.jsonl"])
    )

    assert (once.evidence.n_duplicate_spans, twice.evidence.n_duplicate_spans) == (0, 2)
    assert (once.stages, once.request) == (twice.stages, twice.request)
    assert twice.evidence.n_spans == 2


def test_different_spans_under_one_id_are_both_kept():
    """Client and server of one call share an id in some systems: neither is dropped, and it is said."""
    client = SpanRecord("1", "a", None, "GET", 0, 100, {"hotspan.stage": "request"}, kind="client")
    server = client._replace(name="handle", start_ns=10, end_ns=90, kind="server", parent_id="a")
    child = SpanRecord("1", "b", "a", "work", 20, 30, {"hotspan.stage": "tool"})

    report = analyse([Trace("1", [client, server, child])])

    assert (report.evidence.n_same_id_spans, report.evidence.n_duplicate_spans) == (2, 0)
    assert report.evidence.n_spans == 3
    assert report.request.duration_ns.max == 100


REQUEST, TOOL, OTHER = ({"hotspan.stage": stage} for stage in ("request", "tool", "other"))
EPOCH_NS = 1_800_000_000_000_000_000
UNITS_NS = {"us": 1_000, "ms": 1_000_000}
FINE = [
    SpanRecord(
        "1", "a", None, "ask", EPOCH_NS + 1_234_567, EPOCH_NS + 99_876_543, {"hotspan.stage": "request"}
    ),
    SpanRecord("1", "b", "a", "look", EPOCH_NS + 2_345_678, EPOCH_NS + 9_999_999, TOOL),
]


def _coarse(span, unit_ns, *, up=False):
    def whole(time_ns):
        return (time_ns // unit_ns + up) * unit_ns

    return span._replace(start_ns=whole(span.start_ns), end_ns=whole(span.end_ns), kind="unspecified")


@pytest.mark.parametrize("up", [False, True], ids=["cut", "rounded-up"])
@pytest.mark.parametrize("unit", UNITS_NS)
@pytest.mark.parametrize("is_finer_first", [True, False])
def test_a_run_in_two_formats_is_one_run(unit, up, is_finer_first):
    """Where one format keeps microseconds or milliseconds: the finer spans stay, the others are copies."""
    coarse = [_coarse(span, UNITS_NS[unit], up=up) for span in FINE]

    report = analyse([Trace("1", FINE + coarse if is_finer_first else coarse + FINE)])

    assert (report.evidence.n_duplicate_spans, report.evidence.n_same_id_spans) == (2, 0)
    assert (report.request, report.stages) == ((once := analyse([Trace("1", FINE)])).request, once.stages)


def test_a_format_that_cuts_the_start_and_the_duration_is_another_of_the_same_run():
    """Jaeger's: the end may then lie nearly two microseconds before the true one."""
    fine = FINE[1]._replace(
        end_ns=FINE[1].start_ns + 5_500
    )  # from …678 to …178, which is cut to …000 and …000
    start_ns, duration_ns = (value // 1_000 * 1_000 for value in (fine.start_ns, fine.duration_ns))
    cut = fine._replace(start_ns=start_ns, end_ns=start_ns + duration_ns, kind="unspecified")

    report = analyse([Trace("1", [FINE[0], cut, fine])])

    assert (fine.end_ns or 0) - (cut.end_ns or 0) > 1_000
    assert (report.evidence.n_duplicate_spans, report.evidence.n_same_id_spans) == (1, 0)


def test_copies_with_other_attributes_are_one_span():
    """Formats write a span's attributes in their own ways: the one that says more stays."""
    more = FINE[1]._replace(attributes={**FINE[1].attributes, "top_k": 3}, kind="unspecified")
    copies = [FINE[1]._replace(kind="unspecified"), more]

    report = analyse([Trace("1", [FINE[0], *copies])])

    assert (report.evidence.n_spans, report.evidence.n_duplicate_spans) == (2, 1)


def test_a_copy_is_selected_with_its_original():
    """`--where` sets both aside: a copy does not come back as a call of its own."""
    copies = [_coarse(span, UNITS_NS["us"]) for span in FINE]
    other = SpanRecord("1", "c", "a", "say", EPOCH_NS + 50_000_000, EPOCH_NS + 60_000_000, OTHER)

    report = analyse(select([Trace("1", [*FINE, *copies, other])], parse_where(["stage=other"])))

    assert [row.stage for row in report.stages] == ["other"]
    assert (report.evidence.n_duplicate_spans, report.evidence.n_same_id_spans) == (2, 0)
    assert report.selection.other_ns == FINE[1].duration_ns


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"name": "other"}, id="name"),
        pytest.param({"parent_id": "z"}, id="parent"),
        pytest.param({"kind": "client"}, id="kind"),
        pytest.param({"start_ns": EPOCH_NS + 2_347_000}, id="start"),
        pytest.param({"end_ns": EPOCH_NS + 12_000_000}, id="end"),
        pytest.param({"end_ns": None}, id="unfinished"),
    ],
)
def test_what_differs_in_more_than_its_format_is_not_a_copy(change):
    """Two spans under one id, though their times are nearly equal."""
    other = _coarse(FINE[1], UNITS_NS["us"])._replace(**change)

    report = analyse([Trace("1", [*FINE, other])])

    assert (report.evidence.n_duplicate_spans, report.evidence.n_same_id_spans) == (0, 2)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_span_that_was_written_at_its_start_and_at_its_end_is_one_span(is_first):
    """As writers do that show what is running: the finished one counts, and keeps its children."""
    started = [span._replace(end_ns=None, attributes={}) for span in FINE]

    report = analyse([Trace("1", [*started, *FINE] if is_first else [*FINE, *started])])

    assert (report.evidence.n_duplicate_spans, report.evidence.n_unfinished_spans) == (2, 0)
    assert (report.request, report.stages) == ((once := analyse([Trace("1", FINE)])).request, once.stages)


def test_children_stay_with_the_span_of_their_parents_id_that_can_be_measured():
    """A retry under the same id, or whatever else: what has no end is no reason to lose the request."""
    broken = FINE[0]._replace(name="another", start_ns=FINE[0].start_ns - 5, end_ns=None)

    report = analyse([Trace("1", [broken, *FINE])])

    assert (report.evidence.n_same_id_spans, report.evidence.n_partial_traces) == (2, 0)
    assert [row.stage for row in report.stages if row.critical_path_ns] == ["tool"]
