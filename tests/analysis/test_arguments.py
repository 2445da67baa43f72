"""What `analyse` is given by mistake gets a sentence that says what to give."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse, parse_where, select
from hotspan.tracer.errors import ConfigurationError, UnusableTraceError


@pytest.mark.parametrize("name", ["run.jsonl", Path("run.jsonl")])
def test_a_files_name_is_no_traces(name):
    """The first thing that a new user tries."""
    with pytest.raises(ConfigurationError, match=r"hotspan\.load\('run\.jsonl'\)"):
        analyse(name)


def test_an_attribute_that_no_selected_request_has_is_said_of_these():
    """Other requests may have it."""
    traces = many(
        2, lambda k: request(k, 100 * k, answer(0, 100 * k), attributes={"tenant": "a"} if k == 1 else {})
    )
    chosen = select(traces, parse_where(["request.duration>150ms"]))

    with pytest.raises(UnusableTraceError, match="no selected request has such an attribute"):
        analyse(chosen, by="tenant")
