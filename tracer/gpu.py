"""What NVIDIA's driver says of the GPUs of this machine, by the package nvidia-ml-py (the extra `gpu`).

Any other machine, or no package: no readings.  Which of the GPUs an engine runs on is not asked.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError, MissingDependencyError
from hotspan.tracer.metric import MetricPoint
from hotspan.tracer.record import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator


class Gpus:
    """The GPUs of this machine, opened.

    Raises:
        MissingDependencyError: nvidia-ml-py is not installed.
        ConfigurationError: The driver is not there, or finds no GPU.
    """

    def __init__(self) -> None:
        try:
            self._nvml: Any = importlib.import_module("pynvml")
        except ImportError as error:
            msg = "GPU readings need the package nvidia-ml-py: pip install 'hotspan[gpu]'"
            raise MissingDependencyError(msg) from error
        self._resource = Resource({semconv.HOST_NAME: os.uname().nodename})
        try:
            self._nvml.nvmlInit()
            self._devices = [
                (self._nvml.nvmlDeviceGetHandleByIndex(index), self._labels(index))
                for index in range(self._nvml.nvmlDeviceGetCount())
            ]
        except self._nvml.NVMLError as error:
            msg = f"There are no GPU readings: NVIDIA's driver says {error}. Sample without gpu=True."
            raise ConfigurationError(msg) from error

    def _labels(self, index: int) -> dict[str, str]:
        name = self._nvml.nvmlDeviceGetName(self._nvml.nvmlDeviceGetHandleByIndex(index))
        text = name.decode() if isinstance(name, bytes) else str(name)  # bytes in older releases
        return {semconv.GPU_ID: str(index), semconv.GPU_NAME: text}

    def readings(self, time_ns: int) -> list[MetricPoint]:
        """Return use, memory and power of each GPU, as far as its driver knows them."""
        return [
            MetricPoint(name, "gauge", time_ns, value, unit=unit, attributes=labels, resource=self._resource)
            for device, labels in self._devices
            for name, value, unit in self._of(device)
        ]

    def _of(self, device: Any) -> Iterator[tuple[str, float, str]]:
        nvml = self._nvml
        for name, unit, read in (
            (semconv.GPU_UTILIZATION, "1", lambda: nvml.nvmlDeviceGetUtilizationRates(device).gpu / 100),
            (semconv.GPU_MEMORY_USAGE, "1", lambda: _ratio(nvml.nvmlDeviceGetMemoryInfo(device))),
            (semconv.GPU_POWER, "W", lambda: nvml.nvmlDeviceGetPowerUsage(device) / 1000),
        ):
            try:
                yield name, read(), unit
            except nvml.NVMLError:  # a device that does not measure it
                continue

    def close(self) -> None:
        """Let go of the driver."""
        self._nvml.nvmlShutdown()


def _ratio(memory: Any) -> float:
    return float(memory.used / memory.total)
