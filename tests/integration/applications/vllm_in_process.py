"""A program that generates with vLLM in its own process, traced.

    python vllm_in_process.py {llm|async} FILE

Its spans go to FILE, and what its calls returned, before it was traced and after, to the last line of its
output, as JSON.
"""

import asyncio
import contextlib
import gc
import json
import os
import sys

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
    "OTEL_SERVICE_NAME": "vllm",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
}

import vllm
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

import hotspan
from hotspan.pipelines.engines.tiny_model import tiny_model_folder

N_TOKENS = 8
N_AT_ONCE = 2  # that the engine runs
PROMPTS = ["What is a list?", "What is a dict?", "Hello", "Why?", "How many?", "Where to?"]
TOO_LONG = "word " * 5000
ENGINE = {
    "model": str(tiny_model_folder()),
    "served_model_name": "tiny",
    "max_model_len": 1024,
    "dtype": "bfloat16",
    "enforce_eager": True,
    "max_num_seqs": N_AT_ONCE,
}


def params(**options):
    """Return parameters that make an answer of `N_TOKENS`, the same at each call."""
    return vllm.SamplingParams(**{"max_tokens": N_TOKENS, "temperature": 0, "ignore_eos": True, **options})


def texts(outputs):
    """Return the text of each answer."""
    return [answer.text for output in outputs for answer in output.outputs]


def interrupt(items=None, *, desc, **_options):
    """Stand for a progress bar at the moment of a Ctrl-C."""
    if desc == "Processed prompts":
        raise KeyboardInterrupt
    return items


def generate():
    """Use `vllm.LLM`: with statistics, and as it is by default."""
    llm = vllm.LLM(**ENGINE, disable_log_stats=False)
    said = {"plain": texts(llm.generate(PROMPTS, params(), use_tqdm=False))}
    said["same"] = hotspan.trace_vllm(llm) is llm
    with hotspan.request("batch"):
        said["traced"] = texts(llm.generate(PROMPTS, params(), use_tqdm=False))
    with hotspan.request("chat"):
        llm.chat([{"role": "user", "content": "Hello"}], params(n=2, temperature=1.0), use_tqdm=False)
    with contextlib.suppress(VLLMValidationError), hotspan.request("refused"):
        llm.generate(["Hello", TOO_LONG], params(), use_tqdm=False)
    with hotspan.request("after"):
        said["after"] = texts(llm.generate(PROMPTS[:1], params(), use_tqdm=False))
    with contextlib.suppress(KeyboardInterrupt), hotspan.request("interrupted"):
        llm.generate(PROMPTS[:1], params(), use_tqdm=interrupt)
    del llm
    gc.collect()
    bare = hotspan.trace_vllm(vllm.LLM(**ENGINE))
    with hotspan.request("no statistics"):
        bare.generate(PROMPTS[:1], params(), use_tqdm=False)
    return said


async def read(llm, name, prompt=PROMPTS[0], **options):
    """Return the text of one answer, whatever pieces it comes in."""
    whole = ""
    async for output in llm.generate(prompt, params(**options), name):
        (answer,) = output.outputs
        is_delta = options.get("output_kind") is RequestOutputKind.DELTA
        whole = whole + answer.text if is_delta else answer.text
    return whole


async def leave_early(llm):
    """Leave one stream each by closing it, by cancelling its task, and by aborting its request."""
    with hotspan.request("closed"):
        stream = llm.generate(PROMPTS[0], params(max_tokens=500), "closed")
        await anext(stream)
        await stream.aclose()
    with hotspan.request("cancelled"):
        task = asyncio.create_task(read(llm, "cancelled", max_tokens=900))
        await asyncio.wait([task], timeout=0.2)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    with hotspan.request("aborted"):
        async for output in llm.generate(PROMPTS[0], params(max_tokens=500), "aborted"):
            if not output.finished:
                await llm.abort("aborted")


async def stream(endpoint):
    """Use `AsyncLLM`: every kind of stream, many at once, and every way out."""
    llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**ENGINE, otlp_traces_endpoint=endpoint))
    said = {"plain": await read(llm, "plain"), "same": hotspan.trace_vllm(llm) is llm}
    for kind in RequestOutputKind:
        with hotspan.request(kind.name):
            said[kind.name] = await read(llm, kind.name, output_kind=kind)
    with hotspan.request("many"):
        names = [f"many-{number}" for number in range(6)]
        await asyncio.gather(*(read(llm, name, output_kind=RequestOutputKind.DELTA) for name in names))
    await leave_early(llm)
    with contextlib.suppress(VLLMValidationError), hotspan.request("refused"):
        await read(llm, "refused", prompt=TOO_LONG)
    llm.shutdown()
    return said


def main():
    """Run one of the two, and print what it returned."""
    how, file = sys.argv[1:]
    hotspan.configure(file=file, service_name="in-process")
    if how == "llm":
        said = generate()
    else:
        with hotspan.receiver() as receiver:
            said = asyncio.run(stream(f"{receiver.endpoint}/v1/traces"))
            n_calls = 3 + 6  # those that ran to their end; vLLM writes no span for others
            receiver.wait(lambda: receiver.n_by_name["llm_request"] >= n_calls, 20)
    hotspan.shutdown(timeout=10)
    print(json.dumps(said))  # noqa: T201 - to the test


if __name__ == "__main__":
    main()
