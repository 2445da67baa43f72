"""The embedded engine: transformers in this process, one forward pass per token in the caller's hands.

There is no worker thread: each step of the stream computes exactly one token, so what the span calls busy is
the model and what it calls hold is the consumer.  Several generations at once take turns, one forward pass
at a time; each has its own key-value cache, sampler and grammar, so none can disturb another.
"""

from __future__ import annotations

import itertools
import threading
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any, Self

import hotspan
from hotspan.pipelines.engines.base import Messages, Schema, say
from hotspan.pipelines.engines.decoding import Grammars, Sampler, TextPieces
from hotspan.pipelines.engines.optional import need, no_progress_bars, one_thread
from hotspan.pipelines.engines.tiny_model import TINY_MODEL, tiny_model_folder

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path
    from types import TracebackType

_WHAT = "The embedded engine"
_SMALL = 50_000_000  # parameters; below, one core computes a token sooner than several agree on it


def embedded_engine(model: str | None = None, *, seed: int = 0) -> EmbeddedEngine:
    """Load a model with transformers and return an engine over it.

    Args:
        model: A folder in Hugging Face form or a model's name; None for the tiny model.
        seed: Start of the random numbers that sampling draws from; the same calls in the same order give
            the same answers.

    Raises:
        hotspan.MissingDependencyError: torch or transformers is not installed.
        hotspan.EngineError: The model cannot be loaded.
    """
    return EmbeddedEngine(model, seed=seed)


class EmbeddedEngine:
    """An `Engine` over a causal language model of transformers."""

    name = "transformers"

    def __init__(self, model: str | None = None, *, seed: int = 0) -> None:
        self._torch = need("torch", what=_WHAT)
        self._transformers = need("transformers", what=_WHAT)
        self.model = TINY_MODEL if model is None else model
        self.words_are_noise = model is None
        say(f"Loading {self.model} with transformers …")
        self._load(tiny_model_folder() if model is None else model)
        self._seeds = itertools.count(seed)
        self._turn = threading.Lock()  # held for one forward pass
        self._text = threading.Lock()  # fast tokenizers refuse to be used by two threads at once
        self._grammars = Grammars(self._tokenizer, self._n_vocabulary)
        traced = hotspan.generation(model=self.model, engine=self.name)
        self._traced_chunks = traced(self._chunks)
        self._warm_up()

    def stream(self, messages: Messages, *, max_tokens: int) -> Iterator[str]:
        """Yield the answer's text, one token's worth at a time."""
        return self._pieces(messages, max_tokens, None)

    def complete(self, messages: Messages, *, max_tokens: int, schema: Schema | None = None) -> str:
        """Return the whole answer; with a JSON schema, text that a grammar held to it."""
        return "".join(self._pieces(messages, max_tokens, schema))

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the model reads in `text`."""
        with self._text:
            return len(self._tokenizer.encode(text, add_special_tokens=False, verbose=False))

    def close(self) -> None:
        """Do nothing: the model goes when the last reference to the engine does."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _load(self, source: str | Path) -> None:
        try:
            with no_progress_bars():
                self._tokenizer = self._transformers.AutoTokenizer.from_pretrained(source)
                loaded = self._transformers.AutoModelForCausalLM.from_pretrained(source, dtype="auto")
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            msg = (
                f"The model {str(source)!r} cannot be loaded: {reason}. "
                "Give a folder in Hugging Face form, or none for the tiny model."
            )
            raise hotspan.EngineError(msg) from error
        if self._tokenizer.chat_template is None:
            msg = f"The model {str(source)!r} has no chat template. Use an instruct model."
            raise hotspan.EngineError(msg)
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._lm = loaded.to(self._device).eval()
        config = loaded.config.get_text_config()
        self._n_vocabulary = int(config.vocab_size)
        self._threads = one_thread() if loaded.num_parameters() < _SMALL else nullcontext
        self._n_context = int(getattr(config, "max_position_embeddings", 0)) or None

    def _warm_up(self) -> None:
        # The first pass pays for lazy initialisation that no later one sees; it is in no trace.
        for _ in self._chunks([{"role": "user", "content": "hello"}], 2, None):
            pass

    def _pieces(self, messages: Messages, max_tokens: int, schema: Schema | None) -> Iterator[str]:
        with closing(self._traced_chunks(messages, max_tokens, schema)) as chunks:
            for chunk in chunks:
                for choice in chunk["choices"]:
                    if text := choice["delta"]["content"]:
                        yield text

    def _chunks(
        self, messages: Messages, max_tokens: int, schema: Schema | None
    ) -> Generator[dict[str, Any], None, None]:
        """Yield the answer as OpenAI stream events: text, finish reason, and usage in a last one."""
        prompt = self._prompt(messages, max_tokens)
        sampler = Sampler(self._lm.generation_config, seed=next(self._seeds), device=self._device)
        grammar = None if schema is None else self._grammars.matcher(schema)
        pieces = TextPieces(self._decode)
        ends = self._end_tokens()
        cache = self._transformers.DynamicCache(config=self._lm.config)
        tokens, n_output, finish = prompt, 0, None
        while finish is None:
            logits = self._forward(tokens, cache)
            token = sampler.pick(logits if grammar is None else grammar.mask(logits), seen=tokens)
            n_output += 1
            grammar_done = grammar is not None and grammar.accept(token)
            if token in ends:
                text, finish = pieces.rest(), "stop"
            else:
                finish = "stop" if grammar_done else "length" if n_output >= max_tokens else None
                text = pieces.add(token) + (pieces.rest() if finish else "")
            tokens = self._torch.tensor([[token]], device=self._device)
            yield {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
        yield {"choices": [], "usage": {"prompt_tokens": prompt.shape[1], "completion_tokens": n_output}}

    def _forward(self, tokens: Any, cache: Any) -> Any:
        # Inference mode belongs to a thread: it must not stay on across a yield.
        with self._turn, self._threads(), self._torch.inference_mode():
            output = self._lm(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
            return output.logits[:, -1, :].float()

    def _prompt(self, messages: Messages, max_tokens: int) -> Any:
        if max_tokens < 1:
            msg = f"max_tokens must be at least 1, not {max_tokens!r}."
            raise hotspan.EngineError(msg)
        with self._text:
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
            ids = self._tokenizer.encode(text, add_special_tokens=False, verbose=False)
        if self._n_context is not None and len(ids) + max_tokens > self._n_context:
            msg = (
                f"{self.model}: {len(ids)} prompt tokens and {max_tokens} for the answer are more than the "
                f"model's context of {self._n_context}. Shorten the prompt or lower max_tokens."
            )
            raise hotspan.EngineError(msg)
        return self._torch.tensor([ids], device=self._device)

    def _decode(self, ids: list[int]) -> str:
        with self._text:
            return str(self._tokenizer.decode(ids, skip_special_tokens=True))

    def _end_tokens(self) -> frozenset[int]:
        configured = self._lm.generation_config.eos_token_id
        ends = configured if isinstance(configured, list) else [configured]
        return frozenset(end for end in (*ends, self._tokenizer.eos_token_id) if end is not None)
