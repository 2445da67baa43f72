"""No test leaves anything behind: a thread, an open stream, a current context, a changed provider."""

import gc
import os
import signal
import threading

import hypothesis
import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace as otel

import hotspan
from hotspan.tracer import config, streaming

# No test depends on how fast the machine is; and in CI, where nobody can look at what a random example found,
# the examples are the same every time.
hypothesis.settings.register_profile("hotspan", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("hotspan")

# A shell that runs the tests in the background makes them ignore Ctrl-C, and every program that they start
# and interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Leave what the test modules imported (torch, for some) out of the collections that tests ask for."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_leaks(monkeypatch):
    """What a test configured ends with it, and what it left open makes it fail."""
    for variable in ("HOTSPAN_FILE", "HOTSPAN_DISABLED", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
    provider, context = otel.get_tracer_provider(), otel_context.get_current()
    threads = set(threading.enumerate())
    yield
    if streaming._open:  # noqa: SLF001 - nothing public tells
        gc.collect()
    hotspan.shutdown()
    config._configured = False  # noqa: SLF001 - the next test begins unconfigured
    assert not streaming._open, "streams are open"  # noqa: SLF001 - nothing public tells
    assert otel.get_tracer_provider() is provider, "the global tracer provider was replaced"
    assert otel_context.get_current() is context, "a context was left current"
    for thread in set(threading.enumerate()) - threads:
        if thread.name.startswith("hotspan-"):
            thread.join(5)
            assert not thread.is_alive(), f"{thread.name} runs on"
