"""Analysis: read, repair, measure.  Pure functions over frozen traces."""

from __future__ import annotations

from hotspan.analysis.readers import load
from hotspan.analysis.report import Report, analyse
from hotspan.analysis.selection import select
from hotspan.analysis.skew import adjust_skew
from hotspan.analysis.where import parse_where

__all__ = ["Report", "adjust_skew", "analyse", "load", "parse_where", "select"]
