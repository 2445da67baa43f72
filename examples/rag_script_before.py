"""A small RAG script, as one finds them: questions about Python, answered from Python's own documentation.

    python examples/rag_script_before.py "What does the nonlocal statement do?"

All parts are real and small: projected tf-idf vectors, cosine search, BM25 to rerank, and a language model of
word triples that learns from its prompt.  `rag_script_after.py` is this file with Hotspan: compare the two.
"""

import math
import random
import re
import sys
from collections import Counter, defaultdict
from pydoc_data.topics import topics

import numpy as np

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


def embed(texts):
    vectors = np.zeros((len(texts), DIMENSIONS))
    for row, text in enumerate(texts):
        for word, n in Counter(words(text)).items():
            if word in RARITY:
                vectors[row] += n * RARITY[word] * DIRECTIONS[word]
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def retrieve(vector, index):
    return [PASSAGES[row] for row in np.argsort(index @ vector)[:-21:-1]]


def rerank(question, passages):
    def bm25(passage):
        counts = Counter(words(passage))
        size = 0.3 + 0.9 * counts.total() / 60
        return sum(
            RARITY.get(word, 0) * 2.2 * counts[word] / (counts[word] + size)
            for word in dict.fromkeys(words(question))
        )

    return sorted(passages, key=bm25, reverse=True)


def assemble(question, passages, max_words=300):
    prompt = f"Question: {question}"
    for passage in passages:
        if len(prompt.split()) + len(passage.split()) <= max_words:
            prompt += f"\n\n{passage}"
    return prompt


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


def answer(question, index):
    vector = embed([question])[0]
    passages = rerank(question, retrieve(vector, index))
    yield from generate(assemble(question, passages))


def main():
    index = embed(PASSAGES)
    for question in sys.argv[1:] or QUESTIONS:
        print(f"{question}\n  ", end="")
        for piece in answer(question, index):
            print(piece, end="", flush=True)
        print()


if __name__ == "__main__":
    main()
