"""What capture knows of the garbage collector."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

from hotspan.tracer.context import is_collecting


class _Asks:
    """A cycle whose end asks whether it is the collector that ends it."""

    def __init__(self, said: list[bool]) -> None:
        self.itself = self
        self.said = said

    def __del__(self) -> None:
        self.said.append(is_collecting())


def test_no_python_function_is_called_by_the_collector():
    """A Ctrl-C that came while a Python callback of the collector runs would be lost."""
    added = _added_by_import()

    assert set(added) <= {"builtin_function_or_method", "method-wrapper"}


def test_what_the_collector_ends_can_tell():
    """Before Python 3.12, where it matters, a finalizer learns that the collector runs."""
    said: list[bool] = []
    _Asks(said)
    gc.collect()

    assert said == [sys.version_info < (3, 12)]
    assert is_collecting() is False


def _added_by_import() -> list[str]:
    code = "import gc, hotspan; print(*(type(call).__name__ for call in gc.callbacks))"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()


def test_the_question_can_be_asked_while_other_threads_collect():
    """Whatever another thread does between two steps of the question, it is answered."""
    interval, stop, wrong = sys.getswitchinterval(), threading.Event(), []

    def ask():
        try:
            while not stop.is_set():
                is_collecting()
        except Exception as exc:  # noqa: BLE001 - it is what must not be
            wrong.append(exc)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for _ in range(2_000):
            gc.collect(0)
    finally:
        stop.set()
        sys.setswitchinterval(interval)
    for thread in threads:
        thread.join()

    assert wrong == []
