"""A real vLLM server: started, asked, traced, and gone when its owner is."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import uuid
from pathlib import Path

import pytest

import hotspan
from hotspan.testing import capture

pytest.importorskip("vllm")

from hotspan.pipelines.engines import server_engine, vllm_engine

pytestmark = [pytest.mark.integration, pytest.mark.rag]

ASK = [{"role": "user", "content": "What is a list? " * 20}]
SCHEMA = {
    "type": "object",
    "properties": {"action": {"enum": ["search", "stop"]}, "query": {"type": "string", "maxLength": 12}},
    "required": ["action", "query"],
    "additionalProperties": False,
}
PATIENCE_S = 60


@pytest.fixture(scope="module")
def receiver():
    """Where the server sends its spans."""
    with hotspan.receiver() as running:
        yield running


@pytest.fixture(scope="module")
def vllm(receiver):
    """A running server of our own."""
    with vllm_engine(otlp_endpoint=receiver.endpoint) as engine:
        yield engine


def wait_until(condition):
    """Return as soon as a condition holds; fail when it does not in a bounded time."""
    tick = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if condition():
            return
        tick.wait(0.05)
    pytest.fail("it did not come to pass")


def test_a_streamed_call_and_the_servers_own_span_are_one_trace(vllm):
    """The server's span is a child of the generation, says what its phases took, and no other span came."""
    with capture() as captured:
        text = "".join(vllm.stream(ASK, max_tokens=16))
        wait_until(lambda: len(captured.spans) >= 2)
        call, served = captured.one("chat tiny"), captured.one("llm_request")

    assert text
    assert (served.trace_id, served.parent_id) == (call.trace_id, call.span_id)
    assert (
        served.attributes["gen_ai.usage.completion_tokens"] == call.attributes["gen_ai.usage.output_tokens"]
    )
    phases = ("time_in_queue", "time_in_model_prefill", "time_in_model_decode")
    engine_s = sum(served.attributes[f"gen_ai.latency.{phase}"] for phase in phases)
    assert 0 < engine_s * 1e9 <= call.duration_ns
    assert len(captured.spans) == 2


def test_structured_output_holds_to_the_schema(vllm):
    """The engine's grammar makes any model answer with the object."""
    for _ in range(3):
        answer = json.loads(vllm.complete(ASK, max_tokens=100, schema=SCHEMA))
        assert list(answer) == ["action", "query"]
        assert len(answer["query"]) <= 12


def test_tokens_are_counted_as_the_server_counts_them(vllm):
    """The local tokenizer and the server's agree; a server that was found running is asked."""
    text = "A list comprehension: [x for x in y] — naïve 😀"
    with server_engine(vllm.base_url) as found:
        assert (vllm.counting, found.counting, found.name) == ("tokenizer", "server", "vllm")
        assert vllm.count_tokens(text) == found.count_tokens(text) > 0


def test_a_prompt_over_the_context_is_the_servers_own_sentence(vllm):
    """What the server says reaches the user."""
    with pytest.raises(hotspan.EngineError, match="context length"):
        vllm.complete([{"role": "user", "content": "word " * 5000}], max_tokens=5)


def test_a_port_in_use_is_one_sentence():
    """Before anything is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(hotspan.EngineError, match=f"Port {port} .*in use"):
            vllm_engine(port=port)


def test_a_server_that_dies_is_shown_by_its_last_lines(tmp_path, monkeypatch):
    """The message has the log's path and its end."""
    monkeypatch.setenv("HOTSPAN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model").mkdir()

    with pytest.raises(hotspan.EngineError, match="before it was ready") as caught:
        vllm_engine(str(tmp_path / "model"))

    (log,) = (tmp_path / "cache" / "logs").iterdir()
    assert str(log) in str(caught.value)
    assert log.read_text(encoding="utf-8").splitlines()[-1] in str(caught.value)


def test_nothing_is_left_when_the_owner_is_killed():
    """Kill -9 of the program that started it: server, engine core and workers end too."""
    mark = f"HOTSPAN_TEST_MARK_{uuid.uuid4().hex}"
    program = textwrap.dedent("""
        from hotspan.pipelines.engines import vllm_engine
        with vllm_engine() as engine:
            print(engine.base_url, flush=True)
            input()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, mark: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        address = owner.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        assert len(_marked(mark)) >= 4  # owner, supervisor, server, engine core
        owner.kill()

    wait_until(lambda: not _marked(mark))


def _marked(mark):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
