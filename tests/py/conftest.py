"""What all Python tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from loads import loads as loads
from loads import tiny_blocks as tiny_blocks
from shards import shards as shards

# What is ignored here, as by nohup or in the background of a shell, is ignored in all that tests start.
for _number in (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _no_warnings_of_chance(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """Fail a test in which malt warned though nobody looked: its warnings mean something."""
    yield
    left = [str(w.message) for w in recwarn.list if str(w.message).startswith("malt:")]
    assert not left
