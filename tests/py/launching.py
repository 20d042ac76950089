"""Starts ``malt run`` in tests, and sees to it that nothing of it is left.

Every process that a test starts inherits a mark in its environment, by which it
is found however it was orphaned.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LONG = 180.0
"""Seconds after which a test has failed. Nothing takes that long unless it hangs."""

SOON = 10.0
"""Seconds within which what is to happen at once has happened, also where other work has the processors."""

MARK = "MALT_TEST_MARK"


def marked(mark: str) -> list[int]:
    """Return the live processes that carry the mark."""
    return [int(name) for name in filter(str.isdigit, os.listdir("/proc")) if mark.encode() in _environment(name)]


def _environment(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or is not ours
        return b""


def wait_for_end(pid: int, seconds: float = LONG) -> bool:
    """Return whether a process, not necessarily a child, ends within some seconds."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


class Launcher:
    """One ``malt run`` under test, and what it has written so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.text = {1: b"", 2: b""}

    def read(self, stream: int, seconds: float) -> bytes:
        """Return what came within some seconds: nothing at the end."""
        pipe = self.process.stdout if stream == 1 else self.process.stderr
        assert pipe is not None
        piece = os.read(pipe.fileno(), 1 << 16) if select.select([pipe], [], [], seconds)[0] else b""
        self.text[stream] += piece
        return piece

    def wait_for(self, pattern: str, count: int = 1, stream: int = 1) -> list[str]:
        """Read until the pattern has been found so often; return what its group 1 matched."""
        deadline = time.monotonic() + LONG
        while len(found := re.findall(pattern, self.text[stream].decode(), re.MULTILINE)) < count:
            left = deadline - time.monotonic()
            if left <= 0 or not self.read(stream, left):
                raise AssertionError(f"{pattern!r} came {len(found)} times of {count} in {self.text}")
        return found

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def finish(self, seconds: float = LONG) -> int:
        """Wait for the end and return the exit code."""
        out, err = self.process.communicate(timeout=seconds)
        self.text[1] += out
        self.text[2] += err
        return self.process.returncode

    @property
    def out(self) -> str:
        return self.text[1].decode()

    @property
    def err(self) -> str:
        return self.text[2].decode()


@contextmanager
def launched(
    *arguments: str, env: Mapping[str, str] | None = None, command: Sequence[str] | None = None
) -> Iterator[Launcher]:
    """Start ``malt run`` with these arguments, or a command; in the end nothing of it may be left."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        command or [sys.executable, "-m", "malt", "run", *arguments],
        env={**os.environ, **(env or {}), MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield Launcher(process)
    except BaseException:
        process.kill()
        raise
    finally:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        process.wait(LONG)
        # Processes of a killed launcher are on their way out; those of one that
        # has returned must be gone.
        left = [pid for pid in marked(mark) if not wait_for_end(pid, 2.0)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"{len(left)} processes were left behind"


def run(*arguments: str, env: Mapping[str, str] | None = None) -> Launcher:
    """Run ``malt run`` to its end."""
    with launched(*arguments, env=env) as launcher:
        launcher.finish()
        return launcher


def script(folder: Path, text: str, name: str = "script.py") -> str:
    """Write a script and return its path. It knows its rank as r and the size as n."""
    path = folder / name
    head = (
        "import os, signal, subprocess, sys, time\nr, n = int(os.environ['MALT_RANK']), int(os.environ['MALT_SIZE'])\n"
    )
    path.write_text(head + textwrap.dedent(text))
    return str(path)
