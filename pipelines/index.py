"""The searchable corpus: a FAISS index of passages, with their token vectors beside it.

Both come from one pass of the model over the corpus.  They are built once and kept in Hotspan's cache folder,
under a hash of the corpus and the model.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hotspan.pipelines.engines.cache import built_once, cache_folder
from hotspan.pipelines.engines.optional import need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from hotspan.pipelines.corpus import Passage
    from hotspan.pipelines.embedder import Embedder, Vectors

LAYOUT: Final = 1  # a change of the files below makes a new index
BATCH: Final = 64
_WHAT: Final = "The search index"
_SENTENCES: Final = "sentences.faiss"
_TOKENS: Final = "tokens.npy"
_BORDERS: Final = "borders.npy"


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found."""

    row: int
    """Its place in the index."""
    passage: Passage
    score: float
    """How well it fits; comparable within one ranking only."""


class Index:
    """Passages, their vectors for search, and their token vectors for late interaction."""

    def __init__(self, passages: Sequence[Passage], folder: Path) -> None:
        np, faiss = need("numpy", what=_WHAT), need("faiss", what=_WHAT)
        self.passages = tuple(passages)
        self._sentences = faiss.read_index(str(folder / _SENTENCES))
        self._tokens = np.load(folder / _TOKENS, mmap_mode="r")
        self._borders = np.load(folder / _BORDERS).tolist()

    def search(self, vectors: Vectors, top_k: int) -> list[list[Hit]]:
        """Return the `top_k` nearest passages of each vector by cosine, best first.

        Args:
            vectors: Shape (queries, dimensions), each of length 1.
            top_k: At most this many passages per query; fewer when the corpus has fewer.
        """
        scores, rows = self._sentences.search(vectors, min(top_k, len(self.passages)))
        return [
            [Hit(row, self.passages[row], score) for row, score in zip(*pair, strict=True)]
            for pair in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def token_vectors(self, row: int) -> Vectors:
        """Return the token vectors of one passage, shape (tokens, dimensions)."""
        vectors: Vectors = self._tokens[self._borders[row] : self._borders[row + 1]].astype("float32")
        return vectors


def max_sim(query: Vectors, passages: Sequence[Vectors]) -> list[float]:
    """Return, per passage, the mean over the query's tokens of the best match among the passage's tokens.

    Late interaction.  The mean orders passages as the sum does and stays within [-1, 1].

    Args:
        query: Token vectors of length 1, shape (tokens, dimensions).
        passages: The same of each passage, with at least one token each.

    Source: Khattab & Zaharia, ColBERT, SIGIR 2020, equation 3.
    """
    if not passages:
        return []
    np, torch = need("numpy", what=_WHAT), need("torch", what=_WHAT)
    # One product for all passages: thirty small ones cost more in calls than in arithmetic.  By torch, whose
    # number of threads the program sets with that of its models; numpy's has no switch.
    both = torch.from_numpy(query), torch.from_numpy(np.concatenate(passages))
    similarities = (both[0] @ both[1].T).numpy()
    starts = np.cumsum([0, *(len(passage) for passage in passages[:-1])])
    scores: list[float] = np.maximum.reduceat(similarities, starts, axis=1).mean(axis=0).tolist()
    return scores


def open_index(passages: Sequence[Passage], embedder: Embedder, say: Callable[[str], None]) -> Index:
    """Return the index of a corpus, from the cache or built now.

    Args:
        passages: The corpus; at least one passage.
        embedder: The model that queries will be embedded with.
        say: Told before a build, which takes some seconds per hundred passages.
    """
    folder = cache_folder() / "index" / _key(passages, embedder)

    def build(empty: Path) -> None:
        say(f"Embedding {len(passages)} passages, once; they are kept in {folder} …")
        _write(empty, passages, embedder)

    return Index(passages, built_once(folder, build))


def _key(passages: Sequence[Passage], embedder: Embedder) -> str:
    recipe = [LAYOUT, embedder.name, embedder.fingerprint(), [[p.topic, p.title, p.text] for p in passages]]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:20]


def _write(folder: Path, passages: Sequence[Passage], embedder: Embedder) -> None:
    np, faiss = need("numpy", what=_WHAT), need("faiss", what=_WHAT)
    order, vectors, tokens = [], [], []
    for batch in _batches(passages):
        batch_vectors, batch_tokens = embedder.encode_with_tokens(
            [embedded_text(passages[row]) for row in batch]
        )
        order += batch
        vectors.append(batch_vectors)
        tokens += [rows.astype("float16") for rows in batch_tokens]
    back = np.argsort(order)
    sentences = faiss.IndexFlatIP(vectors[0].shape[1])
    sentences.add(np.concatenate(vectors)[back].astype("float32"))
    tokens = [tokens[at] for at in back]
    faiss.write_index(sentences, str(folder / _SENTENCES))
    np.save(folder / _TOKENS, np.concatenate(tokens))
    np.save(folder / _BORDERS, np.cumsum([0, *(len(rows) for rows in tokens)]))


def embedded_text(passage: Passage) -> str:
    """Return what of a passage is embedded: its title tells what a piece of a section is about."""
    return f"{passage.title}\n{passage.text}"


def _batches(passages: Sequence[Passage]) -> Iterator[list[int]]:
    # By length, so that short passages are not padded to the longest one.
    rows = sorted(range(len(passages)), key=lambda row: len(passages[row].text))
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]
