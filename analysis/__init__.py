"""Analysis: read, repair, measure.  Pure functions over frozen traces."""

from __future__ import annotations

from hotspan.analysis.readers import load
from hotspan.analysis.report import Report, analyse

__all__ = ["Report", "analyse", "load"]
