"""When the server sends what, and who keeps to which core; standard library only, for every environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Schedule:
    """The delays of one answer, in ns from the moment at which its request arrived.

    Attributes:
        role_ns: To the first chunk, which carries a role and no token.
        first_ns: To the first token.
        gap_ns: From a token to the next.
        n_tokens: Tokens of an answer, each a chunk of its own.
    """

    role_ns: int = 5 * MS
    first_ns: int = 120 * MS
    gap_ns: int = 20 * MS
    n_tokens: int = 25

    @property
    def duration_ns(self) -> int:
        """From the request to the last token."""
        return self.first_ns + (self.n_tokens - 1) * self.gap_ns

    def due_ns(self, number: int) -> int:
        """Return when chunk `number` is due; 0 is the role's, 1 the first token's."""
        return self.first_ns + (number - 1) * self.gap_ns if number else self.role_ns

    def to_json(self) -> str:
        """Return the text from which `from_json` makes the same schedule."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """Return the schedule that `to_json` wrote."""
        return cls(**json.loads(text))


def keep_to_core(number: int) -> None:
    """Keep this process on one of the cores that it may use, where there are several and the system can."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) > 1:
            os.sched_setaffinity(0, {cores[number % len(cores)]})
