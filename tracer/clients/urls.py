"""Where an OpenAI-compatible server is: one right URL from every way to write it, and the proxy to it."""

from __future__ import annotations

import ipaddress
import re
import urllib.request
from typing import Final, NamedTuple

import httpx

from hotspan.tracer.errors import ConfigurationError

_VERSION: Final = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?")
_METHODS: Final = ("/chat/completions", "/completions", "/models", "/embeddings")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_PORT: Final = 65_535


class Endpoint(NamedTuple):
    """A server's API root, e.g. `http://[::1]:8000/v1`, its parts, and how messages show it: no password."""

    url: str
    scheme: str
    host: str
    port: int
    shown: str


def endpoint(base_url: str) -> Endpoint:
    """Return the API root of `base_url`.

    The scheme may be missing (then it is http), an IPv6 address may lack its brackets, a trailing slash or a
    method's path is removed, and `/v1` is added unless the path has a version already.

    Raises:
        ConfigurationError: `base_url` names no http or https host, or may mean two.
    """
    given: object = base_url
    if given is None or isinstance(given, (bytes, int)):
        raise ConfigurationError(_complaint(base_url, "it is no text"))
    text = str(base_url).strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    authority, slash, path = rest.partition("/")
    if (address := _with_port(authority)) is not None:
        reason = f"an IPv6 address with a port, or without? Put it in brackets, like {address}"
        raise ConfigurationError(_complaint(base_url, reason))
    try:
        url = httpx.URL(f"{scheme.lower()}://{_bracketed(authority)}{slash}{path}")
    except (httpx.InvalidURL, TypeError, UnicodeError) as exc:
        raise ConfigurationError(_complaint(base_url, str(exc))) from exc
    if url.scheme not in _DEFAULT_PORTS or not url.host:
        raise ConfigurationError(_complaint(base_url, "it names no http or https host"))
    if url.query or url.fragment:
        raise ConfigurationError(_complaint(base_url, "it has a query or a fragment"))
    port = url.port or _DEFAULT_PORTS[url.scheme]
    if port > _MAX_PORT:
        raise ConfigurationError(_complaint(base_url, f"there is no port {port}"))
    root = url.copy_with(path=_versioned(url.path))
    shown = root.copy_with(username=None, password=None)
    return Endpoint(str(root), url.scheme, url.host, port, str(shown))


def _complaint(base_url: object, reason: str) -> str:
    return f"base_url {base_url!r}: {reason}. Write it like http://127.0.0.1:8000 or https://host/v1."


def _bracketed(authority: str) -> str:
    """Return the authority with brackets around a bare IPv6 address."""
    userinfo, at, host = authority.rpartition("@")
    return f"{userinfo}{at}[{host}]" if _is_ipv6(host) else authority


def _with_port(authority: str) -> str | None:
    """Return a bare IPv6 address in brackets if its last group may as well be a port, else None."""
    host, _, last = authority.rpartition("@")[2].rpartition(":")
    is_port = last.isdecimal() and _is_ipv6(host)
    return f"[{host}]:{last}" if is_port else None


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _versioned(path: str) -> str:
    path = path.rstrip("/")
    for method in _METHODS:
        if path.endswith(method):
            path = path.removesuffix(method)
            break
    has_version = any(_VERSION.fullmatch(segment) for segment in path.split("/"))
    return path if has_version else f"{path}/v1"


def proxy_for(target: Endpoint) -> str | None:
    """Return the proxy that the environment names for `target`, or None to go direct.

    Loopback is always reached directly.  `NO_PROXY` takes names (with their subdomains), addresses and
    networks in CIDR form; what it cannot mean is skipped, not an error.
    """
    if is_loopback(target.host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(target.scheme) or proxies.get("all")
    if not proxy or _bypassed(target, proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine by its very name."""
    address = _address(host)
    if address is not None:
        return address.is_loopback
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _bypassed(target: Endpoint, no_proxy: str) -> bool:
    address = _address(target.host)
    for entry in (part.strip().lower() for part in no_proxy.split(",")):
        if entry == "*":
            return True
        if not entry:
            continue
        name = entry.partition("://")[2] or entry
        network = _network(name)
        if network is not None:
            if address is not None and address in network:
                return True
        elif _name_matches(target, name):
            return True
    return False


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None


def _name_matches(target: Endpoint, name: str) -> bool:
    host, colon, port = name.rpartition(":")
    if colon and port.isdigit():
        if int(port) != target.port:
            return False
        name = host
    suffix = name.removeprefix("*").strip("[]").lstrip(".")
    own = target.host.lower()
    return bool(suffix) and (own == suffix or own.endswith(f".{suffix}"))
