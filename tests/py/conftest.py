"""What all Python tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from loads import loads as loads
from loads import tiny_blocks as tiny_blocks
from shards import shards as shards


@pytest.fixture(autouse=True)
def _no_warnings_of_chance(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """Fail a test in which malt warned though nobody looked: its warnings mean something."""
    yield
    left = [str(w.message) for w in recwarn.list if str(w.message).startswith("malt:")]
    assert not left


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """See that no name in /dev/shm is left and no file; `launched` looks for processes."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    assert os.listdir(tmp_path / "tmp") == []
    assert [name for name in os.listdir("/dev/shm") if "malt" in name] == []
