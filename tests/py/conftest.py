"""What all Python tests share."""

from __future__ import annotations

from collections.abc import Iterator

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
