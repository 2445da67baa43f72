"""Case 048: one call written several times, and totals repeated above."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope
from hotspan.tracer.testing import build_trace


def test_one_call_written_twice_is_one_call_with_its_tokens_once():
    """The innermost model span counts; the agent's sums are no call."""
    usage = {semconv.INPUT_TOKENS: 100, semconv.OUTPUT_TOKENS: 20}
    trace = build_trace(
        ("agent", 0, 100),
        ("chain", 10, 90, "agent"),
        ("client", 20, 80, "chain"),
        stages={"agent": "agent", "chain": "generation", "client": "generation"},
        attributes={"agent": usage, "chain": usage, "client": usage},
    )

    report = analyse([trace])

    assert (report.generation.n_calls, report.generation.n_attempts) == (1, 1)
    assert (report.generation.tokens.prompt, report.generation.tokens.output) == (100, 20)


def test_two_instrumentations_a_framework_and_a_transport_write_two_calls_as_two():
    """Each call has four spans of three writers; the agent, its turns and the workflow repeat the sums."""
    spans, said, scopes = [("flow", 0, 1000), ("run", 0, 990, "flow")], {}, {}
    total = {"llm.token_count.prompt": 300, "llm.token_count.completion": 40}
    said["flow"] = {"openinference.span.kind": "CHAIN", **total}
    said["run"] = {"openinference.span.kind": "AGENT", "agent.name": "a", **total}
    for turn, prompt in ((0, 100), (1, 200)):
        start = 500 * turn
        names = [f"{name}{turn}" for name in ("turn", "model", "chat", "POST")]
        spans += [
            (name, start + depth, start + 400 - depth, parent)
            for depth, (name, parent) in enumerate(zip(names, ["run", *names], strict=False))
        ]
        usage = {"llm.token_count.prompt": prompt, "llm.token_count.completion": 20, "output.value": "…"}
        said[names[0]] = {"openinference.span.kind": "CHAIN", **usage}
        said[names[1]] = {"openinference.span.kind": "LLM", **usage}
        said[names[2]] = {
            "gen_ai.operation.name": "chat",
            semconv.INPUT_TOKENS: prompt,
            semconv.OUTPUT_TOKENS: 20,
        }
        said[names[3]] = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
        scopes |= {names[1]: "openinference.instrumentation.langchain", names[2]: "openai_v2"}
    trace = build_trace(*spans, attributes=said)
    written = [
        span._replace(kind="client", scope=Scope(scopes.get(span.name, "app"))) for span in trace.spans
    ]

    report = analyse([type(trace)("1", written)])

    assert (report.generation.n_calls, report.generation.n_attempts) == (2, 2)
    assert (report.generation.tokens.prompt, report.generation.tokens.output) == (300, 40)
    assert {row.stage: row.n_calls for row in report.stages} == {
        "request": 1,
        "agent": 1,
        "step": 2,
        "generation": 2,
    }
