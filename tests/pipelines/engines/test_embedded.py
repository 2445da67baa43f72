"""The embedded engine: real tokens, real grammar, true spans."""

import json
import threading

import pytest

import hotspan
from hotspan.testing import capture

pytest.importorskip("torch")

from hotspan.pipelines.engines import embedded_engine
from hotspan.pipelines.engines.tiny_model import tiny_model_folder

pytestmark = pytest.mark.rag

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a list?"}]
SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"enum": ["search", "calculate"]},
        "query": {"type": "string", "maxLength": 12},
        "limits": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems": 3},
    },
    "required": ["action", "query", "limits"],
    "additionalProperties": False,
}


def test_a_streamed_answer_is_one_generation_span(embedded):
    """The span has the model, the engine, the tokens as counted by the tokenizer, and the finish reason."""
    with capture() as captured:
        text = "".join(embedded.stream(ASK, max_tokens=12))

    span = captured.one("chat tiny")
    assert text
    assert span.attributes["hotspan.engine"] == embedded.name == "transformers"
    assert span.attributes["gen_ai.request.model"] == embedded.model == "tiny"
    assert span.attributes["gen_ai.usage.output_tokens"] == 12
    assert span.attributes["gen_ai.response.finish_reasons"] == ["length"]
    assert (
        span.attributes["hotspan.generation.ttft_ns"] <= span.attributes["hotspan.generation.last_token_ns"]
    )
    assert "hotspan.generation.tokens_estimated" not in span.attributes


def test_prompt_tokens_are_those_of_the_rendered_template(embedded):
    """Two turns of text and the template's own tokens around them."""
    with capture() as captured:
        embedded.complete(ASK, max_tokens=1)
    rendered = (
        "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in ASK)
        + "<|im_start|>assistant\n"
    )

    prompt_tokens = captured.one("chat tiny").attributes["gen_ai.usage.input_tokens"]
    assert prompt_tokens == embedded.count_tokens(rendered)


def test_a_stream_that_is_left_early_is_abandoned(embedded):
    """Closing the public generator closes the traced one; the span says so."""
    with capture() as captured:
        stream = embedded.stream(ASK, max_tokens=50)
        next(stream)
        stream.close()

    assert captured.one("chat tiny").attributes["hotspan.outcome"] == "abandoned"


def test_structured_output_holds_to_the_schema(embedded):
    """Any model, even a random one, answers with an object of the schema and no idle white space."""
    for _ in range(5):
        text = embedded.complete(ASK, max_tokens=200, schema=SCHEMA)

        answer = json.loads(text)
        assert list(answer) == ["action", "query", "limits"]
        assert answer["action"] in {"search", "calculate"}
        assert len(answer["query"]) <= 12
        assert all(number in range(10) for number in answer["limits"])
        assert text == json.dumps(answer, ensure_ascii=False) or "\\" in text


def test_structured_output_ends_by_itself(embedded):
    """The end of the text is the grammar's, not the token limit's."""
    with capture() as captured:
        embedded.complete(ASK, max_tokens=200, schema=SCHEMA)

    assert captured.one("chat tiny").attributes["gen_ai.response.finish_reasons"] == ["stop"]


def test_the_same_seed_gives_the_same_answers():
    """Two engines, the same calls in the same order: the same words."""
    with embedded_engine(seed=7) as one, embedded_engine(seed=7) as two:
        assert [one.complete(ASK, max_tokens=8) for _ in range(2)] == [
            two.complete(ASK, max_tokens=8) for _ in range(2)
        ]


def test_calls_from_several_threads_do_not_disturb_each_other(embedded):
    """Each has its own cache and grammar: every answer holds to its own schema and its own length."""
    answers = {}

    def ask(number):
        schema = {
            "type": "object",
            "properties": {f"k{number}": {"type": "boolean"}},
            "required": [f"k{number}"],
        }
        if number % 2:
            answers[number] = json.loads(embedded.complete(ASK * number, max_tokens=60, schema=schema))
        else:
            answers[number] = sum(1 for _ in embedded.stream(ASK * (number + 1), max_tokens=20))

    with capture() as captured:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert all(answers[number].keys() == {f"k{number}"} for number in (1, 3, 5))
    assert all(0 < answers[number] <= 20 for number in (0, 2, 4))
    assert len(captured.spans) == 6


@pytest.mark.parametrize("n_tokens", [0, -1])
def test_an_answer_of_no_tokens_is_refused(embedded, n_tokens):
    """It would be no call at all."""
    with pytest.raises(hotspan.EngineError, match=f"at least 1, not {n_tokens}"):
        embedded.complete(ASK, max_tokens=n_tokens)


def test_a_prompt_over_the_context_is_refused_with_the_figures(embedded):
    """The span fails, and the message says by how much."""
    long = [{"role": "user", "content": "word " * 5000}]
    with capture() as captured, pytest.raises(hotspan.EngineError, match="context of 4096"):
        list(embedded.stream(long, max_tokens=5))

    assert captured.one("chat tiny").status == "error"


def test_a_model_that_is_not_there_is_one_sentence(tmp_path):
    """No traceback of a model hub."""
    with pytest.raises(hotspan.EngineError, match="cannot be loaded"):
        embedded_engine(str(tmp_path))


def test_any_model_folder_can_be_used():
    """A folder in Hugging Face form is loaded as it is, and named as the user named it."""
    with embedded_engine(str(tiny_model_folder())) as engine:
        assert engine.model == str(tiny_model_folder())
        assert not engine.words_are_noise
        assert engine.complete(ASK, max_tokens=3)
