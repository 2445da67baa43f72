"""Headers that cannot be sent are refused where they are given, and never shown."""

from __future__ import annotations

import httpx
import pytest

from hotspan import AsyncLLMClient, LLMClient
from hotspan.tracer.clients.headers import request_headers
from hotspan.tracer.errors import ConfigurationError

BROKEN = [
    pytest.param("sk-secret\n", "white space", id="line-end"),
    pytest.param(" sk-secret", "white space", id="space-before"),
    pytest.param("sk-schl\u00fcssel-secret", "ASCII", id="not-ascii"),
    pytest.param("sk-secret\r\nX-Admin: 1", "control", id="second-header"),
    pytest.param("sk-secret\x00x", "control", id="nul"),
    pytest.param(b"sk-secret", "bytes", id="bytes"),
]


@pytest.mark.parametrize("client", [LLMClient, AsyncLLMClient])
@pytest.mark.parametrize(("value", "reason"), BROKEN)
@pytest.mark.parametrize("place", ["api_key", "headers"])
def test_a_value_that_cannot_be_sent_is_refused_unshown(client, value, reason, place):
    """A key or header that HTTP cannot carry is an error of configuration, whose message keeps it secret."""
    given = {"api_key": value} if place == "api_key" else {"headers": {"X-Key": value}}

    with pytest.raises(ConfigurationError, match=reason) as raised:
        client("http://127.0.0.1:9", **given)

    assert "secret" not in str(raised.value)
    assert place in str(raised.value)
    assert raised.value.__cause__ is None


def test_an_empty_key_and_a_name_that_is_none_are_refused():
    """An empty key says nothing to a server, and a name with a space is no header."""
    with pytest.raises(ConfigurationError, match="empty"):
        request_headers("", None)
    with pytest.raises(ConfigurationError, match="'X Key'"):
        request_headers(None, {"X Key": "a"})


@pytest.mark.parametrize("value", ["k", "a b\tc", "~!#", ""])
def test_what_http_carries_is_sent_as_it_is(value):
    """Visible ASCII with spaces between is taken, as the HTTP client takes it; names are lower-cased."""
    found = request_headers("k", {"X-Team": value})

    assert found["x-team"] == value
    assert found["authorization"] == "Bearer k"
    assert httpx.Headers(found)["x-team"] == value
