"""A model of transformers in this process, streamed from a thread as its documentation does it, and traced.

    python examples/transformers_streaming.py                  # a tiny model, built once: its words are noise
    python examples/transformers_streaming.py Qwen/Qwen3-0.6B  # any name or folder that transformers takes
    hotspan report transformers.jsonl

Two lines are Hotspan's: `trace_transformers`, and `propagate`, which takes the request along into the thread.
"""

import sys
from threading import Thread

from transformers import AutoModelForCausalLM, AutoTokenizer, TextIteratorStreamer

import hotspan
from hotspan.pipelines.engines.tiny_model import tiny_model_folder

QUESTIONS = ["What is latency?", "What is throughput?", "Why is the first answer slower?"]


@hotspan.request
def ask(model, tokenizer, question):
    messages = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    streamer = TextIteratorStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
    arguments = {**tokenizer(prompt, return_tensors="pt"), "streamer": streamer, "max_new_tokens": 32}
    thread = Thread(target=hotspan.propagate(model.generate), kwargs=arguments)
    thread.start()
    for text in streamer:
        print(text, end="", flush=True)
    thread.join()
    print()


def main():
    hotspan.configure(service_name="transformers-example", file="transformers.jsonl")
    source = sys.argv[1] if len(sys.argv) > 1 else tiny_model_folder()
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = hotspan.trace_transformers(AutoModelForCausalLM.from_pretrained(source))
    for question in QUESTIONS:
        ask(model, tokenizer, question)


if __name__ == "__main__":
    main()
