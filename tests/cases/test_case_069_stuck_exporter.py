"""While an exporter is stuck, ending a span waits for nothing that the exporter's thread holds."""

import threading

import hotspan
from hotspan.tracer.config import recording_to
from hotspan.tracer.settings import Settings


class Stuck:
    """Blocks until it is released."""

    def __init__(self):
        self.entered, self.release, self.n = threading.Event(), threading.Event(), 0

    def export(self, batch):
        """Block, then count."""
        self.entered.set()
        self.release.wait(30)
        self.n += len(batch)

    def shutdown(self):
        """Do nothing."""


def test_spans_end_while_the_exporter_is_stuck():
    """A thousand spans end on this thread while the exporter stays inside one call; all arrive afterwards."""
    exporter = Stuck()
    with recording_to(exporter, Settings()) as running:
        with hotspan.request():
            pass
        assert running.flush(0).ok is False
        assert exporter.entered.wait(10)
        for _ in range(1_000):
            with hotspan.step():
                pass
        assert exporter.n == 0  # still inside its first call
        exporter.release.set()
        assert running.flush(30).exported == 1_001
