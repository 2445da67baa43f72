"""Real engines in the process of the program: vLLM's `LLM` and `AsyncLLM`, transformers; beside a server."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

pytest.importorskip("vllm")

import transformers

from hotspan.pipelines.engines import vllm_engine
from hotspan.pipelines.engines.tiny_model import tiny_model_folder

pytestmark = [pytest.mark.integration, pytest.mark.rag]

PROGRAM = Path(__file__).parent / "applications" / "vllm_in_process.py"
PATIENCE_S = 600
N_TOKENS = 8
ACCOUNT = (semconv.ACCOUNT_QUEUE_NS, semconv.ACCOUNT_PREFILL_NS, semconv.ACCOUNT_DECODE_NS)


class Run:
    """What a run of the program said and wrote."""

    def __init__(self, how, folder):
        self.file = folder / f"{how}.jsonl"
        command = [sys.executable, str(PROGRAM), how, str(self.file)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=folder, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        self.said = json.loads(done.stdout.splitlines()[-1])
        self.traces = {self._name(trace): trace for trace in hotspan.load(self.file)}

    @staticmethod
    def _name(trace):
        return next(span.name for span in trace.spans if span.parent_id is None)

    def calls(self, request):
        """Return the generations of one request, by their start."""
        spans = self.traces[f"request {request}"].spans
        found = [span for span in spans if span.attributes.get(semconv.STAGE) == semconv.GENERATION]
        return sorted(found, key=lambda span: span.start_ns)

    def report(self):
        """Return the report of the requests that only generated."""
        return hotspan.analyse(hotspan.load(self.file)).to_dict()


@pytest.fixture(scope="module")
def llm(tmp_path_factory):
    """A run with `vllm.LLM`."""
    return Run("llm", tmp_path_factory.mktemp("llm"))


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    """A run with `AsyncLLM`, the spans of which come to the same file."""
    return Run("async", tmp_path_factory.mktemp("async"))


# --- LLM ---------------------------------------------------------------------------------------------------


def test_results_are_the_same(llm):
    """Texts before and after; an engine from which a batch was refused works on."""
    assert llm.said["same"] is True
    assert llm.said["traced"] == llm.said["plain"]
    assert llm.said["after"] == llm.said["plain"][:1]


def test_each_prompt_has_its_own_account(llm):
    """Six prompts, two at a time: each has its tokens, and what waited for a place waited in the queue."""
    calls = llm.calls("batch")

    assert len(calls) == 6
    for call in calls:
        said = call.attributes
        assert said[semconv.OUTPUT_TOKENS] == N_TOKENS
        assert sum(said[key] for key in ACCOUNT) <= call.duration_ns
        assert 0 < said[semconv.TTFT_NS] < said[semconv.LAST_TOKEN_NS] <= call.duration_ns
    waited = sorted(call.attributes[semconv.ACCOUNT_QUEUE_NS] for call in calls)
    one_round = min(call.attributes[semconv.ACCOUNT_DECODE_NS] for call in calls)
    assert waited[2] > one_round // 2  # the third to sixth waited for at least the first two
    assert waited[1] < waited[2]


def test_answers_to_one_prompt_are_one_call(llm):
    """`n=2` is two answers of one call."""
    (call,) = llm.calls("chat")

    assert (call.name, call.attributes[semconv.OUTPUT_TOKENS]) == ("chat tiny", 2 * N_TOKENS)
    assert len(call.attributes[semconv.FINISH_REASONS]) == 2


def test_a_refused_batch_and_ctrl_c_end_their_calls(llm):
    """Each prompt of a refused batch is a failed call, also one that was taken already; Ctrl-C interrupts."""
    refused, (interrupted,) = llm.calls("refused"), llm.calls("interrupted")

    assert len(refused) == 2
    assert {(call.status, call.attributes[semconv.ERROR_TYPE]) for call in refused} == {
        ("error", "VLLMValidationError")
    }
    assert interrupted.attributes[semconv.OUTCOME] == semconv.INTERRUPTED


def test_without_statistics_there_are_no_times(llm):
    """The default of `LLM`: duration and tokens, and null for the rest."""
    (call,) = llm.calls("no statistics")

    assert call.attributes[semconv.OUTPUT_TOKENS] == N_TOKENS
    assert not {semconv.TTFT_NS, semconv.TPOT_NS, semconv.ACCOUNT_SOURCE} & call.attributes.keys()


# --- AsyncLLM ----------------------------------------------------------------------------------------------


def test_streams_are_the_same(streamed):
    """Whole texts, deltas, the last output alone."""
    assert streamed.said["same"] is True
    for kind in ("CUMULATIVE", "DELTA", "FINAL_ONLY"):
        assert streamed.said[kind] == streamed.said["plain"]


@pytest.mark.parametrize("kind", ["CUMULATIVE", "DELTA"])
def test_tokens_are_stamped_as_they_come(streamed, kind):
    """One chunk a token, or fewer where the engine was faster than the program."""
    (call,) = streamed.calls(kind)
    said = call.attributes

    assert said[semconv.OUTPUT_TOKENS] == N_TOKENS >= said[semconv.CHUNKS] > 1
    assert 0 < said[semconv.TTFT_NS] < said[semconv.LAST_TOKEN_NS] <= call.duration_ns


def test_the_last_output_alone_has_the_engines_times(streamed):
    """No chunks, but a first token, from the engine's decode."""
    (call,) = streamed.calls("FINAL_ONLY")

    assert semconv.CHUNK_GAPS_NS not in call.attributes
    assert 0 < call.attributes[semconv.TTFT_NS] < call.attributes[semconv.LAST_TOKEN_NS]


