"""What this machine is, and what keeps it busy."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """Return processor, cores, kernel and load."""
    return {
        "processor": _processor(),
        "cores": sorted(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def busy(seconds: float = 0.5) -> float:
    """Return how many cores others keep busy, watched for so long while this process sleeps."""
    before = _ticks()
    time.sleep(seconds)
    return (_ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def _ticks() -> int:
    """Return ticks of all cores that were not idle, nor waiting for a disk."""
    user, nice, system, _, _, *others = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    return sum(map(int, (user, nice, system, *others)))
