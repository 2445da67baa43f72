"""One call of `generate`: what it was asked for, its prompts, and the tokens that it hands out.

generate            prompt            token             token             return
|-------------------|-----------------|-----------------|------ … --------|
inputs are prepared   cache, first      one pass each
pass: prefill
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import clock, semconv
from hotspan.tracer.clients.local_call import LocalCall, start_generation
from hotspan.tracer.engines import transformers
from hotspan.tracer.faults import fault
from hotspan.tracer.usage import field

if TYPE_CHECKING:
    import inspect

_PROMPTS: Final = ("inputs", "input_ids", "inputs_embeds")
_OPERATION: Final = "text_completion"
_MATRIX: Final = 2  # dimensions of token ids: prompts, positions


class Options:
    """What a call of `generate` is asked for, by whichever of three: argument, `generation_config`, model.

    Args:
        model: The model.
        bound: The call's arguments.
        is_standard: Whether `generate` is that of transformers itself, and not a model's own.
    """

    def __init__(self, model: Any, bound: inspect.BoundArguments, *, is_standard: bool) -> None:
        further = next((p.name for p in bound.signature.parameters.values() if p.kind is p.VAR_KEYWORD), "")
        self._given = {**bound.arguments, **bound.arguments.get(further, {})}
        self._configs = (self._given.get("generation_config"), getattr(model, "generation_config", None))
        self._is_standard = is_standard and not self._is_otherwise_decoded()
        self.is_encoder_decoder = bool(getattr(model.config, "is_encoder_decoder", False))
        self.has_streamer = self._given.get("streamer") is not None
        self.n_prompts, self.prompt_tokens = self._prompts()
        self.n_answers = int(self.get("num_return_sequences") or 1)

    def get(self, name: str) -> Any:
        """Return an option, None where nobody says."""
        for source in (self._given, *self._configs):
            if source is not None and (value := field(source, name)) is not None:
                return value
        return None

    def _is_otherwise_decoded(self) -> bool:
        return self.get("custom_generate") is not None or self.get("cache_implementation") == "paged"

    @property
    def hands_out_tokens(self) -> bool:
        """Whether the call takes a streamer, and what it hands to it is known."""
        return self._is_standard and (self.get("num_beams") or 1) == 1

    @property
    def n_not_generated(self) -> int | None:
        """How many tokens of a result's rows were there before; None where that is not known."""
        if not self._is_standard:
            return None
        if self.is_encoder_decoder:
            start = self.get("decoder_input_ids")
            return 1 if start is None else int(start.shape[1])
        prompt = self._prompt()
        if prompt is None:
            return 1  # the token that begins a text
        return 0 if prompt[0] == "inputs_embeds" else int(prompt[1].shape[1])

    def _prompt(self) -> tuple[str, Any] | None:
        return next(
            ((name, self._given[name]) for name in _PROMPTS if self._given.get(name) is not None), None
        )

    def _prompts(self) -> tuple[int, list[int | None]]:
        """Return the number of prompts, and the tokens of each, padding left out."""
        prompt = self._prompt()
        if prompt is None:
            return 1, [None]
        name, values = prompt
        if not hasattr(values, "shape"):
            return 1, [None]  # of a model's own `generate`, and known to it alone
        n = int(values.shape[0])
        if len(values.shape) != _MATRIX + (name == "inputs_embeds"):
            return n, [None] * n  # sound or pictures
        mask = self._given.get("attention_mask")
        if mask is not None and tuple(mask.shape) == tuple(values.shape[:_MATRIX]):
            return n, [int(tokens) for tokens in mask.sum(-1).tolist()]
        return n, [int(values.shape[1])] * n

    def request_attributes(self) -> dict[str, Any]:
        """Return what a span says of the request."""
        sampled = bool(self.get("do_sample"))
        return {
            semconv.REQUEST_STREAM: self.has_streamer,
            semconv.REQUEST_MAX_TOKENS: self.get("max_new_tokens"),
            semconv.REQUEST_TEMPERATURE: self.get("temperature") if sampled else None,
            semconv.REQUEST_TOP_K: self.get("top_k") if sampled else None,
        }

    def end_tokens(self) -> frozenset[int]:
        """Return the ids of the tokens that end an answer."""
        ids = self.get("eos_token_id")
        ids = ids.tolist() if hasattr(ids, "tolist") else ids
        if ids is None:
            return frozenset()
        return frozenset(ids if isinstance(ids, (list, tuple, set)) else [ids])


class _Answer:
    """One row of the batch: an answer to a prompt, and how far it is."""

    __slots__ = ("ended_ns", "n_tokens", "stamps")

    def __init__(self) -> None:
        self.stamps: list[int] = []  # one a step
        self.n_tokens = 0
        self.ended_ns = 0  # when its end token came, on the process's clock

    def finish_reason(self, max_tokens: Any) -> str | None:
        """Return why it ended, as far as that is known: other criteria of the user's may have ended it."""
        if self.ended_ns:
            return "stop"
        return "length" if isinstance(max_tokens, int) and self.n_tokens >= max_tokens else None


