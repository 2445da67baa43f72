"""The exceptions that Hotspan raises on purpose.

    HotspanError                    base: what, where, the offending value, the next step
    ├── ConfigurationError          an argument or an environment variable cannot be used
    ├── MissingDependencyError      an optional package is not installed; names the extra
    ├── TraceFileError              a trace file cannot be read; names file and line
    ├── EngineError                 a model server did not start, answer or survive
    │   └── StreamError             a model's answer broke off or carried an error
    └── UnusableTraceError          a trace was read, but holds nothing to compute the figure from

The command line prints the message of any of them, without a traceback, and exits with 2.
"""

from __future__ import annotations


class HotspanError(Exception):
    """Base of every exception that Hotspan raises on purpose."""


class ConfigurationError(HotspanError):
    """An argument or an environment variable cannot be used."""


class MissingDependencyError(HotspanError):
    """An optional package is not installed; the message names the extra that brings it."""


class TraceFileError(HotspanError):
    """A trace file is missing, unreadable, or of no known format."""


class EngineError(HotspanError):
    """A model server did not start, did not answer, or died."""


class StreamError(EngineError):
    """A model's answer carried an error, or broke off before it was complete."""


class UnusableTraceError(HotspanError):
    """The spans were read, but nothing in them allows the figure that was asked for."""
