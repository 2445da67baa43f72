"""Text that comes out of tokens consists of whole characters, and none is lost."""

from hypothesis import given
from hypothesis import strategies as st

from hotspan.pipelines.engines.decoding import TextPieces


def decode(ids):
    """Read each token as one byte, as a byte-level tokenizer does at worst."""
    return bytes(ids).decode("utf-8", errors="replace")


def pieces_of(data):
    """Return what comes out for each byte, and the rest."""
    pieces = TextPieces(decode)
    return [pieces.add(byte) for byte in data] + [pieces.rest()]


def test_a_character_comes_out_with_its_last_byte():
    """A piece never ends inside a character."""
    assert pieces_of("aé€😀".encode()) == ["a", "", "é", "", "", "€", "", "", "", "😀", ""]


@given(st.text())
def test_any_text_comes_out_whole(text):
    """The pieces are the text."""
    assert "".join(pieces_of(text.encode(errors="replace"))) == text.encode(errors="replace").decode()


@given(st.binary())
def test_bytes_that_are_no_text_delay_nothing_for_long(data):
    """No byte waits for more than three others, and whatever is a character comes out."""
    pieces = TextPieces(decode)
    waiting = 0
    for byte in data:
        waiting = 0 if pieces.add(byte) else waiting + 1
        assert waiting < 4


def test_half_a_character_at_the_end_is_given_out():
    """The rest is not lost when the answer ends inside a character."""
    assert "".join(pieces_of(b"a\xe2\x82")) == "a\N{REPLACEMENT CHARACTER}"
