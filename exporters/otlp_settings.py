"""Where spans are sent: the endpoint and the protocol, given or from the environment, checked."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from hotspan.tracer.errors import ConfigurationError

HTTP: Final = "http/protobuf"
GRPC: Final = "grpc"

_DEFAULT_ENDPOINTS: Final = {HTTP: "http://localhost:4318", GRPC: "http://localhost:4317"}
_USUAL_PORTS: Final[dict[int | None, str]] = {4318: HTTP, 4317: GRPC}
_PATH: Final = "/v1/traces"


def checked_protocol(given: str | None) -> str:
    """Return the protocol: what was given, else the environment's, else HTTP.

    Raises:
        ConfigurationError: It is none of those that can be sent.
    """
    protocol = given or _environment("TRACES_PROTOCOL") or _environment("PROTOCOL") or HTTP
    if protocol not in _DEFAULT_ENDPOINTS:
        msg = f"The OTLP protocol {protocol!r} is not one of {HTTP!r} and {GRPC!r}. Use one of these."
        raise ConfigurationError(msg)
    return protocol


def checked_endpoint(given: str | None, protocol: str) -> str:
    """Return the address that requests go to.

    Over HTTP `/v1/traces` is added to an address that does not end so: `http://host:4318`, or
    `https://host/otlp` for a backend below a path.  `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` alone is taken as it
    is, as OpenTelemetry defines it.

    Raises:
        ConfigurationError: It is no http or https address.
    """
    exact = _environment("TRACES_ENDPOINT")
    endpoint = given or exact or _environment("ENDPOINT") or _DEFAULT_ENDPOINTS[protocol]
    url, problem = _split(endpoint)
    if problem:
        example = _DEFAULT_ENDPOINTS[protocol]
        msg = (
            f"The OTLP endpoint {endpoint!r} cannot be used: {problem}. Give an address such as {example!r}."
        )
        raise ConfigurationError(msg)
    if protocol == HTTP and endpoint != exact and not url.path.rstrip("/").endswith(_PATH):
        url = url._replace(path=url.path.rstrip("/") + _PATH)
    return urlunsplit(url)


def port_hint(endpoint: str, protocol: str) -> str:
    """Return a sentence when the port is the usual one of the other protocol, else nothing."""
    other = _USUAL_PORTS.get(urlsplit(endpoint).port, protocol)
    return "" if other == protocol else f" That port is usually for {other!r}: is the protocol right?"


def _environment(name: str) -> str | None:
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{name}")


def _split(endpoint: str) -> tuple[SplitResult, str]:
    """Return the address in parts, and what is wrong with it."""
    try:
        url = urlsplit(endpoint)
        _ = url.port  # raises for one that is no port number
    except ValueError as error:
        return urlsplit(""), str(error)
    if url.scheme not in {"http", "https"}:
        return url, "it does not begin with http:// or https://"
    return url, "" if url.hostname else "it names no host"
