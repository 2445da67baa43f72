"""Renderers of a report, one per format."""
