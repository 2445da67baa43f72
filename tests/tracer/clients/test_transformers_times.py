"""`trace_transformers`: every token has its time, and the model accounts for itself."""

from itertools import pairwise

import pytest

import hotspan
from hotspan.testing import FakeClock, capture
from hotspan.tracer import semconv

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from local_models import N, Recording, ending, load, step_by

pytestmark = pytest.mark.rag

MS = 1_000_000


# --- Times ------------------------------------------------------------------------------------------------


def test_every_token_is_stamped_and_the_model_accounts_for_itself(model, prompt):
    """First pass 100 ms, each other one 10 ms: the figures are exact, streamed or not."""
    with FakeClock() as clock, capture() as captured:
        model.generate(**prompt, **step_by(clock))
    (span,) = captured.spans
    said = span.attributes

    assert (span.name, span.duration_ns) == ("text_completion tiny", 150 * MS)
    assert (said[semconv.TTFT_NS], said[semconv.TPOT_NS]) == (100 * MS, 10 * MS)
    assert list(said[semconv.CHUNK_GAPS_NS]) == [10 * MS] * (N - 1)
    assert (said[semconv.ACCOUNT_PREFILL_NS], said[semconv.ACCOUNT_DECODE_NS]) == (100 * MS, 50 * MS)
    assert (said[semconv.INPUT_TOKENS], said[semconv.OUTPUT_TOKENS]) == (prompt["input_ids"].shape[1], N)
    assert (said[semconv.REQUEST_STREAM], said[semconv.ENGINE]) == (False, "transformers")
    assert list(said[semconv.FINISH_REASONS]) == ["length"]
    assert semconv.STREAM_HOLD_NS not in said


def test_a_slow_streamer_holds_the_call_up_and_slows_no_token(model, prompt):
    """What the user's streamer takes is hold: 8 calls of 50 ms, beside the 150 of the model."""
    with FakeClock() as clock, capture() as captured:
        streamer = Recording(lambda: clock.advance(ms=50))
        model.generate(**prompt, **step_by(clock), streamer=streamer)
    (span,) = captured.spans
    said = span.attributes

    assert (said[semconv.REQUEST_STREAM], said[semconv.STREAM_HOLD_NS]) == (True, (N + 1) * 50 * MS)
    assert span.duration_ns == (150 + (N + 1) * 50) * MS
    assert (said[semconv.TTFT_NS], said[semconv.TPOT_NS]) == (100 * MS, 10 * MS)
    assert (said[semconv.ACCOUNT_PREFILL_NS], said[semconv.ACCOUNT_DECODE_NS]) == (100 * MS, 50 * MS)


def test_real_times_are_in_order(model, prompt):
    """On the real clock: prefill within the first token, tokens within the call."""
    with capture() as captured:
        model.generate(**prompt, max_new_tokens=N)
    (span,) = captured.spans
    said = span.attributes
    stamps = (0, said[semconv.ACCOUNT_PREFILL_NS], said[semconv.TTFT_NS], said[semconv.LAST_TOKEN_NS])

    assert all(earlier < later for earlier, later in pairwise((*stamps, span.duration_ns)))
    assert said[semconv.ACCOUNT_DECODE_NS] == said[semconv.LAST_TOKEN_NS] - said[semconv.TTFT_NS]


def test_beams_have_no_token_times(plain, model, prompt):
    """`generate` hands out none there and refuses a streamer: the tokens are counted, the times are null."""
    with capture() as captured:
        model.generate(**prompt, max_new_tokens=N, num_beams=2)
        for one in (plain, model):
            with pytest.raises(ValueError, match="streamer"):
                one.generate(**prompt, max_new_tokens=N, num_beams=2, streamer=Recording())
    whole, refused = captured.spans

    assert whole.attributes[semconv.OUTPUT_TOKENS] == N
    assert not {semconv.TTFT_NS, semconv.TPOT_NS, semconv.ACCOUNT_SOURCE} & whole.attributes.keys()
    assert refused.status == "error"


def test_several_tokens_of_one_step_are_one_chunk(model, prompt):
    """Candidate tokens that are accepted together come at one moment; their number is right all the same."""
    ids = prompt["input_ids"].repeat(1, 6)
    with capture() as captured:
        result = model.generate(ids, max_new_tokens=24, prompt_lookup_num_tokens=4)
    (span,) = captured.spans

    n_tokens = result.shape[1] - ids.shape[1]
    assert span.attributes[semconv.OUTPUT_TOKENS] == n_tokens
    assert 1 <= span.attributes[semconv.CHUNKS] <= n_tokens


