"""Passages: short enough, split where a reader would, and every text once."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hotspan
from hotspan.pipelines.corpus import MAX_CHARS, load_corpus, read_folder, split_document, split_documents


def test_default_corpus_is_pythons_topics():
    """Hundreds of passages, each within the bound, each text once, from most topics."""
    passages = load_corpus()

    assert len(passages) > 400
    assert all(0 < len(passage.text) <= MAX_CHARS for passage in passages)
    assert len({passage.text for passage in passages}) == len(passages)
    assert {"with", "lambda", "string-methods", "import"} <= {passage.topic for passage in passages}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("one\n\ntwo", [("", "one\n\ntwo")], id="paragraphs-share-a-passage"),
        pytest.param("Title\n*****\n\nbody", [("Title", "body")], id="heading-becomes-title"),
        pytest.param("# A\n\na\n\n## B\n\nb", [("A", "a"), ("B", "b")], id="heading-starts-a-passage"),
        pytest.param("A\n===\n\nB\n---", [], id="headings-alone-are-nothing"),
        pytest.param("a\r\n\r\nb", [("", "a\n\nb")], id="windows-line-ends"),
        pytest.param(" \n\n\t\n", [], id="blank"),
        pytest.param(
            f"{'x' * 600}\n\n{'y' * 600}", [("", "x" * 600), ("", "y" * 600)], id="two-too-long-for-one"
        ),
        pytest.param("z" * 1000, [("", "z" * 900), ("", "z" * 100)], id="no-border-anywhere"),
    ],
)
def test_split_at_paragraphs_and_headings(text, expected):
    """Passages end at paragraph borders, and inside a paragraph only where it is longer than a passage."""
    assert list(split_document(text)) == expected


@given(st.text(alphabet="ab \n", max_size=3000))
def test_splitting_loses_nothing_but_white_space(text):
    """Every letter of a text is in its passages, in order, and none is longer than the bound."""
    bodies = [body for _, body in split_document(text)]

    assert "".join("".join(bodies).split()) == "".join(text.split())
    assert all(len(body) <= MAX_CHARS for body in bodies)


def test_a_text_in_two_documents_is_kept_in_the_shorter():
    """A section that a larger document includes belongs to the document that is about it."""
    section = "With\n****\n\nIt closes files."
    passages = split_documents({"all": f"{section}\n\nFor\n***\n\nIt loops.", "with": section})

    assert [(passage.topic, passage.title) for passage in passages] == [("all", "For"), ("with", "With")]


def test_folder_of_text_files(tmp_path):
    """Text files are read recursively, named without their suffix; bytes that are no UTF-8 do no harm."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.md").write_text("# Cats\n\nThey sleep.", encoding="utf-8")
    (tmp_path / "b.TXT").write_bytes(b"caf\xe9")
    (tmp_path / "c.png").write_bytes(b"\x89PNG")

    passages = load_corpus(tmp_path)

    assert [(p.topic, p.title, p.text) for p in passages] == [
        ("b", "b", "caf\N{REPLACEMENT CHARACTER}"),
        (os.path.join("deep", "a"), "Cats", "They sleep."),  # noqa: PTH118 - as the platform spells it
    ]


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        pytest.param(lambda folder: folder.rmdir(), "not a folder", id="missing"),
        pytest.param(lambda _folder: None, "no text file in it", id="empty"),
        pytest.param(lambda folder: (folder / "a.txt").write_text(" \n"), "are empty", id="blank-files"),
        pytest.param(lambda folder: (folder / "a.bin").write_bytes(b"\0"), r"\.txt", id="no-text-files"),
    ],
)
def test_an_unusable_folder_is_named(tmp_path, prepare, says):
    """A folder without text is refused in a sentence that has its path and what to do."""
    folder = tmp_path / "notes"
    folder.mkdir()
    prepare(folder)

    with pytest.raises(hotspan.ConfigurationError, match=says) as caught:
        load_corpus(folder)
    assert str(folder) in str(caught.value)


def test_a_file_is_no_folder(tmp_path):
    """A path to a file is refused as a corpus."""
    file = tmp_path / "a.txt"
    file.write_text("text", encoding="utf-8")

    with pytest.raises(hotspan.ConfigurationError, match="not a folder"):
        read_folder(file)
