"""vLLM in this process: one call for eight prompts, each of them timed by the engine itself.

    python examples/vllm_in_process.py                  # a tiny model, built once: its words are noise
    python examples/vllm_in_process.py Qwen/Qwen3-0.6B  # any name or folder that vLLM takes
    hotspan report vllm-in-process.jsonl

Two prompts run at a time here, so that the others wait: the report shows it as `queue`.
"""

import os
import sys

import vllm

import hotspan
from hotspan.pipelines.engines.tiny_model import tiny_model_folder

PROMPTS = [f"Count to {n}:" for n in range(3, 11)]


@hotspan.request
def answer_all(llm):
    parameters = vllm.SamplingParams(max_tokens=32, temperature=0)
    for output in llm.generate(PROMPTS, parameters, use_tqdm=False):
        print(output.prompt, output.outputs[0].text)


def main():
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB; looked at on a CPU alone
    hotspan.configure(service_name="vllm-example", file="vllm-in-process.jsonl")
    source = sys.argv[1] if len(sys.argv) > 1 else str(tiny_model_folder())
    # `disable_log_stats=False` makes the engine keep the times of each request: `LLM` by default does not.
    engine = vllm.LLM(source, disable_log_stats=False, max_num_seqs=2, max_model_len=1024, enforce_eager=True)
    llm = hotspan.trace_vllm(engine)
    answer_all(llm)


if __name__ == "__main__":
    main()
