"""An application that calls a model through the openai package, traced by one line.

    python examples/openai_client.py                                   # starts a small server of its own
    python examples/openai_client.py http://127.0.0.1:8000/v1 MODEL    # vLLM, llama.cpp, OpenAI, …
    hotspan report openai.jsonl

The server that the example starts refuses the first request: the client tries again by itself, and the report
shows the attempt and the back-off that you would not have seen.
"""

import json
import os
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai

import hotspan

ANSWER = "A pool keeps connections open, so that a request need not wait for one."


@hotspan.request
def ask(client, model, question):
    messages = [{"role": "user", "content": question}]
    for chunk in client.chat.completions.create(model=model, messages=messages, stream=True):
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()


def main():
    hotspan.configure(service_name="openai-example", file="openai.jsonl")
    with given_server(*sys.argv[1:]) if sys.argv[1:] else local_server() as (base_url, model):
        key = os.environ.get("OPENAI_API_KEY", "none")
        client = hotspan.trace_openai(openai.OpenAI(base_url=base_url, api_key=key))
        with client:
            ask(client, model, "What is a connection pool?")
            ask(client, model, "And why?")


@contextmanager
def given_server(base_url, model):
    yield base_url, model


class Server(BaseHTTPRequestHandler):
    """Streams the same answer to whoever asks; busy at first."""

    protocol_version = "HTTP/1.1"
    n_requests = 0

    def do_POST(self):  # noqa: D102 - http.server's name
        self.rfile.read(int(self.headers["content-length"]))
        type(self).n_requests += 1
        if self.n_requests == 1:
            self.send_response(503)
            self.send_header("retry-after-ms", "100")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for word in ANSWER.split():
            time.sleep(0.01)
            self._send({"delta": {"content": f"{word} "}, "finish_reason": None})
        self._send({"delta": {}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _send(self, choice):
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "words"}
        chunk["choices"] = [{"index": 0, **choice}]
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def log_message(self, *arguments):  # noqa: D102 - as above
        pass


@contextmanager
def local_server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", "words"
        server.shutdown()


if __name__ == "__main__":
    main()