class Batch:
    """The prompts of one call of `generate`, one span each.

    Args:
        model: The model's name.
        options: What the call is asked for.
    """

    def __init__(self, model: str, options: Options) -> None:
        self.streamer: TokenStreamer | None = None
        self._options = options
        self._end_tokens = options.end_tokens()
        request = options.request_attributes()
        engine = transformers.ENGINE.name
        self._calls = [
            LocalCall(start_generation(engine, _OPERATION, model, request)) for _ in range(options.n_prompts)
        ]
        self._answers = [_Answer() for _ in self._calls for _ in range(options.n_answers)]
        self._prompt_ns = self._token_ns = 0

    @property
    def is_recording(self) -> bool:
        """Whether any of the spans will be written."""
        return any(call.span.recording for call in self._calls)

    def enter(self) -> object:
        """Make the span current, where the call has one prompt: what happens inside belongs to it."""
        return self._calls[0].span.enter() if len(self._calls) == 1 else None

    def leave(self, token: object) -> None:
        """Undo `enter`."""
        if token is not None:
            self._calls[0].span.leave(token)

    def take(self, now_ns: int, held_ns: int, values: Any) -> None:
        """Take what `generate` hands out: the prompt first, then tokens, of shape (rows,) or (rows, n).

        Args:
            now_ns: When.
            held_ns: How long the user's streamer has held the call up so far; stamps are without it.
            values: A tensor on the CPU.
        """
        if not self._prompt_ns:
            self._prompt_ns = now_ns - held_ns
            return
        # Hot: once a step for each row.  What is made of the stamps can wait for the end.
        self._token_ns = now_ns
        stamp_ns, ends = now_ns - held_ns, self._end_tokens
        for answer, row in zip(self._answers, values.tolist(), strict=False):
            if answer.ended_ns or row == []:
                continue  # padding, until the other rows end
            answer.stamps.append(stamp_ns)
            tokens = row if type(row) is list else (row,)
            answer.n_tokens += len(tokens)
            if not ends.isdisjoint(tokens):
                answer.ended_ns = now_ns

    def end(self, result: Any) -> None:
        """End the spans of a call that returned."""
        if self.streamer is None and self.is_recording:
            self._count(result)
        for number, call in enumerate(self._calls):
            answers = self._answers_of(number)
            self._account(call, answers, self._options.prompt_tokens[number])
            ended_ns = max(answer.ended_ns for answer in answers)
            is_early = all(answer.ended_ns for answer in answers) and ended_ns < self._token_ns
            call.end(end_ns=ended_ns if is_early else None)

    def end_by(self, exc: BaseException) -> None:
        """End the spans of a call that an exception ended."""
        for number, call in enumerate(self._calls):
            self._account(call, self._answers_of(number), self._options.prompt_tokens[number])
            call.end_by(exc)

    def _answers_of(self, number: int) -> list[_Answer]:
        n = self._options.n_answers
        return self._answers[number * n : (number + 1) * n]

    def _account(self, call: LocalCall, answers: list[_Answer], prompt_tokens: int | None) -> None:
        max_tokens = self._options.get("max_new_tokens")
        finished = [
            {"index": index, "finish_reason": answer.finish_reason(max_tokens)}
            for index, answer in enumerate(answers)
        ]
        n_tokens = sum(answer.n_tokens for answer in answers) or None
        call.tokens.read_whole({
            "choices": finished,
            "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": n_tokens},
        })  # fmt: skip
        call.stamps = [answer.stamps for answer in answers]
        if any(call.stamps):
            first_ns = min(stamps[0] for stamps in call.stamps if stamps)
            last_ns = max(stamps[-1] for stamps in call.stamps if stamps)
            call.details[semconv.ACCOUNT_SOURCE] = transformers.ENGINE.response_field
            call.details[semconv.ACCOUNT_PREFILL_NS] = first_ns - self._prompt_ns
            call.details[semconv.ACCOUNT_DECODE_NS] = last_ns - first_ns
        if self._options.has_streamer and self.streamer is not None:
            call.details[semconv.STREAM_HOLD_NS] = self.streamer.held_ns

    def _count(self, result: Any) -> None:
        """Count the tokens of a result of which none was handed out."""
        n_before = self._options.n_not_generated
        sequences = getattr(result, "sequences", result)
        if n_before is None or len(getattr(sequences, "shape", ())) != _MATRIX:
            return
        for answer, row in zip(self._answers, sequences[:, n_before:].tolist(), strict=False):
            end = next((at for at, token in enumerate(row) if token in self._end_tokens), None)
            answer.n_tokens = len(row) if end is None else end + 1
            answer.ended_ns = 0 if end is None else clock.now_ns()


class TokenStreamer:
    """What `generate` hands tokens to: they are stamped, and go on to the user's streamer if there is one.

    Attributes:
        held_ns: How long the user's streamer has held the call up.
    """

    def __init__(self, batch: Batch, streamer: Any) -> None:
        self.held_ns = 0
        self._batch, self._streamer = batch, streamer

    @property  # type: ignore[misc]  # for isinstance()
    def __class__(self) -> type:
        return TokenStreamer if self._streamer is None else type(self._streamer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._streamer, name)

    def put(self, value: Any) -> None:
        """Take the prompt, then the tokens of one step."""
        now_ns = clock.now_ns()
        try:
            self._batch.take(now_ns, self.held_ns, value)
        except Exception as own:  # noqa: BLE001 - the user's generation goes on
            fault(own)
        if self._streamer is not None:
            self._streamer.put(value)
            self.held_ns += clock.now_ns() - now_ns

    def end(self) -> None:
        """Take the end."""
        if self._streamer is not None:
            now_ns = clock.now_ns()
            self._streamer.end()
            self.held_ns += clock.now_ns() - now_ns
