"""Capture: stages, streams and model calls become spans, cheaply and without touching the program."""
