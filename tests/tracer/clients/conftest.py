"""Either client, connected."""

from __future__ import annotations

from typing import Any

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
