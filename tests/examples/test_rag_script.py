"""The RAG script before and after: the diff is the lesson, so the diff is what is held."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hotspan

EXAMPLES = Path(__file__).parents[2] / "examples"
STAGES = {"request", "embedding", "retrieval", "rerank", "context_assembly", "generation"}


def code_of(name: str) -> list[str]:
    """Return the lines of an example below its docstring."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0]
    return [line for line in text.splitlines()[docstring.end_lineno :] if line]


def test_the_script_is_only_added_to():
    """Every line of the script is still there, in its order; what is new are hotspan's lines alone."""
    before, after = code_of("rag_script_before.py"), code_of("rag_script_after.py")

    added = [line for line in after if "hotspan" in line]

    assert [line for line in after if line not in added] == before
    assert len(added) == 8


def test_both_scripts_give_the_same_answers(run_example):
    """Tracing changes no answer."""
    assert run_example("rag_script_after.py") == run_example("rag_script_before.py")


def test_each_question_is_one_request_with_every_stage(run_example, tmp_path):
    """Three questions are three traces, each with one call of each stage below its request."""
    run_example("rag_script_after.py")

    traces = list(hotspan.load(tmp_path / "rag.jsonl"))

    assert len(traces) == 3
    for trace in traces:
        (root,) = trace.roots
        assert root.name == "request answer"
        assert sorted(s.attributes["hotspan.stage"] for s in trace.spans) == sorted(STAGES)
        assert all(span.parent_id == root.span_id for span in trace.spans if span is not root)


def test_the_breakdown_accounts_for_the_whole_request(run_example, tmp_path):
    """The stages' shares and the unattributed rest are the request; streaming has been measured."""
    run_example("rag_script_after.py", "What does the nonlocal statement do?")

    report = hotspan.analyse(hotspan.load(tmp_path / "rag.jsonl"))

    shares = [row.critical_path_ratio for row in report.stages if row.critical_path_ratio is not None]
    assert report.request.n == 1
    assert {row.stage for row in report.stages} == STAGES
    assert sum(shares) + report.unattributed.critical_path_ratio == pytest.approx(1)
    assert report.generation.status["ok"] == 1
    assert report.generation.ttft_ns.n == 1
    assert report.generation.tokens.is_estimated
