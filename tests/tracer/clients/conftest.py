"""Either client, connected."""

from __future__ import annotations

from typing import Any

import openai_drivers
import pytest
from drivers import Awaiting, Blocking


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
