"""What NVIDIA's driver says, by its real binding; where there is no GPU, one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.gpu import Gpus

pytest.importorskip("pynvml")
HAS_GPU = Path("/proc/driver/nvidia").exists()


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
def test_without_a_driver_it_is_one_sentence():
    """The binding is there and the driver is not: its own words, and what to do."""
    with pytest.raises(ConfigurationError, match=r"NVIDIA's driver says .*gpu=True"):
        Gpus()


@pytest.mark.skipif(not HAS_GPU, reason="this machine has no GPU")
def test_every_gpu_is_read():
    """Use and memory are ratios, power is in watts; each says which GPU it is of."""
    gpus = Gpus()
    points = gpus.readings(5)
    gpus.close()

    assert {point.time_ns for point in points} == {5}
    assert all(point.attributes[semconv.GPU_NAME] for point in points)
    ratios = [
        point.value for point in points if point.name in {semconv.GPU_UTILIZATION, semconv.GPU_MEMORY_USAGE}
    ]
    assert ratios
    assert all(0 <= ratio <= 1 for ratio in ratios)
    assert all(point.value > 0 for point in points if point.name == semconv.GPU_POWER)
