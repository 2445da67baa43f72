"""A real llama.cpp server for tests: the C++ server in the package xllamacpp, and a tiny model for it.

The model is a random Qwen2 with a token for every byte, and it answers in printable ASCII characters: each is
a token and a chunk.  Its words are noise, its timing is real.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Self

import gguf
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT = 4096
_HEADS = 4
_MARKS = ("<|end|>", "<|user|>", "<|assistant|>")
_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "<|assistant|>"
)
_SERVER = textwrap.dedent("""
    import signal, sys
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = int(sys.argv[2])
    params.n_ctx = int(sys.argv[3])
    params.cpuparams.n_threads = 1
    params.endpoint_metrics = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait([signal.SIGINT, signal.SIGTERM])
""")


class LlamaCpp:
    """A server of its own process on a free port; ends with its `with` block.

    Args:
        folder: Where the model and the log are put.
        n_slots: Requests that run at once; the others wait.
        width: Of the model; with `n_layers` it says how long a token takes.
        n_layers: Of the model.
    """

    def __init__(self, folder: Path, *, n_slots: int = 2, width: int = 64, n_layers: int = 2) -> None:
        self.url = ""
        self._model = folder / "tiny.gguf"
        self._log = folder / "llamacpp.log"
        self._n_slots = n_slots
        write_model(self._model, width=width, n_layers=n_layers)

    def __enter__(self) -> Self:
        command = [sys.executable, "-c", _SERVER, self._model, str(self._n_slots), str(CONTEXT)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("http://"):
                self.url = line.strip()
                return self
        raise AssertionError(self._log.read_text(errors="replace")[-2000:])

    def __exit__(self, *_exc: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()


def write_model(path: Path, *, width: int, n_layers: int) -> None:
    """Write a model with random weights."""
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(CONTEXT)
    writer.add_block_count(n_layers)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(2 * width)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    n_tokens = _add_tokenizer(writer)
    _add_weights(writer, width, n_layers, n_tokens)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter) -> int:
    """Add a vocabulary of single bytes, in the spelling of byte-level BPE, and the marks of a chat."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    spelled = {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    tokens = [spelled[byte] for byte in range(256)] + list(_MARKS)
    kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(_MARKS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(["\u0100 \u0100"])  # of two zero bytes, which are in no text: one has to be there
    writer.add_eos_token_id(256)
    writer.add_add_bos_token(False)
    writer.add_chat_template(_TEMPLATE)
    return len(tokens)


def _add_weights(writer: gguf.GGUFWriter, width: int, n_layers: int, n_tokens: int) -> None:
    random = np.random.default_rng(7)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    bias = np.full(n_tokens, -1e4, dtype=np.float32)
    bias[32:127] = 0  # what is answered is printable, and never the end
    writer.add_tensor("token_embd.weight", matrix(n_tokens, width))
    writer.add_tensor("output_norm.weight", np.ones(width, dtype=np.float32))
    writer.add_tensor("output.weight", matrix(n_tokens, width))
    writer.add_tensor("output.bias", bias)
    for layer in range(n_layers):
        block = f"blk.{layer}"
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{block}.{norm}.weight", np.ones(width, dtype=np.float32))
        for part in ("q", "k", "v"):
            writer.add_tensor(f"{block}.attn_{part}.weight", matrix(width, width))
            writer.add_tensor(f"{block}.attn_{part}.bias", np.zeros(width, dtype=np.float32))
        writer.add_tensor(f"{block}.attn_output.weight", matrix(width, width))
        for part in ("gate", "up"):
            writer.add_tensor(f"{block}.ffn_{part}.weight", matrix(2 * width, width))
        writer.add_tensor(f"{block}.ffn_down.weight", matrix(width, 2 * width))
