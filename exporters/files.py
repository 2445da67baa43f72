"""Trace files: OTLP/JSON lines, as the OpenTelemetry Collector's file exporter writes them.

Any number of processes may append to one file.  Each batch is one write to a descriptor opened for
appending, under an advisory lock: no line is torn, and a half-written last line that a crash left behind is
closed before the next one.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hotspan.exporters import otlp_lines
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.record import Resource, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class Lines:
    """Spans that wait to be written, as text.

    Attributes:
        data: Lines of OTLP/JSON.
    """

    __slots__ = ("_n_spans", "data")

    def __init__(self, spans: Sequence[SpanRecord]) -> None:
        self._n_spans = len(spans)
        self.data = "".join(otlp_lines.lines(spans)).encode()

    def __len__(self) -> int:
        return self._n_spans


class FileExporter:
    """Appends spans to a file of OTLP/JSON lines.

    The file is opened for each batch and closed again: a child made by `fork` shares no descriptor (and so
    no lock) with its parent, and a file that was moved away by log rotation is not written to any more.
    That costs some ten microseconds per batch of hundreds of spans.

    Args:
        path: The file; made if it is not there.  Its folder must exist.  A later change of the working
            directory does not move it.
        truncate: Begin with an empty file instead of appending.
        notes: Returns what the file is to say at the end of this process beside its spans: counts, by the
            attribute's key.

    Raises:
        ConfigurationError: The file cannot be opened for writing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        truncate: bool = False,
        notes: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        if not os.fspath(path):
            msg = "The trace file's name is empty. Give a path such as 'run.jsonl'."
            raise ConfigurationError(msg)
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow a link made for rotation
        try:
            with _locked(self.path) as file:
                if truncate and _is_regular(file):
                    os.ftruncate(file, 0)
        except OSError as error:
            raise ConfigurationError(_why_not(self.path, error)) from error
        self._notes, self._before = notes, notes()

    def pack(self, spans: Sequence[SpanRecord]) -> Lines:
        """Return the spans as the text that is written; then a batch waits for the disk alone."""
        return Lines(spans)

    def export(self, spans: Lines | Sequence[SpanRecord]) -> None:
        """Append the spans, in one write.

        Raises:
            OSError: The file system took only a part, or nothing (full, gone, read-only); what it took of
                this batch was removed again.
        """
        if spans:
            self._append((spans if isinstance(spans, Lines) else Lines(spans)).data)

    def report_lost(self, n_spans: int) -> None:
        """Append a line that tells every later reader of the file that this process lost spans.

        Raises:
            OSError: As `export`.
        """
        if n_spans > 0:
            self._note({semconv.LOST_SPANS: n_spans})

    def shutdown(self) -> None:
        """Append a line with what there is to note, if there is anything.

        Raises:
            OSError: As `export`.
        """
        since = {key: count - self._before.get(key, 0) for key, count in self._notes().items()}
        if any(since.values()):
            self._note({key: count for key, count in since.items() if count})

    def _note(self, counts: Mapping[str, int]) -> None:
        attributes = {semconv.PROCESS_PID: os.getpid(), **counts}
        self._append(otlp_lines.resource_line(Resource(attributes)).encode())

    def _append(self, data: bytes) -> None:
        with _locked(self.path) as file:
            _write(file, b"\n" + data if _ends_inside_a_line(file) else data)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Yield a descriptor of the file, opened for appending and locked against other writers."""
    file = os.open(path, _FLAGS, 0o666)
    try:
        # Some file systems have no locks.  One write in append mode is whole on a local one even so.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        # Given back by name: a process forked in this moment holds the descriptor too, and so the lock.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _write(file: int, data: bytes) -> None:
    """Write all of `data`, or raise and leave none of it behind."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        n_written = len(data) - len(rest)
        if n_written and _is_regular(file):
            # Only while it is still the end of the file: a writer without a lock may have come after it.
            end = os.fstat(file).st_size
            if os.pread(file, n_written, end - n_written) == data[:n_written]:
                os.ftruncate(file, end - n_written)
        raise


def _ends_inside_a_line(file: int) -> bool:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return False
    return os.pread(file, 1, status.st_size - 1) != b"\n"


def _is_regular(file: int) -> bool:
    return stat.S_ISREG(os.fstat(file).st_mode)


def _why_not(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        folder = Path(os.path.realpath(path)).parent
        return f"The trace file {path} cannot be made: the folder {folder} does not exist. Make it first."
    if isinstance(error, IsADirectoryError):
        return f"The trace file {path} is a folder. Name a file in it, such as {path / 'run.jsonl'}."
    return f"The trace file {path} cannot be opened for writing: {error.strerror}. Choose another path."
