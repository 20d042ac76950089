"""Data sets that are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def needed(name: str) -> Path:
    """Return the folder of a data set, or skip the test."""
    folder = os.environ.get("MALT_DATA")
    if not folder:
        pytest.skip(f"{name} is looked for in the folder that MALT_DATA names, which is not set")
    if not (Path(folder) / name).is_dir():
        pytest.skip(f"{name} is not in the folder that MALT_DATA names, {folder}")
    return Path(folder) / name
