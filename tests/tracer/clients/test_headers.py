"""Headers that cannot be sent are refused where they are given, and never shown."""

from __future__ import annotations

import httpx
import pytest
from servers import ScriptedServer

from hotspan import AsyncLLMClient, LLMClient
from hotspan.testing import capture
from hotspan.tracer.clients.headers import request_headers
from hotspan.tracer.errors import ConfigurationError, EngineError

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


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_refused_before_anything_is_sent(connect, number):
    """Python would write `NaN`, and the server would be blamed for what it makes of it."""
    with ScriptedServer([]) as server, capture() as captured:
        with pytest.raises(ConfigurationError, match="JSON"):
            connect(server.url).chat(temperature=number)

    assert server.requests == []
    assert captured.spans == []


def test_what_a_library_says_ends_with_one_full_stop():
    """Its sentence is followed by ours."""
    with LLMClient(
        "http://127.0.0.1:9", model="tiny", http_client=httpx.Client(transport=Refusing())
    ) as client:
        with pytest.raises(EngineError) as raised:
            client.chat([])

    assert "All is lost. " in str(raised.value)
    assert ".." not in str(raised.value).replace("127.0.0.1", "")


class Refusing(httpx.BaseTransport):
    """A network that says why in a whole sentence."""

    def handle_request(self, request):
        """Refuse."""
        msg = "All is lost."
        raise httpx.ConnectError(msg, request=request)
