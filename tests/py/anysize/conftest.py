"""Tests that hold at any world size.

All ranks run the same tests in the same order: alone under ``pytest``, as the
ranks of a job under ``malt run -n 4 -m pytest tests/py/anysize`` and in
``test_sizes.py``. A rank whose test fails leaves at once, so that the others
hear of it instead of waiting.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import malt


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed and malt.size() > 1:
        item.session.shouldfail = f"rank {malt.rank()} failed {item.name}"
    return report


@pytest.fixture(name="r")
def _rank() -> int:
    return malt.rank()


@pytest.fixture(name="n")
def _size() -> int:
    return malt.size()
