"""Exporters: where finished spans go, and how reports are rendered."""
