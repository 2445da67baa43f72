"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def cpu_model() -> str:
    """Return the processor's name, as the kernel has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def describe() -> str:
    """Return the machine in one line."""
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"{platform.python_implementation()} {platform.python_version()}, load average {load}"
    )
