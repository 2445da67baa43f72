"""Traces without a stage that begin as requests of the same run do: they failed early, or needed no stage.

Most traces without a stage are a server's probes, a library's start-up, and no requests.  What tells the
two apart is the root: its service and writer, its name, and its route or address.  What an inference server
wrote tells of calls elsewhere, and is none of either.  Source: docs/definitions.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.calls import Calls
    from hotspan.analysis.forms import Form
    from hotspan.analysis.tree import Tree
    from hotspan.analysis.twins import Laid
    from hotspan.tracer.record import SpanRecord

_MAX_BEGINNINGS: Final = 1_000  # that are remembered
_MAX_WAITING: Final = 20_000  # spans
_PLACES: Final = (
    semconv.ROUTE, semconv.URL_PATH, semconv.URL_PATH_OLD, semconv.URL, semconv.URL_OLD,
)  # fmt: skip

Beginning = tuple[str, str, str, str]  # service, scope, name, and route or address of a root


@dataclass(slots=True)
class Beginnings:
    """How the requests of a run begin."""

    _known: set[Beginning] = field(default_factory=set)
    _n_waiting: int = 0  # spans
    _passed: Counter[Beginning] = field(default_factory=Counter)  # of traces that there was no room for

    def note_form(self, form: Form) -> None:
        """Remember how traces of one form begin."""
        if form.calls.stages[0] in semconv.ENVELOPES:
            self._note(form.spans[0])

    def note(self, tree: Tree, calls: Calls) -> None:
        """Remember how the requests in a trace begin."""
        for root in tree.roots:
            if calls.has_stages[root] and calls.stages[root] in semconv.ENVELOPES:
                self._note(tree.spans[root])

    def has_to_wait(self, tree: Tree) -> bool:
        """Return whether a trace without a stage is to be kept until all beginnings are known."""
        beginnings = [beginning_of(tree.spans[root]) for root in tree.roots]
        if self._known.issuperset(beginnings):
            return False
        if self._n_waiting + len(tree.spans) <= _MAX_WAITING:
            self._n_waiting += len(tree.spans)
            return True
        for beginning in beginnings:
            if beginning in self._passed or len(self._passed) < _MAX_BEGINNINGS:
                self._passed[beginning] += 1
        return False

    def applied(self, laid: Laid) -> Laid:
        """Return a trace without a stage as it counts; a root that begins as requests do is taken for one."""
        roots = {root for root in laid.tree.roots if beginning_of(laid.tree.spans[root]) in self._known}
        has_stages = [index in roots for index in range(len(laid.tree.spans))]
        return laid._replace(calls=replace(laid.calls, has_stages=has_stages))

    def warnings(self) -> Iterator[str]:
        """Say what came before it could be told from other traces without a stage."""
        names = [beginning[2] for beginning in self._passed if beginning in self._known]
        n = sum(n for beginning, n in self._passed.items() if beginning in self._known)
        if n:
            yield (
                f"{n} traces without a stage begin as requests do ({names[0]!r}); there was no room for so "
                "many, and they are in no figure"
            )

    def _note(self, root: SpanRecord) -> None:
        if len(self._known) < _MAX_BEGINNINGS:
            self._known.add(beginning_of(root))


def beginning_of(root: SpanRecord) -> Beginning:
    """Return how a trace begins, from its root."""
    place = next((root.attributes[key] for key in _PLACES if key in root.attributes), "")
    return str(root.resource.attributes.get(semconv.SERVICE_NAME)), root.scope.name, root.name, str(place)
