"""Engines: how the reference pipelines get a model to talk to."""
