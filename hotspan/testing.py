"""The test kit for programs that use Hotspan; see `hotspan.tracer.testing`."""

from hotspan.tracer.testing import Captured, FakeClock, build_trace, capture, deterministic_ids

__all__ = ["Captured", "FakeClock", "build_trace", "capture", "deterministic_ids"]
