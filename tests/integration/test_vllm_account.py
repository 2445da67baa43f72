"""A real vLLM that is full: every route to its account says the same, and the time is in `queue`."""

from __future__ import annotations

import statistics
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import hotspan
from hotspan.analysis.engine import BY_REQUEST_ID, BY_RESPONSE, BY_TRACE, account_of
from hotspan.analysis.phases import phases_of
from hotspan.analysis.run_account import BY_ENDPOINT
from hotspan.tracer import semconv

pytest.importorskip("vllm")

from hotspan.pipelines.demo import Options
from hotspan.pipelines.demo import run as demo
from hotspan.pipelines.engines import vllm_engine

pytestmark = [pytest.mark.integration, pytest.mark.rag]

ASK = [{"role": "user", "content": "What is a list? " * 20}]
N_CALLS, N_CALLERS, N_PLACES = 24, 8, 2
ENGINES_OWN = ("queue", "prefill", "decode")
ACCOUNT = tuple(getattr(semconv, name) for name in dir(semconv) if name.startswith("ACCOUNT_"))


@pytest.fixture(scope="module")
def receiver():
    """Where the server sends its spans."""
    with hotspan.receiver() as running:
        yield running


@pytest.fixture(scope="module")
def server(receiver):
    """A server with two places, which also says in its answers what it needed for them."""
    places = ("--max-num-seqs", str(N_PLACES), "--enable-per-request-metrics")
    with vllm_engine(otlp_endpoint=receiver.endpoint, arguments=places) as engine:
        yield engine


