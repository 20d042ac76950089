"""What the tests of simulated networks share."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from typing import NoReturn

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell, and then in all they start
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _alone() -> None:
    """Skip outside `make test-net`, and fail where the test before has left a network."""
    devices = {device for _, device in socket.if_nameindex()}
    if devices != {"lo"}:
        pytest.skip(f"needs a network namespace of its own (`make test-net`), and here are {', '.join(devices)}")


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    """Fail a test that hangs, whatever it waits for."""

    def late(*_: object) -> NoReturn:
        raise TimeoutError("the test has taken more than a minute")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
