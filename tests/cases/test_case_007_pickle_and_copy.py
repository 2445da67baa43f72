"""What is decorated holds no lock and no tracer: it can be pickled, copied and sent to a process."""

import copy
import pickle
import subprocess
import sys

import hotspan
from hotspan.testing import capture

PROGRAM = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import hotspan

@hotspan.tool
def double(x):
    return 2 * x

@hotspan.embedding
class Model:
    def __init__(self, factor):
        self.factor = factor
    def run(self, x):
        return self.factor * x

if __name__ == "__main__":
    hotspan.configure(file=sys.argv[1])
    double(0)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(double, range(4))) == [0, 2, 4, 6]
        assert pool.submit(Model(3).run, 2).result() == 6
"""


@hotspan.embedding
class Model:
    """A decorated class."""

    def __init__(self):
        self.weights = [1, 2]

    def run(self):
        """Return the weights."""
        return self.weights


def test_instances_can_be_copied_and_pickled():
    """A copy of an instance works and is traced; so is one in the middle of a stage."""
    with capture() as captured:
        with hotspan.step():
            for again in (copy.deepcopy(Model()), pickle.loads(pickle.dumps(Model()))):  # noqa: S301 - our own bytes
                assert again.run() == [1, 2]

    assert len(captured.spans) == 3


def test_decorated_functions_work_in_a_spawned_process(tmp_path):
    """A pool that starts fresh interpreters can be given decorated functions and methods."""
    program, path = tmp_path / "program.py", tmp_path / "run.jsonl"
    program.write_text(PROGRAM)

    subprocess.run([sys.executable, "-W", "error", program, path], check=True, timeout=60)

    assert path.read_text().count('"spanId"') == 1
