"""Where a contender is to send its spans; standard library only, for it is read in every environment."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

Kind = Literal["drop", "file", "otlp", "hang", "keep"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where spans go in one measurement.

    Attributes:
        kind: `"drop"`: nowhere, by the cheapest exporter that the library takes.  `"file"`: to `path`.
            `"otlp"`: to `url`, whose collector counts and forgets.  `"hang"`: to `url`, which never answers.
            `"keep"`: to where the contender's `accounts` reads them.
        url: Base URL of a collector on the loopback interface.
        path: A file that is not there yet, in a scratch folder.
        n_spans: Spans that will come, for a library that bounds how many it holds.
    """

    kind: Kind
    url: str
    path: str
    n_spans: int = 0

    def to_json(self) -> str:
        """Return the text from which `from_json` makes the same target."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Target:
        """Return the target that `to_json` wrote."""
        return cls(**json.loads(text))
