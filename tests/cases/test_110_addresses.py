"""Public defects in reaching the server: IPv6, versions and slashes in the URL, proxies."""

from __future__ import annotations

import socket

import pytest
from servers import ScriptedServer, answer, message

import hotspan
from hotspan.tracer.clients.llm import LLMClient
from hotspan.tracer.clients.urls import endpoint, proxy_for

MESSAGES = [{"role": "user", "content": "Hi"}]
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def environment(monkeypatch):
    """A setter of proxy variables, none of which is set at first."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch.setenv


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("::1", "http://[::1]/v1"),
        ("[::1]:8000", "http://[::1]:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
        ("http://::1/v1", "http://[::1]/v1"),
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("http://h:8000/v1", "http://h:8000/v1"),
        ("http://h:8000/v1/", "http://h:8000/v1"),
        ("http://h:8000/proxy", "http://h:8000/proxy/v1"),
        ("http://h:8000/proxy/v1", "http://h:8000/proxy/v1"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("h:8000", "http://h:8000/v1"),
        ("localhost", "http://localhost/v1"),
    ],
)
def test_case_110_every_spelling_has_one_right_url(base_url, root):
    """IPv6 gets its brackets, `/v1` is there exactly once, and slashes at the end do not matter."""
    assert endpoint(base_url).url == root


@pytest.mark.parametrize(
    "base_url",
    [
        *(None, b"http://h", 8000, "http://::1:9701", "2001:db8::1:80", "http://u@::1:80/v1"),
        "",
        "http://",
        "ftp://h",
        "http://h:port",
        "http://h:99999",
        "http://h?x=1",
        "unix:///s",
    ],
)
def test_case_110_what_is_no_url_is_refused(base_url):
    """An address that cannot be meant is an error that names it, at once."""
    with pytest.raises(hotspan.ConfigurationError, match="base_url"):
        LLMClient(base_url)


def test_case_110_a_password_is_not_shown():
    """User and password in the URL are used, and kept out of messages and attributes."""
    found = endpoint("http://user:secret@h:1/v1")

    assert found.shown == "http://h:1/v1"
    assert (found.host, found.port) == ("h", 1)


def test_case_110_an_ipv6_server_is_reached():
    """A server on ::1 answers, whether or not its address was written with brackets."""
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        server = ScriptedServer([answer(message())], host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with server, LLMClient(f"[::1]:{server.port}", model="tiny") as client:
        assert client.chat(MESSAGES).text == "Hi"
    assert server.requests[0].target == "/v1/chat/completions"
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_case_111_loopback_is_reached_directly(environment, variable):
    """A dead proxy in the environment does not stand between us and this machine."""
    environment(variable, "http://127.0.0.1:1")
    environment("NO_PROXY", "10.0.0.0/8,::1/128,*.internal,[fe80::1]")
    with ScriptedServer([answer(message())]) as server, LLMClient(server.url, model="tiny") as client:
        assert client.chat(MESSAGES).text == "Hi"


@pytest.mark.parametrize(
    ("url", "no_proxy", "direct"),
    [
        pytest.param("http://10.1.2.3", "10.0.0.0/8", True, id="network"),
        pytest.param("http://11.1.2.3", "10.0.0.0/8", False, id="other-network"),
        pytest.param("http://[fd00::1]", "fd00::/8", True, id="ipv6-network"),
        pytest.param("http://10.1.2.3", "10.1.2.3", True, id="address"),
        pytest.param("http://api.example.com", "example.com", True, id="subdomain"),
        pytest.param("http://api.example.com", ".example.com", True, id="dot"),
        pytest.param("http://api.example.com", "*.example.com", True, id="star-dot"),
        pytest.param("http://notexample.com", "example.com", False, id="not-a-subdomain"),
        pytest.param("http://h:8000", "h:8000", True, id="port"),
        pytest.param("http://h:8001", "h:8000", False, id="other-port"),
        pytest.param("http://h", "*", True, id="everything"),
        pytest.param("http://h", " , ,x", False, id="blanks"),
        pytest.param("http://h", "", False, id="nothing"),
        pytest.param("http://localhost:9", "", True, id="localhost"),
        pytest.param("http://127.9.9.9", "", True, id="loopback"),
    ],
)
def test_case_111_no_proxy_is_read_in_all_its_forms(environment, url, no_proxy, direct):
    """Names, subdomains, ports, addresses and networks are understood; nothing there is an error."""
    environment("HTTP_PROXY", "proxy.example:3128")
    environment("NO_PROXY", no_proxy)

    assert proxy_for(endpoint(url)) == (None if direct else "http://proxy.example:3128")


def test_case_111_the_use_of_a_proxy_is_said(environment, caplog):
    """A server elsewhere is reached through the proxy, and the log says so, without its password."""
    with ScriptedServer([answer(message())]) as proxy:
        environment("HTTP_PROXY", f"http://user:secret@127.0.0.1:{proxy.port}")
        with caplog.at_level("INFO"), LLMClient("http://llm.example:8000", model="tiny") as client:
            assert client.chat(MESSAGES).text == "Hi"

    assert proxy.requests[0].target == "http://llm.example:8000/v1/chat/completions"
    assert "llm.example" in caplog.text
    assert "secret" not in caplog.text
