"""Either client, connected."""

from __future__ import annotations

from typing import Any

import openai_drivers
import pytest
from drivers import Awaiting, Blocking

import hotspan


@pytest.fixture(params=[Blocking, Awaiting])
def connect(request):
    """A maker of drivers of either client, which are closed after the test."""
    opened: list[Any] = []

    def make(url: str, **options: Any) -> Any:
        opened.append(request.param(url, **options))
        return opened[-1]

    yield make
    for driver in opened:
        driver.close()


@pytest.fixture(params=[openai_drivers.Blocking, openai_drivers.Awaiting])
def connect_openai(request):
    """A maker of drivers of either client of the openai package, traced, which are closed after the test."""
    opened: list[Any] = []

    def make(server: Any, **options: Any) -> Any:
        opened.append(request.param(server.url, **options))
        return opened[-1]

    yield make
    for driver in opened:
        driver.close()


@pytest.fixture(scope="session")
def plain():
    """A model as transformers made it."""
    from local_models import load  # noqa: PLC0415 - needs torch

    return load()


@pytest.fixture(scope="session")
def model():
    """A traced model."""
    from local_models import load  # noqa: PLC0415 - needs torch

    return hotspan.trace_transformers(load(), name="tiny")


@pytest.fixture(scope="session")
def tokenizer():
    """The tiny model's tokenizer, padding on the left as generation needs it."""
    import transformers  # noqa: PLC0415 - an optional package

    from hotspan.pipelines.engines.tiny_model import tiny_model_folder  # noqa: PLC0415 - the same

    return transformers.AutoTokenizer.from_pretrained(tiny_model_folder(), padding_side="left")


@pytest.fixture(scope="session")
def prompt(tokenizer):
    """One prompt."""
    return dict(tokenizer(["What is a list?"], return_tensors="pt"))


@pytest.fixture(scope="session")
def prompts(tokenizer):
    """Two prompts, the second one padded."""
    return dict(tokenizer(["What is a list?", "Hi"], return_tensors="pt", padding=True))