def test_the_engines_span_and_its_metrics_say_the_same(streamed):
    """Each call that ran to its end has the engine's span below it, with the very durations."""
    for request in ("CUMULATIVE", "DELTA", "FINAL_ONLY", "many"):
        spans = streamed.traces[f"request {request}"].spans
        served = {span.parent_id: span.attributes for span in spans if span.name == "llm_request"}
        for call in streamed.calls(request):
            by_span = served[call.span_id]
            keys = (semconv.ENGINE_QUEUE_S, semconv.ENGINE_PREFILL_S, semconv.ENGINE_DECODE_S)
            assert [call.attributes[key] for key in ACCOUNT] == [round(by_span[key] * 1e9) for key in keys]


def test_what_waits_waits_in_the_queue(streamed):
    """Six streams at once on an engine for two."""
    waited = sorted(call.attributes[semconv.ACCOUNT_QUEUE_NS] for call in streamed.calls("many"))

    assert len(waited) == 6
    assert waited[-1] > waited[0]


@pytest.mark.parametrize(
    ("request_", "status", "outcome"),
    [
        ("closed", "unset", semconv.ABANDONED),
        ("cancelled", "unset", semconv.CANCELLED),
        ("aborted", "unset", semconv.CANCELLED),
        ("refused", "error", None),
    ],
)
def test_every_way_out_is_one_ended_call(streamed, request_, status, outcome):
    """And none of them a success."""
    (call,) = streamed.calls(request_)

    assert (call.status, call.attributes.get(semconv.OUTCOME)) == (status, outcome)


# --- All of them -------------------------------------------------------------------------------------------


def report_of_transformers():
    """Generate with transformers in this process; return the report."""
    folder = tiny_model_folder()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = hotspan.trace_transformers(transformers.AutoModelForCausalLM.from_pretrained(folder))
    with capture() as captured, hotspan.request("ask"):
        model.generate(**tokenizer("What is a list?", return_tensors="pt"), max_new_tokens=N_TOKENS)
    return report_of(captured)


def report_of_a_server():
    """Generate on a vLLM server; return the report."""
    with capture() as captured, hotspan.receiver() as receiver:
        with vllm_engine(otlp_endpoint=receiver.endpoint) as engine, hotspan.request("ask"):
            "".join(engine.stream([{"role": "user", "content": "What is a list?"}], max_tokens=N_TOKENS))
        receiver.wait(lambda: receiver.n_by_name["llm_request"] >= 1, PATIENCE_S)
    return report_of(captured)


def report_of(captured):
    """Return the report of what was captured."""
    return hotspan.analyse([hotspan.Trace(captured.spans[0].trace_id, captured.spans)]).to_dict()


def test_one_report_reads_alike_over_all_of_them(llm, streamed):
    """Calls, first token, time per token, and phases that add up, each with its source."""
    reports = {
        "LLM": llm.report(),
        "AsyncLLM": streamed.report(),
        "transformers": report_of_transformers(),
        "server": report_of_a_server(),
    }
    sources = {}
    for name, report in reports.items():
        generation = report["generation"]
        assert generation["calls"] == sum(generation["status"].values())
        assert generation["ttft_ms"]["p50"] > 0, name
        assert generation["tpot_ms"]["p50"] > 0, name
        phases = generation["phases_ms"]
        duration = next(row for row in report["stages"] if row["stage"] == "generation")["duration_ms"]
        assert sum(ms for ms in phases.values() if ms) == pytest.approx(duration["mean"])
        assert phases["prefill"] > 0 < phases["decode"]
        sources[name] = Counter(generation["phase_sources"]["prefill"]).most_common(1)[0][0]

    assert sources == {
        "LLM": "response's metrics",
        "AsyncLLM": "engine span, by trace context",
        "transformers": "response's token steps",
        "server": "engine span, by trace context",
    }
