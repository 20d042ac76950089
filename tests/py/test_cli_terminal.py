"""``malt run`` on a terminal: colours, and keys that send signals."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from launching import LONG, script


class Terminal:
    """The other side of a terminal: a keyboard and a screen."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self._fd = fd
        self.process = process
        self.screen = b""

    def wait_for(self, pattern: str, count: int = 1) -> None:
        deadline = time.monotonic() + LONG
        while len(re.findall(pattern.encode(), self.screen)) < count:
            left = deadline - time.monotonic()
            assert left > 0, self.screen
            assert select.select([self._fd], [], [], left)[0], self.screen
            self.screen += os.read(self._fd, 4096)

    def press(self, key: bytes) -> None:
        os.write(self._fd, key)


def _into_the_foreground() -> None:
    """Take the terminal, and its keys: who runs the tests in the background of a shell ignores some."""
    for key in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(key, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def on_terminal(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """Start ``malt run`` in the foreground of a terminal of its own."""
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "malt", "run", *arguments],
        env={**os.environ, "TERM": "xterm", **(env or {})},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=_into_the_foreground,
    )
    os.close(terminal)
    try:
        yield Terminal(keyboard, process)
        process.wait(LONG)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)


def test_prefixes_are_coloured_and_differ(tmp_path: Path) -> None:
    with on_terminal("-n", "2", script(tmp_path, "print('x')")) as terminal:
        terminal.wait_for(r"\]\x1b\[0m x\r\n", 2)  # the whole line
    assert set(re.findall(rb"\x1b\[(\d+)m\[(\d)\]\x1b\[0m x\r\n", terminal.screen)) == {(b"36", b"0"), (b"32", b"1")}


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_switched_off(tmp_path: Path, env: dict[str, str]) -> None:
    with on_terminal("-n", "2", script(tmp_path, "print('x')"), env=env) as terminal:
        terminal.wait_for(r"\[\d\] x", 2)
    assert b"\x1b" not in terminal.screen


def test_ctrl_c_lets_the_ranks_finish(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        try:
            print("ready", flush=True)
            time.sleep(1000)
        except KeyboardInterrupt:
            print("finished", r, flush=True)
        """,
    )
    with on_terminal("-n", "3", path) as terminal:
        terminal.wait_for("ready", 3)
        terminal.press(b"\x03")
        terminal.wait_for(r"finished \d", 3)
    assert terminal.process.returncode == 0
    assert terminal.screen.count(b"finished") == 3, "each rank gets the signal once"


def test_ctrl_backslash_and_closing_the_terminal_leave_nothing(tmp_path: Path) -> None:
    path = script(tmp_path, "print('ready', os.getpid(), flush=True); signal.pause()")
    for key in (b"\x1c", None):
        with on_terminal("-n", "2", path) as terminal:
            terminal.wait_for(r"ready \d+\s", 2)  # the whole number
            pids = [int(pid) for pid in re.findall(rb"ready (\d+)", terminal.screen)]
            watches = [os.pidfd_open(pid) for pid in pids]
            if key is not None:
                terminal.press(key)
            else:
                terminal.process.send_signal(1)  # what the kernel sends when a terminal goes away
            for watch in watches:
                assert select.select([watch], [], [], LONG)[0]
                os.close(watch)