@pytest.fixture(scope="module")
def run(server, receiver, tmp_path_factory):
    """The trace file of many callers at it, sampled meanwhile."""
    file = tmp_path_factory.mktemp("run") / "run.jsonl"
    hotspan.configure(file=file)
    ready = threading.Barrier(N_CALLERS)

    def ask(caller):
        ready.wait(60)
        for number in range(N_CALLS // N_CALLERS):
            with hotspan.request("ask"):
                if number:
                    list(server.stream(ASK, max_tokens=32))
                else:
                    server.complete(ASK, max_tokens=32 + caller % 2)

    with hotspan.sample_engine(server.base_url, interval_s=0.05):
        with ThreadPoolExecutor(N_CALLERS) as pool:
            list(pool.map(ask, range(N_CALLERS)))
    assert receiver.wait(lambda: receiver.n_by_name[semconv.VLLM_SPAN_NAME] == N_CALLS, 60)
    hotspan.flush(10)
    hotspan.shutdown()
    return file


class Changed:
    """The traces of a run, each span changed or left out; what was sampled stays."""

    def __init__(self, run, change):
        self._reader = hotspan.load(run)
        self._change = change

    @property
    def evidence(self):
        """What the reader saw."""
        return self._reader.evidence

    def __iter__(self):
        for trace in self._reader:
            spans = [new for span in trace.spans if (new := self._change(span)) is not None]
            for trace_id in sorted({span.trace_id for span in spans}):
                yield hotspan.Trace(trace_id, [span for span in spans if span.trace_id == trace_id])


def is_engines(span):
    """Tell vLLM's spans from ours."""
    return span.name == semconv.VLLM_SPAN_NAME


def without_account(span):
    """Return a call's span as a client leaves it that does not know the response's `metrics`."""
    return span._replace(attributes={k: v for k, v in span.attributes.items() if k not in ACCOUNT})


def in_a_trace_of_its_own(span):
    """Return vLLM's span as it comes when the request carried no `traceparent`."""
    if is_engines(span):
        return span._replace(trace_id=span.span_id.zfill(32), parent_id=None)
    return without_account(span)


def means_ms(report):
    """Return what the engine says of the mean call."""
    return {name: report.generation.phases_ns[name] / 1e6 for name in ENGINES_OWN}


def counted_ms(report):
    """Return the same by the engine's own counters."""
    (engine,) = report.telemetry.engines
    spent = (engine.queue_ns, engine.prefill_ns, engine.decode_ns)
    return {name: ns / engine.n_requests / 1e6 for name, ns in zip(ENGINES_OWN, spent, strict=True)}


def test_every_call_is_joined_and_its_phases_are_whole(run):
    """All of them, by trace; the phases of each add up to its duration, to the nanosecond."""
    report = hotspan.analyse(hotspan.load(run))
    calls = [
        (span, [other for other in trace.spans if is_engines(other)])
        for trace in hotspan.load(run)
        for span in trace.spans
        if span.attributes.get(semconv.STAGE) == semconv.GENERATION
    ]

    assert (report.evidence.n_engine_spans, report.evidence.n_engine_joined) == (N_CALLS, N_CALLS)
    for phase in ENGINES_OWN:
        assert report.generation.phase_sources[phase] == {BY_TRACE: N_CALLS}
    assert len(calls) == N_CALLS
    unexplained = []
    for call, served in calls:
        phases = phases_of(call, [call], account_of(served[0], BY_TRACE))
        assert sum(phases.ns.values()) == call.duration_ns
        unexplained.append(phases.ns["unattributed"] / call.duration_ns)
    mean_ns = sum(call.duration_ns for call, _ in calls) / N_CALLS
    assert sum(ns or 0 for ns in report.generation.phases_ns.values()) == pytest.approx(mean_ns)
    # The median: on a machine that is busy with other work, a few clients come late to their answers.
    assert statistics.median(unexplained) < 0.02


def test_the_wait_for_a_place_is_in_the_queue(run):
    """As much as the engine's own counters say, and more than the prefill that follows it."""
    report = hotspan.analyse(hotspan.load(run))
    (engine,) = report.telemetry.engines
    found, counted = means_ms(report), counted_ms(report)

    assert engine.n_requests == N_CALLS
    for phase in ENGINES_OWN:
        # An account that is longer than the client's own measure is cut to it.
        assert found[phase] == pytest.approx(counted[phase], rel=0.05, abs=2)
    assert found["queue"] > found["prefill"]
    assert engine.running.max == N_PLACES
    assert engine.waiting.max >= N_CALLERS / 2
    assert "queue-dominates-first-token" in {finding.id for finding in report.findings}


@pytest.mark.parametrize(
    ("change", "source"),
    [
        pytest.param(in_a_trace_of_its_own, BY_REQUEST_ID, id="request-id"),
        pytest.param(lambda span: None if is_engines(span) else span, BY_RESPONSE + "metrics", id="response"),
        pytest.param(
            lambda span: None if is_engines(span) else without_account(span), BY_ENDPOINT, id="endpoint"
        ),
    ],
)
def test_every_other_route_says_the_same(run, change, source):
    """Without `traceparent`, without spans, and without anything but the endpoint's counters."""
    whole, report = hotspan.analyse(hotspan.load(run)), hotspan.analyse(Changed(run, change))

    assert set(report.generation.phase_sources["queue"]) == {source}
    assert report.generation.phases_ns["queue"] == pytest.approx(whole.generation.phases_ns["queue"], rel=0.4)
    total_ns = sum(ns or 0 for ns in whole.generation.phases_ns.values())
    assert sum(ns or 0 for ns in report.generation.phases_ns.values()) == pytest.approx(total_ns)


def test_the_demo_samples_a_vllm_that_it_finds(server, tmp_path):
    """Its file has the engine's levels beside the spans, and hardly any time of its calls is unexplained."""
    hotspan.configure()
    options = Options(file=tmp_path / "demo.jsonl", base_url=server.base_url, n_questions=3, n_tasks=1)
    flushed = demo(options, print).flushed
    hotspan.configure()
    report = hotspan.analyse(hotspan.load(options.file))
    (engine,) = report.telemetry.engines
    phases = report.generation.phases_ns

    assert flushed.ok
    assert engine.n_requests == report.generation.n_calls > 3
    assert engine.n_samples > 1
    assert engine.running.max <= 1  # one call at a time, which a sample may miss
    assert sum(report.generation.phase_sources["queue"].values()) == report.generation.n_calls
    assert phases["unattributed"] < 0.02 * sum(ns or 0 for ns in phases.values())
