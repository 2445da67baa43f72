"""The phases of many plain model calls at once: one attempt, its client's stamps, and no account of a server.

The twin of `phases_of` for such calls, in columns; the tests hold the two against each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hotspan.analysis.model import PHASES
from hotspan.analysis.phases import CLIENT, REMAINDER, STAMPS, TO_THE_END
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotspan.analysis.columns import Longs

_N_STAMPS: Final = len(STAMPS)
_LAST: Final = STAMPS.index(semconv.LAST_TOKEN_NS)
_DECODE: Final = PHASES.index("decode")
_SOURCES: Final = {
    "connect": CLIENT,
    "send": CLIENT,
    "first_token_wait": CLIENT,
    "decode": CLIENT,
    "stream_overhead": REMAINDER,
    "consumer_hold": CLIENT,
    "backoff": CLIENT,
    "unattributed": REMAINDER,
}


def plain_sources(phases: Longs, stamps: Longs, code_of: Callable[[str], int]) -> Longs:
    """Return where each phase was read, as a code; -1 for one that is not known.

    Args:
        phases: As `plain_phases` returns them.
        stamps: The same as there.
        code_of: The code of a source.
    """
    codes = [code_of(_SOURCES[name]) if name in _SOURCES else -1 for name in PHASES]
    sources = np.where(phases >= 0, codes, -1)
    is_open = (stamps[:, _LAST] < 0) & (phases[:, _DECODE] >= 0)
    sources[is_open, _DECODE] = code_of(TO_THE_END)
    return sources


def plain_phases(durations: Longs, stamps: Longs) -> Longs:
    """Return the phases of each call, in the order of `PHASES`; -1 for one that is not known.

    Args:
        durations: Of the calls, ns.
        stamps: A row a call, in the order of `STAMPS`, -1 for none.
    """
    connect, backoff, send_offset, write, _, first, last, hold = (stamps[:, i] for i in range(_N_STAMPS))
    offset = np.where(send_offset < 0, np.maximum(connect, 0) + np.maximum(backoff, 0), send_offset)
    before_send = np.minimum(offset, durations)
    backed_off = np.minimum(np.maximum(backoff, 0), before_send)
    connected = np.minimum(np.maximum(connect, 0), before_send - backed_off)
    has_token = first >= 0
    room = durations - before_send
    sent = np.minimum(np.maximum(write, 0), np.where(has_token, np.minimum(first, room), room))
    left = room - sent

    wait = np.where(has_token, np.minimum(np.maximum(first - sent, 0), left), 0)
    is_stream = has_token & ~((last >= 0) & (last < first))
    after = np.where(is_stream, left - wait, 0)
    stream = np.where(last < 0, after, np.minimum(last - first, after))
    stream = np.where(is_stream, stream, 0)
    in_tail = np.minimum(np.maximum(hold, 0), after - stream)
    in_stream = np.minimum(np.maximum(hold, 0) - in_tail, stream)
    held = np.where(has_token, in_tail + in_stream, np.minimum(np.maximum(hold, 0), left))
    known = {
        "connect": (connected, connect >= 0),
        "send": (sent, write >= 0),
        "first_token_wait": (wait, has_token),
        "decode": (stream - in_stream, is_stream),
        "stream_overhead": (after - (stream - in_stream) - held, is_stream),
        "consumer_hold": (held, (is_stream | ~has_token) & (hold >= 0)),
        "backoff": (backed_off, backoff >= 0),
        "unattributed": (
            before_send - backed_off - connected + np.where(is_stream, 0, left - wait - held),
            np.ones(len(durations), dtype=bool),
        ),
    }
    phases = np.full((len(durations), len(PHASES)), -1, dtype=np.int64)
    for name, (ns, is_known) in known.items():
        phases[:, PHASES.index(name)] = np.where(is_known, ns, -1)
    return phases
