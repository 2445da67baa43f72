"""From logits to text, one token at a time: grammar, sampling, and text that is whole characters."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from hotspan.pipelines.engines.optional import need

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotspan.pipelines.engines.base import Schema

_LONGEST_CHARACTER = 4  # bytes of one character in UTF-8: more tokens than that cannot be waited for
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Sampler:
    """Picks tokens as the model's generation config asks: greedily, or by temperature, top-k and top-p."""

    def __init__(self, config: Any, *, seed: int, device: str) -> None:
        self._torch = need("torch", what="The embedded engine")
        self._greedy = not config.do_sample
        self._random = self._torch.Generator(device).manual_seed(seed)
        self._warpers = [] if self._greedy else _warpers(config)

    def pick(self, logits: Any, *, seen: Any) -> int:
        """Return the next token for logits of shape (1, vocabulary)."""
        if self._greedy:
            return int(logits.argmax(-1))
        for warper in self._warpers:
            logits = warper(seen, logits)
        return int(self._torch.multinomial(logits.softmax(-1), 1, generator=self._random))


def _warpers(config: Any) -> list[Any]:
    transformers = need("transformers", what="The embedded engine")
    warpers = []
    if config.temperature not in (None, 1.0):
        warpers.append(transformers.TemperatureLogitsWarper(config.temperature))
    if config.top_k:
        warpers.append(transformers.TopKLogitsWarper(config.top_k))
    if config.top_p is not None and config.top_p < 1.0:
        warpers.append(transformers.TopPLogitsWarper(config.top_p))
    return warpers


class Grammars:
    """Compiled JSON schemas of one tokenizer; compiled once each, on first use."""

    def __init__(self, tokenizer: Any, n_vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self._n_vocabulary = n_vocabulary
        self._compiler: Any = None
        self._compiled: dict[str, Any] = {}
        self._lock = threading.Lock()

    def matcher(self, schema: Schema) -> GrammarMask:
        """Return a fresh mask that allows exactly the texts of `schema`.

        Raises:
            hotspan.MissingDependencyError: xgrammar is not installed.
        """
        xgrammar = need("xgrammar", what="Structured output in the embedded engine")
        key = json.dumps(schema)
        with self._lock:
            if self._compiler is None:
                info = xgrammar.TokenizerInfo.from_huggingface(self._tokenizer, vocab_size=self._n_vocabulary)
                self._compiler = xgrammar.GrammarCompiler(info)
            if key not in self._compiled:
                # No free white space: a model that knows nothing would write blanks to the end of its tokens.
                self._compiled[key] = self._compiler.compile_json_schema(key, any_whitespace=False)
        return GrammarMask(xgrammar, self._compiled[key], self._n_vocabulary)


class GrammarMask:
    """Where one answer stands in its grammar."""

    def __init__(self, xgrammar: Any, compiled: Any, n_vocabulary: int) -> None:
        self._xgrammar = xgrammar
        self._matcher = xgrammar.GrammarMatcher(compiled)
        self._bits = xgrammar.allocate_token_bitmask(1, n_vocabulary)

    def mask(self, logits: Any) -> Any:
        """Return `logits` with every token that the grammar forbids here at minus infinity."""
        self._matcher.fill_next_token_bitmask(self._bits)
        self._xgrammar.apply_token_bitmask_inplace(logits, self._bits.to(logits.device))
        return logits

    def accept(self, token: int) -> bool:
        """Take the token that was picked; return whether it ended the text."""
        self._matcher.accept_token(token)
        return bool(self._matcher.is_terminated())


class TextPieces:
    """Turns tokens into text that ends on whole characters.

    A token may hold half a character; its bytes wait for the next tokens, but no longer than a character
    can be long: bytes that are no UTF-8 come out as replacement characters.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []  # the last tokens: some already given out, then those that wait
        self._n_given = 0

    def add(self, token: int) -> str:
        """Return the text that `token` completes; "" while it waits."""
        self._ids.append(token)
        text = self._new_text()
        if text.endswith(_REPLACEMENT) and len(self._ids) - self._n_given < _LONGEST_CHARACTER:
            return ""
        return self._give(text)

    def rest(self) -> str:
        """Return what still waits, at the end of the answer."""
        return self._give(self._new_text()) if len(self._ids) > self._n_given else ""

    def _new_text(self) -> str:
        # The tokens given out last are decoded again in front: a tokenizer may write a word's first token
        # differently from one inside a text.
        before = self._decode(self._ids[: self._n_given])
        return self._decode(self._ids)[len(before) :]

    def _give(self, text: str) -> str:
        # Half a character that was given out as it is must not be decoded again: the next token's bytes
        # could complete it, and the text before would no longer be the same.
        self._ids = [] if text.endswith(_REPLACEMENT) else self._ids[self._n_given :]
        self._n_given = len(self._ids)
        return text
