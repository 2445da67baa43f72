"""Counts of tokens that say nothing."""

import pytest

from hotspan.analysis.dialects import translate
from hotspan.tracer import semconv
from hotspan.tracer.testing import build_trace


@pytest.mark.parametrize(
    ("prompt", "output", "found"),
    [
        pytest.param(0, 0, {}, id="a-stream-without-usage"),
        pytest.param(0, None, {}, id="no-answer-said"),
        pytest.param(9, 0, {semconv.INPUT_TOKENS: 9, semconv.OUTPUT_TOKENS: 0}, id="an-empty-answer"),
        pytest.param(0, 5, {semconv.INPUT_TOKENS: 0, semconv.OUTPUT_TOKENS: 5}, id="an-answer-was-counted"),
    ],
)
def test_a_prompt_of_no_tokens_was_not_counted(prompt, output, found):
    """Zeros stand for what a server did not tell: they are no counts, and lower no mean."""
    said = {"llm.token_count.prompt": prompt, "llm.token_count.completion": output}
    said = {key: value for key, value in said.items() if value is not None}
    trace = build_trace(("m", 0, 100), attributes={"m": {"openinference.span.kind": "LLM"} | said})
    (span,) = translate(trace.spans)

    assert {key: value for key, value in span.attributes.items() if key.startswith("gen_ai.usage")} == found


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"gen_ai.usage.prompt_tokens": "9" * 5000}, id="five-thousand-digits"),
        pytest.param({"langfuse.observation.usage_details": "[" * 50_000}, id="deep-json"),
        pytest.param({"mlflow.chat.tokenUsage": '{"a":' * 50_000}, id="deeper-json"),
    ],
)
def test_what_is_no_count_ends_nothing(said):
    """Whatever stands where a count is looked for, the span is read without it."""
    trace = build_trace(("m", 0, 100), attributes={"m": {"gen_ai.operation.name": "chat"} | said})
    (span,) = translate(trace.spans)

    assert semconv.INPUT_TOKENS not in span.attributes
