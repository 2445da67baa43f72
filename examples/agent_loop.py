"""An agent loop: where its time goes, and how many model calls one request costs.

    python examples/agent_loop.py                         # a tiny local model (needs pip install '.[rag]')
    python examples/agent_loop.py http://127.0.0.1:8000   # any OpenAI-compatible server
    hotspan report agent.jsonl

The tiny model's weights are random: the grammar makes its decisions valid, nothing makes them clever.  The
times are real.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pydoc_data.topics import topics

import hotspan
from hotspan.pipelines.engines import embedded_engine, server_engine

TASK = "Which topics of Python's documentation belong to loops, and how much is there to read?"
MAX_STEPS = 3


@hotspan.tool
def related(topic):
    return [other for other in topics if other != topic and topics[topic].count(other) > 1]


@hotspan.tool
def count_words(topic):
    return len(topics[topic].split())


TOOLS = {"related": related, "count_words": count_words}
CALL = {
    "type": "object",
    "properties": {"tool": {"enum": list(TOOLS)}, "topic": {"enum": list(topics)}},
    "required": ["tool", "topic"],
    "additionalProperties": False,
}
DECISION = {
    "type": "object",
    "properties": {"calls": {"type": "array", "items": CALL, "minItems": 1, "maxItems": 2}},
    "required": ["calls"],
    "additionalProperties": False,
}


@hotspan.step
def step(engine, notes):
    """Ask the model what to do, and do it: the tool calls of one step run at the same time."""
    prompt = f"Call tools to solve the task: {' '.join(TOOLS)}.\n" + "\n".join(notes)
    text = engine.complete([{"role": "user", "content": prompt}], max_tokens=200, schema=DECISION)
    calls = json.loads(text)["calls"]
    with ThreadPoolExecutor() as pool:
        # A new thread knows nothing of the step that it works for, unless it is told.
        run = hotspan.propagate(lambda call: TOOLS[call["tool"]](call["topic"]))
        for call, result in zip(calls, pool.map(run, calls), strict=True):
            notes.append(f"{call['tool']}({call['topic']!r}) = {result}")


@hotspan.agent("reader")
def solve(engine, task):
    notes = [task]
    for _ in range(MAX_STEPS):
        step(engine, notes)
    yield from engine.stream([{"role": "user", "content": "\n".join(notes)}], max_tokens=32)


@hotspan.request("reading-list")
def answer(engine, task):
    yield from solve(engine, task)


def main():
    hotspan.configure(service_name="agent-loop", file="agent.jsonl")
    with server_engine(sys.argv[1]) if len(sys.argv) > 1 else embedded_engine() as engine:
        for piece in answer(engine, TASK):
            print(piece, end="", flush=True)
    print()


if __name__ == "__main__":
    try:
        main()
    except hotspan.HotspanError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
