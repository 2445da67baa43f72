"""Reports on what real libraries wrote of a program; tests/integration/record_fixtures.py records it."""

from pathlib import Path

import pytest

import hotspan
from tests.integration import recording

FOLDER = Path(__file__).parents[1] / "recorded"
HAS_FIRST_CHUNK = {"langfuse", "openinference", "openllmetry", "otel-genai"}


@pytest.mark.parametrize("name", recording.LIBRARIES)
def test_the_report_says_what_the_program_did(name):
    """Calls by stage, requests, failures and tokens, whatever the library calls them."""
    report = hotspan.analyse(hotspan.load(FOLDER / f"{name}.jsonl"))

    recording.check(report)
    assert (report.generation.first_chunk_ns is not None) is (name in HAS_FIRST_CHUNK)


def test_each_recording_is_of_a_library_that_is_still_run():
    """What nobody can record anew would grow old unnoticed."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(recording.LIBRARIES)


def test_the_recordings_tell_nothing_of_the_machine():
    """No path, host or user is left in them."""
    written = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.jsonl"))

    assert not [word for word in ("/root", "/home", "/Users", "site-packages", ".py") if word in written]
