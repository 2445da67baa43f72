"""A process that reads some of the lines, and sends what they come to: see `messages`."""

from __future__ import annotations

import gc
import os
import re
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Final

from hotspan.analysis.drafts import spans_of
from hotspan.analysis.form_batch import batches_of
from hotspan.analysis.forms import BATCH, Forms
from hotspan.analysis.parallel.messages import End, Left, Order, Read, receive, send
from hotspan.analysis.parallel.nearby import Nearby
from hotspan.analysis.parallel.ranges import UnfitError
from hotspan.analysis.readers.otlp_json import Decoder
from hotspan.analysis.readers.otlp_text import TextDecoder, trace_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.drafts import Draft
    from hotspan.analysis.forms import Form, Matched
    from hotspan.analysis.parallel.ranges import Range
    from hotspan.tracer.record import SpanRecord

_MAX_SPANS: Final = 4_096  # of traces without a form, in one message
_ANY_ID: Final = re.compile(rb'"traceId"\s*:\s*"([0-9a-f]{32})"')
_MAX_RAW_BYTES: Final = 1 << 20


def main(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Do what the pool says; end without a word when it is gone."""
    gc.disable()  # nothing here has cycles
    try:
        _Worker(orders, answers).run()
    except (KeyboardInterrupt, BrokenPipeError, EOFError, UnfitError):
        os._exit(1)  # nobody wants to hear of it: not even that the pipe cannot be flushed


class _Worker:
    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders, self._answers = orders, answers
        self._forms = Forms()
        self._numbers: dict[Form, int] = {}
        self._matched: list[Matched] = []
        self._others: list[Sequence[SpanRecord]] = []
        self._n_others = 0  # spans of them
        self._done: list[str] = []  # ids of all of these
        self._lines: list[tuple[int, bytes]] = []
        self._n_raw = 0  # bytes of them

    def run(self) -> None:
        order: Order = receive(self._orders)
        traces = Nearby(order.near_bytes, trace_ids(order.lines.before(order.near_bytes).lines()))
        n_lines = self._read(order.lines, traces)
        self._send()
        send(self._answers, End(n_lines, list(traces.foreign)))
        for drafts in traces.rest(receive(self._orders)):
            self._take(drafts)
            self._send_many()
        self._send()
        send(self._answers, Left(traces.left()))

    def _read(self, lines: Range, traces: Nearby) -> int:
        """Read all lines, and return how many there are."""
        texts = TextDecoder(Decoder())
        n_lines = 0
        for n_lines, line in enumerate(lines.lines(), start=1):
            drafts = texts.drafts(line)
            if drafts is not None:
                for complete in traces.put(drafts, len(line)):
                    self._take(complete)
            elif not (raw := bytes(line)).isspace():
                self._lines.append((n_lines, raw))
                self._n_raw += len(raw)
                traces.split({trace_id.decode() for trace_id in _ANY_ID.findall(raw)})
            self._send_many()
        return n_lines

    def _take(self, drafts: list[Draft]) -> None:
        self._done.append(drafts[0][0])
        matched = self._forms.match(drafts.copy())  # which it sorts: warnings come in the order of the lines
        if matched is None:
            self._others.append(spans_of(drafts))
            self._n_others += len(drafts)
        else:
            self._matched.append(matched)

    def _send_many(self) -> None:
        if len(self._matched) >= BATCH or self._n_others >= _MAX_SPANS or self._n_raw >= _MAX_RAW_BYTES:
            self._send()

    def _send(self) -> None:
        batches, new = [], []
        # Where another writer's call comes, nothing of what is read here is used: see `pool`.
        for batch in batches_of(self._matched, has_own_calls=False):
            if batch.form not in self._numbers:
                self._numbers[batch.form] = len(self._numbers)
                new.append(batch.form)
            batches.append((self._numbers[batch.form], replace(batch, form=None)))  # type: ignore[arg-type]  # as `Read` says
        done = bytes.fromhex("".join(self._done))
        send(self._answers, Read(new, batches, self._others, done, self._lines))
        self._matched, self._others, self._done, self._lines = [], [], [], []
        self._n_others = self._n_raw = 0
