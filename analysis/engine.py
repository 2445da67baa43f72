"""What an inference server says of one model call, and which call that was.

Its durations are durations only: the server's clock is not the client's, and none of its stamps is used.  One
account is used as a whole: what two routes say of one call is never mixed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from hotspan.analysis.calls import NO_OWNER, Calls, nearest
from hotspan.analysis.columns import longs, view
from hotspan.analysis.tree import NO_PARENT
from hotspan.tracer import semconv
from hotspan.tracer.engines import engine_of, response_account
from hotspan.tracer.engines.base import NO_ACCOUNT

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hotspan.analysis.call_table import CallTable
    from hotspan.analysis.generation import ModelCall
    from hotspan.analysis.tree import EngineSpan, Tree
    from hotspan.tracer.record import SpanRecord

BY_TRACE: Final = "engine span, by trace context"
BY_REQUEST_ID: Final = "engine span, by request id"
BY_RESPONSE: Final = "response's "  # and the field: metrics | timings | meta_info
BY_HEADERS: Final = "response's headers"
_WITHOUT_PHASES: Final = frozenset({semconv.EMBEDDING, semconv.RERANK})
_API_PREFIX: Final = re.compile(r"(?:chatcmpl|cmpl|resp|embd)[-_]")
# What a server may know a call by: its answer's id, the client's X-Request-Id.  vLLM makes the one of the
# other: `chatcmpl-` and the header, for chat.
NAMING: Final = (semconv.RESPONSE_ID, semconv.REQUEST_ID_HEADER)
_SERVED: Final = -1  # or ambiguous
_PART: Final = re.compile(r"[-_]\d+\Z")  # one of several prompts, or turns, of one request


@dataclass(frozen=True, slots=True)
class EngineAccount:
    """Where the server says the time of one model call went; `None` where it does not say."""

    queue_ns: int | None
    prefill_ns: int | None
    decode_ns: int | None
    request_id: str | None
    source: str
    undivided_ns: int | None = None  # queue and prefill as one, where the server does not tell them apart
    queue_source: str = ""  # where the queue was read, if elsewhere than the rest

    @property
    def is_empty(self) -> bool:
        """Whether it says no duration at all."""
        return {self.queue_ns, self.prefill_ns, self.decode_ns, self.undivided_ns} == {None}


def account_of(span: SpanRecord, source: str, below: Sequence[SpanRecord] = ()) -> EngineAccount:
    """Return the account in a server's span and in those that the server wrote below it."""
    engine = engine_of(span)
    said = NO_ACCOUNT if engine is None else engine.read_spans(span, below)
    return EngineAccount(
        said.queue_ns, said.prefill_ns, said.decode_ns, said.request_id, source, said.undivided_ns
    )


def account_in_response(spans: Iterable[SpanRecord]) -> EngineAccount | None:
    """Return what the server said of a call in its answer, as the client noted it on the call's span."""
    for span in spans:
        if (found := response_account(span.attributes)) is not None:
            name, said = found
            is_derived = said.queue_ns is not None and semconv.ACCOUNT_QUEUE_NS not in span.attributes
            return EngineAccount(
                said.queue_ns,
                said.prefill_ns,
                said.decode_ns,
                None,
                BY_RESPONSE + name,
                queue_source=BY_HEADERS if is_derived else "",
            )
    return None


