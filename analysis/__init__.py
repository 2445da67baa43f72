"""Analysis: read, repair, measure.  Pure functions over frozen traces.

The names come with their first use: a process that reads a part of a file needs no report.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotspan.analysis.readers import load
    from hotspan.analysis.report import Report, analyse
    from hotspan.analysis.selection import select
    from hotspan.analysis.skew import adjust_skew
    from hotspan.analysis.where import parse_where

__all__ = ["Report", "adjust_skew", "analyse", "load", "parse_where", "select"]

_LAZY = {
    "Report": "report",
    "adjust_skew": "skew",
    "analyse": "report",
    "load": "readers",
    "parse_where": "where",
    "select": "selection",
}


if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        module = _LAZY.get(name)
        if module is None:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return value
