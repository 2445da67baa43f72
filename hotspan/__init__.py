"""Hotspan: where the time of a RAG or agent request goes, from the application through the engine."""

from __future__ import annotations
