"""One colour a stage, the same in every rendering, told apart by colour-blind readers too.

The known stages have the colours of Okabe and Ito; a stage of the user's own has one of Paul Tol's muted
scheme, chosen by its name alone, so that it stays the same from run to run.  Grey is unattributed.

Sources: Okabe & Ito, "Color Universal Design" (2008); Tol, "Colour Schemes" (SRON technical note, 2021).
"""

from __future__ import annotations

import zlib
from typing import Final

from hotspan.tracer import semconv

UNATTRIBUTED: Final = "#8a8a8a"
WARNING: Final = "#e69f00"
CRITICAL: Final = "#d55e00"

_KNOWN: Final = {
    semconv.GENERATION: "#e69f00",
    semconv.EMBEDDING: "#56b4e9",
    semconv.RETRIEVAL: "#009e73",
    semconv.RERANK: "#f0e442",
    semconv.CONTEXT_ASSEMBLY: "#cc79a7",
    semconv.TOOL: "#d55e00",
}
_OWN: Final = ("#0072b2", "#88ccee", "#117733", "#ddcc77", "#aa4499", "#44aa99", "#999933")


def colour(stage: str | None) -> str:
    """Return the colour of a stage as `#rrggbb`; grey for none, request, agent and step."""
    if stage is None or stage in semconv.ENVELOPES:
        return UNATTRIBUTED
    return _KNOWN.get(stage) or _OWN[zlib.crc32(stage.encode("utf-8", "surrogatepass")) % len(_OWN)]
