"""From traces to one `Report`: composes the passes of this package."""

from __future__ import annotations

from hotspan.analysis.model import (
    PHASES,
    Amplification,
    Evidence,
    Finding,
    GenerationSummary,
    PhaseRow,
    Report,
    RequestSummary,
    StageRow,
    TokenCounts,
    Unattributed,
    WhatIf,
)
from hotspan.analysis.percentiles import Distribution, PerRequest

__all__ = [
    "PHASES",
    "Amplification",
    "Distribution",
    "Evidence",
    "Finding",
    "GenerationSummary",
    "PerRequest",
    "PhaseRow",
    "Report",
    "RequestSummary",
    "StageRow",
    "TokenCounts",
    "Unattributed",
    "WhatIf",
]
