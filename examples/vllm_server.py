"""A generation on a vLLM server, and the server's own account of it: queue, prefill, decode, in one trace.

    python examples/vllm_server.py                        # starts vLLM with a tiny model, and stops it
    python examples/vllm_server.py http://127.0.0.1:8000  # a server of yours, or anything OpenAI-compatible
    hotspan report vllm.jsonl

A server of yours sends its spans here when it was started with
`OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf vllm serve … --otlp-traces-endpoint http://127.0.0.1:4319/v1/traces`.
"""

import sys
from contextlib import nullcontext

import hotspan
from hotspan.pipelines.engines import vllm_engine

RECEIVER_PORT = 4319
MESSAGES = [{"role": "user", "content": "What is the difference between latency and throughput?"}]


@hotspan.request
def ask(client):
    with client.stream(MESSAGES, max_tokens=48) as answer:  # sends the trace's id along: vLLM's span joins it
        for delta in answer:
            print(delta.text or "", end="", flush=True)
    print(f"\n{answer.status}, {answer.finish_reason}: {answer.usage}\n")


def main():
    base_url = sys.argv[1] if len(sys.argv) > 1 else None
    hotspan.configure(service_name="vllm-example", file="vllm.jsonl")
    with hotspan.receiver(port=RECEIVER_PORT if base_url else 0) as engine_spans:
        server = nullcontext() if base_url else vllm_engine(otlp_endpoint=engine_spans.endpoint)
        with server as engine, hotspan.LLMClient(base_url or engine.base_url) as client:
            for _ in range(3):
                ask(client)
        # The server stops first: it has sent its last span before the receiver closes.


if __name__ == "__main__":
    try:
        main()
    except hotspan.HotspanError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
