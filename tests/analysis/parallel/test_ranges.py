"""Every line of a file belongs to one range."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotspan.analysis.parallel import ranges
from hotspan.analysis.parallel.ranges import UnfitError, ranges_of


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 6), st.booleans(), st.integers(1, 99))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ranges_have_every_line_once_and_in_order(tmp_path, lengths, n, is_ended, n_block):
    """However a file is cut, in whatever blocks it is read: nothing is lost or twice there, no line cut."""
    lines = [b"%d" % number + b"x" * length + b"\n" for number, length in enumerate(lengths)]
    if lines and not is_ended:
        lines[-1] = lines[-1][:-1]
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"".join(lines))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_BLOCK_BYTES", n_block)
        assert [bytes(line) for part in ranges_of(str(file), n) for line in part.lines()] == lines


@given(st.integers(1, 200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_before_a_range_ends_where_it_begins(tmp_path, n_bytes):
    """The lines before a range are the last ones of those before it: those that begin in so many bytes."""
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"".join(b"line %d\n" % number for number in range(30)))
    first, second = ranges_of(str(file), 2)

    before = list(map(bytes, second.before(n_bytes).lines()))

    assert before == list(map(bytes, first.lines()))[len(list(first.lines())) - len(before) :]
    begins = [second.start - sum(map(len, before[at:])) for at in range(len(before))]
    assert all(begin >= second.start - n_bytes for begin in begins[1:])


@pytest.mark.parametrize("n_block", [4, 64])
def test_a_line_longer_than_any_that_is_read_is_refused(tmp_path, monkeypatch, n_block):
    """It would not fit in the memory that reading may take, and is not read to its end."""
    monkeypatch.setattr(ranges, "MAX_DOCUMENT_BYTES", 10)
    monkeypatch.setattr(ranges, "_BLOCK_BYTES", n_block)
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"short\n" + b"x" * 11 + b"\n")

    with pytest.raises(UnfitError):
        list(ranges_of(str(file), 1)[0].lines())
