"""The RAG script of `rag_script_before.py`, with Hotspan: one import, one line of set-up, one line per stage.

    python examples/rag_script_after.py "What does the nonlocal statement do?"
    hotspan report rag.jsonl

    diff examples/rag_script_before.py examples/rag_script_after.py     # the whole lesson

Nothing else has changed: same functions, same signatures, same answers.
"""

import math
import random
import re
import sys
from collections import Counter, defaultdict
from pydoc_data.topics import topics

import numpy as np

import hotspan

QUESTIONS = [
    "When does the finally clause of a try statement run?",
    "What does the nonlocal statement do?",
    "How are default parameter values evaluated?",
]
DIMENSIONS = 512
MIN_CHARS = 100


def words(text):
    return re.findall(r"[a-z_]{2,}", text.lower())


PASSAGES = [
    " ".join(part.split()) for text in topics.values() for part in text.split("\n\n") if len(part) > MIN_CHARS
]
N_PASSAGES_WITH = Counter(word for passage in PASSAGES for word in dict.fromkeys(words(passage)))
RARITY = {word: math.log(1 + len(PASSAGES) / n) for word, n in N_PASSAGES_WITH.items()}
DIRECTIONS = dict(
    zip(RARITY, np.random.default_rng(0).standard_normal((len(RARITY), DIMENSIONS)), strict=True)
)


@hotspan.embedding(model="tf-idf")
def embed(texts):
    vectors = np.zeros((len(texts), DIMENSIONS))
    for row, text in enumerate(texts):
        for word, n in Counter(words(text)).items():
            if word in RARITY:
                vectors[row] += n * RARITY[word] * DIRECTIONS[word]
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@hotspan.retrieval("numpy", top_k=20)
def retrieve(vector, index):
    return [PASSAGES[row] for row in np.argsort(index @ vector)[:-21:-1]]


@hotspan.rerank(model="bm25")
def rerank(question, passages):
    def bm25(passage):
        counts = Counter(words(passage))
        size = 0.3 + 0.9 * counts.total() / 60
        return sum(
            RARITY.get(word, 0) * 2.2 * counts[word] / (counts[word] + size)
            for word in dict.fromkeys(words(question))
        )

    return sorted(passages, key=bm25, reverse=True)


@hotspan.context_assembly
def assemble(question, passages, max_words=300):
    prompt = f"Question: {question}"
    for passage in passages:
        if len(prompt.split()) + len(passage.split()) <= max_words:
            prompt += f"\n\n{passage}"
    return prompt


@hotspan.generation(model="word-triples")
def generate(prompt, max_words=40):
    text = prompt.partition("\n\n")[2].split()
    follows = defaultdict(list)
    for first, second, third in zip(text, text[1:], text[2:], strict=False):
        follows[first, second].append(third)
    choose, pair = random.Random(0), tuple(text[:2])
    for _ in range(max_words):
        yield f"{pair[0]} "
        if pair not in follows:
            return
        pair = (pair[1], choose.choice(follows[pair]))


@hotspan.request
def answer(question, index):
    vector = embed([question])[0]
    passages = rerank(question, retrieve(vector, index))
    yield from generate(assemble(question, passages))


def main():
    index = embed(PASSAGES)
    hotspan.configure(service_name="rag-script", file="rag.jsonl")
    for question in sys.argv[1:] or QUESTIONS:
        print(f"{question}\n  ", end="")
        for piece in answer(question, index):
            print(piece, end="", flush=True)
        print()


if __name__ == "__main__":
    main()
