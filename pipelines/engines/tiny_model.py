"""The tiny model: a real architecture, tokenizer and chat template around random weights.

It exists so that every machine has a model: nothing is downloaded, it is built in seconds and takes 10 MB.
What it says is noise; what an engine does to say it, and how long that takes, is real.
"""

from __future__ import annotations

import hashlib
import json
from pydoc_data.topics import topics
from typing import TYPE_CHECKING, Any, Final

from hotspan.pipelines.engines.base import say
from hotspan.pipelines.engines.cache import built_once, cache_folder
from hotspan.pipelines.engines.optional import need, no_progress_bars, version_of

if TYPE_CHECKING:
    from pathlib import Path

TINY_MODEL: Final = "tiny"  # the name under which servers serve it and spans carry it
CONTEXT_TOKENS: Final = 4096

_SEED = 20
_VOCABULARY = 4096
_END_OF_TEXT, _TURN_START, _TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
_CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)
_ARCHITECTURE: dict[str, Any] = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT_TOKENS,
    "tie_word_embeddings": True,
}


def tiny_model_folder() -> Path:
    """Return the folder of the tiny model in Hugging Face form; build it the first time.

    Same Python, same packages: same bytes.  The cache's key is the hash of all that goes in.

    Raises:
        hotspan.MissingDependencyError: torch or transformers is not installed.
    """
    return built_once(cache_folder() / f"tiny-model-{_recipe_hash()}", _build)


def _recipe_hash() -> str:
    packages = ("torch", "transformers", "tokenizers")
    recipe = {
        "builder": 1,
        "seed": _SEED,
        "architecture": _ARCHITECTURE,
        "template": _CHAT_TEMPLATE,
        "text": hashlib.sha256(_training_text().encode()).hexdigest(),
        "packages": {package: version_of(package, what="The tiny model") for package in packages},
    }
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


def _training_text() -> str:
    return "\n".join(topics[name] for name in sorted(topics))


def _build(folder: Path) -> None:
    say(f"Building the tiny model (once, some seconds) in {folder.parent} …")
    tokenizer = _train_tokenizer()
    tokenizer.save_pretrained(folder)
    _save_random_weights(folder, tokenizer)


def _train_tokenizer() -> Any:
    tokenizers = need("tokenizers", what="The tiny model")
    transformers = need("transformers", what="The tiny model")
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=[_END_OF_TEXT, _TURN_START, _TURN_END],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator((topics[name] for name in sorted(topics)), trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token=_TURN_END,
        pad_token=_END_OF_TEXT,
        additional_special_tokens=[_TURN_START],
        chat_template=_CHAT_TEMPLATE,
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )


def _save_random_weights(folder: Path, tokenizer: Any) -> None:
    torch = need("torch", what="The tiny model")
    transformers = need("transformers", what="The tiny model")
    config = transformers.Qwen2Config(
        **_ARCHITECTURE,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay what they were
        torch.manual_seed(_SEED)
        model = transformers.Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True,
        temperature=1.0,
        eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
        pad_token_id=tokenizer.pad_token_id,
    )
    with no_progress_bars():
        model.save_pretrained(folder)
