"""Readers: from trace files to `Trace`s, one file per format, chosen by content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hotspan.analysis.readers.census import count_spans
from hotspan.analysis.readers.formats import is_plain_otlp_lines, items, items_of_lines
from hotspan.analysis.readers.items import Drafts, Flaw, Item, LostNote, OtherLines, RefusedSpan
from hotspan.analysis.readers.source import Source, all_sources
from hotspan.analysis.readers.window import Window
from hotspan.tracer import semconv
from hotspan.tracer.errors import HotspanError, UnusableTraceError
from hotspan.tracer.metric import MetricPoint
from hotspan.tracer.record import SpanRecord, Trace

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from hotspan.analysis.drafts import Draft

__all__ = ["ReadEvidence", "TraceReader", "load"]

_MAX_WARNINGS = 20
_MAX_FLAWS = 5  # kinds of them that are told apart in one file
# What a writer notes of itself, and where it is added up.
_NOTES = {
    semconv.LOST_SPANS: "n_dropped_spans",
    semconv.FAULTS: "n_faults",
    semconv.BROKEN_CALLS: "n_broken_calls",
    semconv.UNENDED_SPANS: "n_unended_spans",
}


@dataclass(slots=True)
class ReadEvidence:
    """What a reader saw beside the spans that it handed on; final when the traces are exhausted."""

    files: tuple[str, ...] = ()
    n_dropped_spans: int = 0  # that a writer noted as lost
    n_unended_spans: int = 0  # of these, open when their program ended
    n_refused_spans: int = 0  # without a usable id or time
    n_faults: int = 0  # of the tracing itself, that a writer noted
    n_broken_calls: int = 0  # to worker processes that died, that a writer noted
    n_other_lines: int = 0  # that a program printed between the spans on its console
    metrics: list[MetricPoint] = field(default_factory=list)  # of engines and GPUs, sampled during the run
    n_spilled_spans: int = 0  # that waited in a temporary file for others of their trace
    warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        """Keep a warning; of very many only the first ones and the fact."""
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(message)
        elif len(self.warnings) == _MAX_WARNINGS:
            self.warnings.append(f"more than {_MAX_WARNINGS} warnings: the rest is not shown")


class TraceReader(Iterator[Trace]):
    """Traces of one or several files, spans of one trace together wherever they lay.

    Iterate it once.  `evidence` says afterwards what was lost, refused or cut.
    """

    def __init__(self, sources: tuple[Source, ...]) -> None:
        self.evidence = ReadEvidence(files=tuple(source.name for source in sources))
        self._sources = sources
        self._failures: list[HotspanError] = []
        self._traces = self._read()
        self._has_begun = False

    def __next__(self) -> Trace:
        self._has_begun = True
        return next(self._traces)

    def _read(self) -> Iterator[Trace]:
        window = Window(count_spans(self._sources))
        is_any = False
        try:
            for trace in window.complete(self._batches()):
                is_any = True
                yield trace
        finally:
            self.evidence.n_spilled_spans = window.n_spilled
        if self.evidence.n_refused_spans and not is_any:
            raise UnusableTraceError(self._unusable())

    def _batches(self) -> Iterator[Sequence[SpanRecord | Draft]]:
        for source in self._sources:
            yield from self._spans(source)

    def file_of_lines(self, min_bytes: int) -> str | None:
        """Return the file, if it is one of so much OTLP/JSON in lines, not compressed, and nothing was read.

        It has the name under which other processes find it, too: `/dev/stdin` is another file in each.
        """
        if self._has_begun or len(self._sources) > 1 or not self._sources[0].is_plain_file():
            return None
        path = Path(self._sources[0].name).resolve()
        if not path.is_file() or path.stat().st_size < min_bytes or not is_plain_otlp_lines(self._sources[0]):
            return None
        return str(path)

    def forget(self) -> None:
        """Be as if nothing had been read."""
        self.evidence = ReadEvidence(files=self.evidence.files)

    def exhaust(self) -> None:
        """Be as if everything had been read."""
        self._traces = iter(())
        self._has_begun = True
        for source in self._sources:
            source.close()

    def spans_of_lines(
        self, lines: Iterable[tuple[int, bytes]], *, has_others: bool
    ) -> Iterator[Sequence[SpanRecord | Draft]]:
        """Yield the spans of some lines of that file, whose others were read elsewhere; note the evidence.

        Args:
            lines: Number, from 1, and text of each, in order; an empty one where others follow.
            has_others: There were spans in the others.
        """
        (source,) = self._sources
        found = items_of_lines(source, lines, self.evidence.warn, has_others=has_others)
        yield from self._sorted_out(source, found)

    def _unusable(self) -> str:
        evidence = self.evidence
        return (
            f"{', '.join(evidence.files)}: none of the spans can be used ({evidence.n_refused_spans} of "
            f"{evidence.n_refused_spans} left out). {' '.join(evidence.warnings[:1])}. Look at the writer."
        )

    def _spans(self, source: Source) -> Iterator[Sequence[SpanRecord | Draft]]:
        try:
            yield from self._sorted_out(source, items(source, self.evidence.warn))
        except HotspanError as exc:
            # Of a directory the files that hold traces are read, whatever else lies in it.
            self._failures.append(exc)
            if source.is_named or len(self._failures) == len(self._sources):
                raise
            what = str(exc).partition("; it begins with")[0].partition(". ")[0]
            self.evidence.warn(f"{what.removesuffix('.')}. The file was passed over.")

    def _sorted_out(self, source: Source, found: Iterator[Item]) -> Iterator[Sequence[SpanRecord | Draft]]:
        flaws: dict[str, list[int]] = {}
        for item in found:
            if isinstance(item, SpanRecord):
                yield (item,)
            elif isinstance(item, Drafts):
                yield item
            elif isinstance(item, RefusedSpan):
                self._refuse(source, item)
            elif isinstance(item, MetricPoint):
                self.evidence.metrics.append(item)
            elif isinstance(item, OtherLines):
                self.evidence.n_other_lines += item.n
            elif isinstance(item, Flaw):
                reason = item.reason if item.reason in flaws or len(flaws) < _MAX_FLAWS else "and others"
                flaws.setdefault(reason, []).append(item.line)
            else:
                self._note(item)
        for reason, at in flaws.items():
            times = f", {len(at):,} times" if len(at) > 1 else ""
            where = f"{source.name}:{at[0]}" if at[0] else source.name
            self.evidence.warn(f"{where}: {reason}{times}; the spans are kept without it")

    def _refuse(self, source: Source, item: RefusedSpan) -> None:
        self.evidence.n_refused_spans += 1
        if self.evidence.n_refused_spans <= _MAX_WARNINGS // 4:
            where = f"{source.name}:{item.line}" if item.line else source.name
            self.evidence.warn(f"{where}: {item.reason}; it is left out and counted as invalid")

    def _note(self, item: LostNote) -> None:
        for key, field_name in _NOTES.items():
            count = item.resource.attributes.get(key)
            if isinstance(count, int):
                setattr(self.evidence, field_name, getattr(self.evidence, field_name) + count)


def load(path: str | os.PathLike[str], *more: str | os.PathLike[str]) -> TraceReader:
    """Read the traces of files and directories; `-` is standard input.

    Every format of docs/formats.md, plain or compressed with gzip or zstd, told by its content.  Spans of one
    trace that lie in different lines or files come together.  Of a directory every file is read, and of those
    below it; one that holds no traces is passed over and said.  A half-written last line, as a killed process
    leaves it, costs itself only; that and everything else that was left out is in `.evidence`.

    Returns:
        An iterator of `Trace`, with `.evidence` after it is exhausted: in the order of first appearance; of
        more than 32 MB of OTLP/JSON in the order in which the traces are complete, so that only those which
        are not take memory.

    Raises:
        TraceFileError: A file is missing, empty, damaged, or of no format that is read; at once where it is
            the path, or standard input is named twice, else while the traces are iterated.
        UnusableTraceError: There are spans, but none with a usable id and time.
        MissingDependencyError: A file is Parquet or zstd, and the package that reads it is not installed.
    """
    return TraceReader(all_sources((path, *more)))
