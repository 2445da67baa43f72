"""The sampler of an engine's metrics: what it writes, and that it is in nobody's way."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading

import pytest
from servers import AwaitClose, ScriptedServer, Wait, answer

import hotspan
from hotspan.analysis.readers.otlp_metrics import metric_points
from hotspan.analysis.samples import telemetry_of

OFTEN = 0.001
PATIENCE_S = 30


def text(running=0, finished=0, queue_s=0.0):
    """Return vLLM's metrics."""
    return (
        f'vllm:num_requests_running{{engine="0"}} {running}\n'
        f'vllm:request_success_total{{engine="0",finished_reason="stop"}} {finished}\n'
        f'vllm:request_queue_time_seconds_count{{engine="0"}} {finished}\n'
        f'vllm:request_queue_time_seconds_sum{{engine="0"}} {queue_s}\n'
    )


def reply(body, status="200 OK"):
    """Return a whole response."""
    data = body.encode()
    return [f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data]


def until(condition):
    """Return once a condition holds; fail when it does not in a bounded time."""
    tick = threading.Event()
    for _ in range(PATIENCE_S * 100):
        if condition():
            return
        tick.wait(0.01)
    pytest.fail("it did not come to pass")


def telemetry(path):
    """Return what was written."""
    return telemetry_of(point for line in path.read_bytes().splitlines() for point in metric_points(line))


@pytest.fixture
def file(tmp_path):
    """A trace file that is recorded to."""
    hotspan.configure(file=tmp_path / "run.jsonl")
    return tmp_path / "run.jsonl"


def test_what_the_engine_counts_between_the_first_sample_and_the_last(file):
    """The last sample is taken on leaving, so that the counts cover the run."""
    with ScriptedServer([reply(text(2, 5, 0.5)), reply(text(7, 12, 1.75))]) as server:
        with hotspan.sample_engine(server.url + "/v1", interval_s=60) as sampler:
            until(lambda: sampler.n_samples == 1)
    (engine,) = telemetry(file).engines

    assert (engine.engine, engine.address) == ("vllm", f"127.0.0.1:{server.port}")
    assert (sampler.n_samples, engine.n_samples) == (2, 2)
    assert (engine.n_requests, engine.queue_ns) == (7, 1_250_000_000)
    assert (engine.running.mean, engine.running.max) == (4.5, 7)
    assert server.requests[0].target == "/metrics"


def test_spans_and_samples_share_the_file(file):
    """Each on lines of its own, none torn."""
    with ScriptedServer([reply(text())]) as server:
        with hotspan.sample_engine(server.url, interval_s=OFTEN) as sampler:
            with hotspan.request("ask"):
                until(lambda: sampler.n_samples > 3)
            hotspan.flush()
    kinds = {key for line in file.read_text(encoding="utf-8").splitlines() for key in json.loads(line)}

    assert kinds == {"resourceSpans", "resourceMetrics"}


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        pytest.param(
            [answer({"error": "no"}, "501 Not Implemented")], "llamacpp by --metrics", id="not-switched-on"
        ),
        pytest.param([answer({"detail": "Not Found"}, "404 Not Found")], "answered 404", id="not-there"),
        pytest.param(
            [reply("process_cpu_seconds_total 3\n")], "no metrics of a known engine", id="not-an-engine"
        ),
    ],
)
def test_an_endpoint_that_says_nothing_is_one_warning(file, caplog, replies, said):
    """One sentence, with the next step, however often it is asked; the program goes on."""
    with caplog.at_level(logging.WARNING, logger="hotspan"), ScriptedServer(replies) as server:
        with hotspan.sample_engine(server.url, interval_s=OFTEN) as sampler:
            until(lambda: len(server.requests) > 6)

    assert len(caplog.records) == 1
    assert said in caplog.text
    assert sampler.n_samples == 0
    assert file.read_bytes() == b""


@pytest.mark.usefixtures("file")
def test_a_dead_endpoint_is_one_warning(caplog):
    """Nothing listens there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with caplog.at_level(logging.WARNING, logger="hotspan"):
        with hotspan.sample_engine(f"http://127.0.0.1:{port}", interval_s=OFTEN):
            until(lambda: caplog.records)

    assert len(caplog.records) == 1
    assert f"http://127.0.0.1:{port}/metrics does not answer" in caplog.text


def test_an_engine_that_comes_back_is_sampled_again(file):
    """It was down for a moment: what was between is missing, and no more."""
    replies = [reply(text(1)), reply("down", "503 Service Unavailable"), reply(text(2))]
    with ScriptedServer(replies) as server:
        with hotspan.sample_engine(server.url, interval_s=OFTEN) as sampler:
            until(lambda: sampler.n_samples > 2)
    (engine,) = telemetry(file).engines

    assert engine.running.max == 2


@pytest.mark.usefixtures("file")
def test_a_server_that_hangs_holds_nobody_up():
    """Entering and leaving wait for it no longer than their bounds."""
    released = threading.Event()
    with ScriptedServer([[Wait(released), AwaitClose()]]) as server:
        with hotspan.sample_engine(server.url, interval_s=OFTEN):
            until(lambda: server.requests)
        released.set()


def test_without_a_trace_file_nothing_is_asked():
    """There is nowhere to write to: the server is left alone."""
    with ScriptedServer([reply(text())]) as server:
        with hotspan.sample_engine(server.url, interval_s=OFTEN):
            pass

    assert server.requests == []


def test_a_file_that_is_named_later_is_written_to(tmp_path):
    """The program may call `configure` while it is sampled."""
    with ScriptedServer([reply(text())]) as server:
        with hotspan.sample_engine(server.url, interval_s=OFTEN) as sampler:
            hotspan.configure(file=tmp_path / "late.jsonl")
            until(lambda: sampler.n_samples > 1)

    assert telemetry(tmp_path / "late.jsonl").engines[0].n_samples > 1


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("path", "asked"),
    [
        pytest.param("", ["/metrics"], id="root"),
        pytest.param("/v1/", ["/metrics"], id="v1"),
        pytest.param("/proxy/v1", ["/proxy/metrics"], id="behind-a-path"),
        pytest.param("/prometheus/metrics", ["/prometheus/metrics"], id="the-endpoint-itself"),
    ],
)
def test_the_endpoint_is_found(path, asked):
    """By the server's address in any form, or by its own."""
    with ScriptedServer([reply(text())]) as server:
        with hotspan.sample_engine(server.url + path, interval_s=60) as sampler:
            until(lambda: sampler.n_samples == 1)

    assert [request.target for request in server.requests[:1]] == asked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param({"url": "localhost:8000"}, "no address", id="no-scheme"),
        pytest.param({"url": ""}, "no address", id="empty"),
        *(
            pytest.param(
                {"url": "http://127.0.0.1:8000", "interval_s": value}, f"interval_s={value!r}", id=name
            )
            for name, value in {
                "no-interval": 0,
                "negative": -1,
                "nan": float("nan"),
                "endless": float("inf"),
                "text": "x",
                "nothing": None,
                "truth": True,
            }.items()
        ),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(arguments, said):
    """With the value and what to give instead."""
    with pytest.raises(hotspan.ConfigurationError, match=said):
        hotspan.sample_engine(**arguments)


def test_a_gpu_that_is_asked_for_names_what_is_missing(monkeypatch):
    """Without the package: one sentence with the extra; by default there are simply no readings."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    hotspan.sample_engine("http://127.0.0.1:8000")

    with pytest.raises(hotspan.MissingDependencyError, match=r"hotspan\[gpu\]"):
        hotspan.sample_engine("http://127.0.0.1:8000", gpu=True)
