"""Reports on what other libraries write, run for real in their newest versions: a change is noticed here.

The same program traced by each; `tests/recorded` holds what they wrote when it was last recorded.
"""

import pytest

import hotspan
from tests.integration import recording
from tests.integration.environments import python_with

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("name", recording.LIBRARIES)
def test_the_report_says_what_the_program_did(name, tmp_path):
    """Calls by stage, requests, failures, tokens: as the script of the model server has them."""
    module, packages = recording.LIBRARIES[name]
    for number, body in enumerate(recording.record(python_with(*packages), module)):
        (tmp_path / f"{number}.pb").write_bytes(body)

    report = hotspan.analyse(hotspan.load(*sorted(tmp_path.iterdir())))

    recording.check(report)
