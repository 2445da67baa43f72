"""The tiny model is a real model folder, the same every time."""

import pytest

from hotspan.pipelines.engines.tiny_model import tiny_model_folder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.rag


def contents(folder):
    """Return every file's bytes by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Two folders, built apart."""
    folders = []
    for name in ("one", "two"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOTSPAN_CACHE", str(tmp_path_factory.mktemp(name)))
            folders.append(tiny_model_folder())
    return folders


def test_two_builds_have_the_same_bytes(built):
    """Weights, tokenizer, template and configuration: the recipe decides every byte."""
    one, two = map(contents, built)

    assert one.keys() >= {"model.safetensors", "tokenizer.json", "config.json", "chat_template.jinja"}
    assert one == two


def test_it_is_small(built):
    """A cache that nobody minds."""
    assert sum(len(data) for data in contents(built[0]).values()) < 12_000_000


def test_the_build_leaves_the_callers_random_numbers_alone(tmp_path, monkeypatch):
    """What the program draws afterwards is what it would have drawn."""
    monkeypatch.setenv("HOTSPAN_CACHE", str(tmp_path))
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    tiny_model_folder()

    assert torch.equal(torch.rand(3), expected)


def test_its_chat_template_marks_every_turn(built):
    """Turns are framed by special tokens, and the answer's turn is opened."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(built[0])
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = tokenizer.encode(text)
    assert ids.count(tokenizer.convert_tokens_to_ids("<|im_start|>")) == 3
    assert ids.count(tokenizer.eos_token_id) == 2


def test_its_tokenizer_gives_text_back(built):
    """Byte-level: no character is unknown to it."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(built[0])
    text = "A list comprehension: [x for x in y]  —  naïve 😀\n\tend"

    assert tokenizer.decode(tokenizer.encode(text)) == text
