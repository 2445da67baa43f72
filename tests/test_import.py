"""`import hotspan` is light: what is heavy comes with the first use of a name that needs it."""

import subprocess
import sys

import pytest

import hotspan

HEAVY = (
    "click", "rich", "numpy", "httpx", "msgspec", "torch", "transformers", "faiss", "openai", "grpc",
    "requests",
    "asyncio", "opentelemetry.sdk", "opentelemetry.exporter", "importlib.metadata", "uuid", "socket",
    "hotspan.analysis", "hotspan.exporters", "hotspan.pipelines", "hotspan.cli",
)  # fmt: skip
MAX_RATIO = 2.5  # of the time that `import opentelemetry.trace` takes, which Hotspan needs anyway

PROGRAM = """
import sys, time
a = time.perf_counter()
import opentelemetry.trace, opentelemetry.context, opentelemetry.trace.propagation
b = time.perf_counter()
before = set(sys.modules)
import hotspan
c = time.perf_counter()
heavy = sys.argv[1].split(",")
print(*[name for name in heavy if name in sys.modules and name not in before])
print((c - a) / (b - a))
"""


def imported():
    """Import Hotspan in a fresh interpreter; return the heavy modules that came, and the time ratio."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(HEAVY)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    names, ratio = done.stdout.split("\n")[:2]
    return names.split(), float(ratio)


def test_nothing_heavy_is_imported():
    """Neither the command line nor an exporter, a client or a numeric library comes with the package."""
    names, _ = imported()

    assert names == []


def test_import_costs_little_beside_opentelemetry():
    """The least of several imports is a small multiple of what OpenTelemetry's API takes alone."""
    assert min(imported()[1] for _ in range(5)) < MAX_RATIO


def test_public_names_are_sorted_and_there():
    """Every public name can be had, `dir` lists them, and the list is sorted."""
    assert sorted(hotspan.__all__) == hotspan.__all__ == dir(hotspan)
    for name in hotspan.__all__:
        assert getattr(hotspan, name) is not None
    assert hotspan.__version__


def test_a_wrong_name_is_an_attribute_error():
    """A name that is not there is reported as Python reports it."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hotspan.nonsense