def test_an_assistant_is_part_of_the_same_call(model, prompt):
    """A second traced model that drafts inside `generate` makes no span of its own."""
    assistant = hotspan.trace_transformers(load(), name="assistant")
    with capture() as captured:
        model.generate(**prompt, max_new_tokens=N, assistant_model=assistant)

    assert [span.name for span in captured.spans] == ["text_completion tiny"]


# --- Batches ----------------------------------------------------------------------------------------------


def test_each_prompt_of_a_batch_is_a_call(model, prompts, tokenizer):
    """Its own prompt tokens (without padding), its own end: here one answer ends at its third token."""
    end = tokenizer.eos_token_id
    with FakeClock() as clock, capture() as captured:
        options = step_by(clock)
        options["logits_processor"].append(ending(0, 2, end))
        model.generate(**prompts, **options, eos_token_id=end, pad_token_id=0)
    short, long = sorted(captured.spans, key=lambda span: span.duration_ns)

    assert short.attributes[semconv.INPUT_TOKENS] == int(prompts["attention_mask"][0].sum())
    assert long.attributes[semconv.INPUT_TOKENS] == int(prompts["attention_mask"][1].sum())
    assert [list(span.attributes[semconv.FINISH_REASONS]) for span in (short, long)] == [["stop"], ["length"]]
    assert [span.attributes[semconv.OUTPUT_TOKENS] for span in (short, long)] == [3, N]
    assert [span.duration_ns for span in (short, long)] == [120 * MS, 150 * MS]
    assert [span.attributes[semconv.ACCOUNT_DECODE_NS] for span in (short, long)] == [20 * MS, 50 * MS]


def test_several_answers_to_one_prompt_are_one_call(model, prompts):
    """Gaps and time per token are those of each answer, the tokens those of all."""
    with FakeClock() as clock, capture() as captured:
        model.generate(**prompts, **step_by(clock), do_sample=True, num_return_sequences=3)

    assert len(captured.spans) == 2
    for span in captured.spans:
        assert span.attributes[semconv.OUTPUT_TOKENS] == 3 * N
        assert span.attributes[semconv.TPOT_NS] == 10 * MS
        assert list(span.attributes[semconv.CHUNK_GAPS_NS]) == [10 * MS] * 3 * (N - 1)


def test_an_encoder_decoder_counts_what_it_reads_and_what_it_writes():
    """The prompt goes to the encoder; the token that starts the answer is none of it."""
    config = transformers.T5Config(
        vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    model = hotspan.trace_transformers(transformers.T5ForConditionalGeneration(config).eval(), name="t5")
    with capture() as captured:
        for options in ({}, {"num_beams": 2}):
            model.generate(torch.tensor([[5, 6, 7]]), min_new_tokens=N, max_new_tokens=N, **options)

    for span in captured.spans:
        assert (span.attributes[semconv.INPUT_TOKENS], span.attributes[semconv.OUTPUT_TOKENS]) == (3, N)


def test_embeddings_as_a_prompt_are_counted(model, prompt):
    """The result then holds the new tokens alone."""
    vectors = model.get_input_embeddings()(prompt["input_ids"])
    with capture() as captured:
        model.generate(inputs_embeds=vectors, max_new_tokens=N)
        model.generate(inputs_embeds=vectors, max_new_tokens=N, num_beams=2)

    for span in captured.spans:
        assert span.attributes[semconv.INPUT_TOKENS] == prompt["input_ids"].shape[1]
        assert span.attributes[semconv.OUTPUT_TOKENS] == N


def test_an_own_way_of_decoding_has_a_duration(plain, model, prompt):
    """What a `custom_generate` hands out is not known: no token times, no tokens, and the same result."""

    def shout(model, input_ids, **_options):
        return model(input_ids=input_ids).logits.argmax(-1)

    with capture() as captured:
        result = model.generate(**prompt, custom_generate=shout, max_new_tokens=N)

    assert torch.equal(result, plain.generate(**prompt, custom_generate=shout, max_new_tokens=N))
    (span,) = captured.spans
    assert not {semconv.TTFT_NS, semconv.OUTPUT_TOKENS} & span.attributes.keys()


class Reversing(transformers.Qwen2ForCausalLM):
    """A model with a `generate` of its own, which takes what it likes."""

    def generate(self, inputs, **_options):
        """Return each prompt backwards."""
        return [one[::-1] for one in inputs]


def test_a_generate_of_the_models_own_has_a_duration(plain):
    """Nothing is known of what it takes and returns: one call, and no token is made up."""
    model = hotspan.trace_transformers(Reversing(plain.config), name="own")
    with capture() as captured:
        assert model.generate([[1, 2], [3]], max_new_tokens=N) == [[2, 1], [3]]
    (span,) = captured.spans

    assert (span.name, span.status) == ("text_completion own", "unset")
    assert not {semconv.TTFT_NS, semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS} & span.attributes.keys()
