"""What a pipeline may ask of an engine, whatever the engine is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

Message = Mapping[str, Any]
Messages = Sequence[Message]
Schema = Mapping[str, Any]


class Engine(Protocol):
    """A model that answers chat messages; every call is traced as one `generation`.

    Calls from several threads at once are allowed.  An engine is a context manager that closes itself.
    """

    @property
    def name(self) -> str:
        """Which engine it is: `transformers`, `vllm` or `openai-compatible`."""

    @property
    def model(self) -> str:
        """The model's name, as the spans carry it."""

    @property
    def words_are_noise(self) -> bool:
        """True for the tiny random model: its timing is real, its words mean nothing."""

    def stream(self, messages: Messages, *, max_tokens: int) -> Iterator[str]:
        """Yield the answer's text, piece by piece, as the model makes it."""

    def complete(self, messages: Messages, *, max_tokens: int, schema: Schema | None = None) -> str:
        """Return the whole answer; with a JSON schema, text that the engine held to that schema.

        An answer that `max_tokens` cut short is returned as it is: JSON text may then be incomplete.
        """

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the model reads in `text`, without any chat template."""

    def close(self) -> None:
        """Give back what the engine holds.  May be called twice."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


def say(text: str) -> None:
    """Tell a person on stderr what takes long right now."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - progress for a person; a library log would hide it
