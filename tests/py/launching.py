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
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LONG = 300.0
"""Seconds after which a test has failed. Nothing takes that long unless it hangs."""

SOON = 10.0
"""Seconds within which what is to happen at once has happened, by a `Stopwatch`."""

MARK = "MALT_TEST_MARK"


def marked(mark: str) -> list[int]:
    """Return the live processes that carry the mark."""
    return [int(name) for name in filter(str.isdigit, os.listdir("/proc")) if mark.encode() in _environment(name)]


def _environment(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or is not ours
        return b""


class Stopwatch:
    """Measures how long something takes, in the processor time of a thread that always wants to run.

    A machine whose processors have other work, or that stands still, gives it as little as it gives
    those that are measured.
    """

    def __enter__(self) -> Stopwatch:
        self.seconds = 0.0
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self) -> None:
        before = time.thread_time()
        while not self._stop:
            now = time.thread_time()
            self.seconds += min(now - before, 0.001)  # more at once is a host's doing, which has stopped this machine
            before = now

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join()


@contextmanager
def soon() -> Iterator[None]:
    """Assert that what is done in this context takes no longer than `SOON`."""
    with Stopwatch() as watch:
        yield
    assert watch.seconds < SOON


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

    def signal_again(self, number: int) -> None:
        """Send a signal until it has counted as a second one: what comes by two ways at once counts once."""
        deadline = time.monotonic() + LONG
        while "again: killing" not in self.err:
            assert time.monotonic() < deadline
            self.signal(number)
            self.read(2, 0.05)

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
    *arguments: str, env: Mapping[str, str] | None = None, command: Sequence[str] | None = None, patient: str = ""
) -> Iterator[Launcher]:
    """Start ``malt run`` with these arguments, or a command; in the end nothing of it may be left.

    A limit of `malt._ranks.launch` is lifted with `patient`, such as ``GRACE``.
    """
    mark = uuid.uuid4().hex
    program = ["-m", "malt"]
    if patient:
        limit = f"from malt._ranks import launch; launch.{patient} = {LONG}"
        program = ["-c", f"{limit}; import sys; from malt._cli import main; sys.exit(main())"]
    process = subprocess.Popen(
        command or [sys.executable, *program, "run", *arguments],
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
        # Processes of a killed launcher are on their way out, and those of a host whose agent was; those of one that
        # has returned must be gone.
        limit = LONG if process.returncode < 0 or "-H" in arguments else 0
        left = [pid for pid in marked(mark) if not wait_for_end(pid, limit)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"{len(left)} processes were left behind"


def run(*arguments: str, env: Mapping[str, str] | None = None, patient: str = "") -> Launcher:
    """Run ``malt run`` to its end."""
    with launched(*arguments, env=env, patient=patient) as launcher:
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
