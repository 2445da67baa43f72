"""The real servers that the integration tests share."""

import pytest

from tests.integration.jaeger import Jaeger


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory):
    """A running Jaeger, one for all tests; each uses a service name of its own."""
    with Jaeger(tmp_path_factory.mktemp("jaeger")) as running:
        yield running
