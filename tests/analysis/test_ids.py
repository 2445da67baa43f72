"""Trace and span ids are the same in every spelling that files carry."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.readers import ids


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8))
def test_an_id_is_the_same_in_hex_and_in_base64(trace, span):
    """Upper or lower case, padded or not: 32 and 16 lower-case digits; all zeros is none."""
    for reader, raw in ((ids.trace_id, trace), (ids.span_id, span)):
        expected = raw.hex() if any(raw) else None
        assert reader(raw.hex()) == reader(raw.hex().upper()) == expected
        assert reader(base64.b64encode(raw).decode()) == expected
        assert reader(base64.urlsafe_b64encode(raw).decode()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1f", "000000000000001f", id="short-hex-is-padded"),
        pytest.param("deadbeefcafe", "0000deadbeefcafe", id="twelve-hex-digits-are-hex"),
        pytest.param("0x/CbjGosgs=", "d31fc26e31a8b20b", id="base64-that-begins-as-a-number-does"),
        pytest.param("0x/CbjGosgs", "d31fc26e31a8b20b", id="the-same-without-padding"),
        pytest.param("3q2+7wAAAAE=", "deadbeef00000001", id="twelve-with-padding-are-base64"),
        pytest.param("3q2+7wAAAAE", "deadbeef00000001", id="padding-left-out"),
        pytest.param("", None, id="empty"),
        pytest.param("0000000000000000", None, id="zeros"),
        pytest.param("not an id at all", None, id="garbage"),
        pytest.param("1" * 17, None, id="too-long"),
    ],
)
def test_a_span_id_is_told_by_its_length(text, expected):
    """Hex or base64 is decided by length and padding, never by looks alone."""
    assert ids.span_id(text) == expected
