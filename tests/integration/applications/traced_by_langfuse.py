"""Langfuse's decorators, and its drop-in for the openai client."""

from langfuse import Langfuse, get_client, observe
from langfuse.openai import OpenAI

KINDS = {"request": "chain", "retrieval": "retriever", "rerank": "span", "agent": "agent", "tool": "tool"}


def set_up(url):
    """Make the client, and return what decorates a function and what makes a client of the model."""
    Langfuse(public_key="pk-lf-none", secret_key="sk-lf-none", base_url=url)  # noqa: S106 - no secret
    return lambda kind, name: observe(name=name, as_type=KINDS[kind]), OpenAI


def finish():
    """Wait until everything was sent."""
    get_client().flush()
