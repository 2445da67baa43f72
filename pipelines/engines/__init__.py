"""How a local engine is started: in process, a vLLM server of its own, or any running server."""

from __future__ import annotations

from hotspan.pipelines.engines.base import Engine
from hotspan.pipelines.engines.embedded import embedded_engine
from hotspan.pipelines.engines.server import server_engine
from hotspan.pipelines.engines.vllm_server import vllm_engine

__all__ = ["Engine", "embedded_engine", "server_engine", "vllm_engine"]
