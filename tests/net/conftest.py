"""What the tests of simulated networks share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from launching import LONG
from net.across import alone
from net.ssh import Ssh, servers


@pytest.fixture(autouse=True)
def _alone() -> None:
    alone()


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    """Fail a test that hangs, whatever it waits for."""

    def late(*_: object) -> NoReturn:
        raise TimeoutError(f"the test has taken more than {2 * LONG:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(int(2 * LONG))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[Ssh]:
    """Start an sshd on each host; the value makes the ssh command for some hosts."""
    with servers(tmp_path) as start:
        yield start