@dataclass(slots=True)
class EngineJoin:
    """Gives each model call its server's account: within a trace at once, across traces at the end.

    Several that share `by_id` (the groups of a run) find each other's accounts: an engine's trace has none of
    the attributes by which requests are grouped.
    """

    n_spans: int = 0
    n_joined: int = 0
    by_id: AccountsById = field(default_factory=dict)
    names: array[int] = field(default_factory=longs)  # hashes of the calls' names: there are many
    rows: array[int] = field(default_factory=longs)  # whose each one is; `_SERVED`: not to be asked for

    def add(
        self,
        tree: Tree,
        calls: Calls,
        attempts: Mapping[int, Sequence[int]],
        model_calls: Mapping[int, ModelCall],
    ) -> None:
        """Take in the engine spans of one trace.

        Args:
            tree: The trace.
            calls: Its calls.
            attempts: Innermost spans of each generation call, by its outermost span.
            model_calls: The same calls; those of which a server says something get its account.
        """
        self.n_spans += len(tree.engine_spans)
        for engine in sorted(tree.engine_spans, key=_end_ns):
            owner = nearest(tree, calls, engine.anchor, semconv.GENERATION)
            top = owner if owner == NO_OWNER else calls.call_of(owner)
            if top not in model_calls:
                self._keep(calls, engine)
                continue
            self.n_joined += 1
            # The account of an attempt that failed says nothing about the one that answered.  Of several at
            # one span, as after a retry below it or for several answers at once, the last to end counts.
            if owner == attempts[top][-1] or owner not in attempts[top]:
                model_calls[top].engine = account_of(engine.span, BY_TRACE, engine.below)

    def _keep(self, calls: Calls, engine: EngineSpan) -> None:
        above = NO_OWNER if engine.anchor == NO_PARENT else calls.owners[engine.anchor]
        if above != NO_OWNER and calls.stages[above] in _WITHOUT_PHASES:
            self.n_joined += 1  # to a call that has no phases to divide
            return
        account = account_of(engine.span, BY_REQUEST_ID, engine.below)
        if account.request_id:
            self.by_id.setdefault(account.request_id, []).append((_end_ns(engine), account, self))

    def add_row(self, row: int, call: ModelCall) -> None:
        """Remember under which names the server may know a call, and which row the call has."""
        for name in set(_names(call)):
            self.names.append(hash(name))
            self.rows.append(row if call.engine is None else _SERVED)

    def add_names(self, first_row: int, key: str, said: Sequence[object]) -> None:
        """Remember one of `NAMING` of many calls, none of which has an account by its trace."""
        if all(said) and set(map(type, said)) == {str}:  # nearly always
            self.names.extend([hash((key, name)) for name in said])
            self.rows.extend(range(first_row, first_row + len(said)))
            return
        for row, value in enumerate(said, first_row):
            for name in set(names_in(key, value)):
                self.names.append(hash(name))
                self.rows.append(row)

    def finish(self, table: CallTable) -> None:
        """Give each call that has no account by trace the one with its request id.

        An id that several calls have, as when a gateway sends one on for all that a request does, joins none
        of them: whose account is whose cannot be told.
        """
        wanted: dict[int, set[str]] = {}
        index = self._index()
        row_of = self._rows_of([hash(name) for name in index])
        for name, request_ids in index.items():
            row = row_of.get(hash(name), _SERVED)
            if row != _SERVED:
                wanted.setdefault(row, set()).update(request_ids)
        for row in sorted(wanted):
            found = [item for request_id in sorted(wanted[row]) for item in self.by_id.pop(request_id, ())]
            if found:
                for _, _, keeper in found:  # counted where the call is
                    keeper.n_spans -= 1
                    self.n_spans += 1
                self.n_joined += len(found)
                account = max(found, key=lambda item: item[0])[1]
                if not account.is_empty:
                    table.join(row, account)

    def _rows_of(self, names: Sequence[int]) -> dict[int, int]:
        """Return the row that has a name, of the names that one waiting call alone has."""
        names_of_rows, rows = view(self.names), view(self.rows)
        found: dict[int, int] = {}
        if not names:
            return found
        asked = np.isin(names_of_rows, np.array(names, dtype=np.int64))
        for name, row in zip(names_of_rows[asked].tolist(), rows[asked].tolist(), strict=True):
            found[name] = _SERVED if name in found else row
        return found

    @staticmethod
    def part(joins: Sequence[EngineJoin]) -> None:
        """Take from joins that share accounts the names of calls that more than one of them has."""
        if not any(join.by_id for join in joins):
            return
        own = [np.unique(view(join.names)) for join in joins]
        names, n_joins = np.unique(np.concatenate(own), return_counts=True)
        for join in joins:
            view(join.rows)[np.isin(view(join.names), names[n_joins > 1])] = _SERVED

    def _index(self) -> dict[tuple[str, str], set[str]]:
        """Return the servers' ids by every name that a client may know them under."""
        index: dict[tuple[str, str], set[str]] = {}
        for request_id in self.by_id:
            for whole in {request_id, _PART.sub("", request_id)}:
                index.setdefault((semconv.RESPONSE_ID, whole), set()).add(request_id)
                bare = _API_PREFIX.sub("", whole, count=1) if _API_PREFIX.match(whole) else whole
                index.setdefault((semconv.REQUEST_ID_HEADER, bare), set()).add(request_id)
        return index


# Request id -> what engines say of it, each with the span's end and the join that counts the span.
AccountsById = dict[str, list[tuple[int, EngineAccount, EngineJoin]]]


def _names(call: ModelCall) -> Iterator[tuple[str, str]]:
    for span in call.attempts if call.is_one_span else (call.span, *call.attempts):
        for key in NAMING:
            yield from names_in(key, span.attributes.get(key))


def names_in(key: str, said: object) -> Iterator[tuple[str, str]]:
    """Yield the names under which the server may know a call, from one of `NAMING`."""
    for name in said if isinstance(said, list | tuple) else (said,):
        if isinstance(name, str) and name:
            yield key, name


def _end_ns(engine: EngineSpan) -> int:
    return engine.span.end_ns or engine.span.start_ns
