"""Jobs of several ranks for tests, started without ``malt run``.

Every rank is a Python process that runs a script text. Whatever happens, its
processes end with the test, and nothing of them may be left: no process, also
no child of one, no name in /dev/shm, no file in their temporary directory.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from launching import LONG, MARK, marked

WARNS_EARLY = "from malt._lib.loading import lib\nlib.malt_on_long_wait(200, lib.malt_python_report)\n"
"""Has a rank warn of a wait after 0.2 s, and not after 10."""

PRELUDE = "import os, signal, sys, time\nimport numpy as np\nimport malt\nr, n = malt.rank(), malt.size()\n"


def by_tcp() -> dict[str, str]:
    """Return what makes the ranks of a `Job` do without shared memory."""
    while True:
        port = 16384 + secrets.randbelow(16384)  # the kernel gives it to nobody who asks for any
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return {"MALT_TRANSPORT": "tcp", "MALT_STORE": f"127.0.0.1:{port}"}


class Stream:
    """What a process has written to one of its streams so far."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._data = b""
        self._ended = False
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe: IO[bytes]) -> None:
        while piece := os.read(pipe.fileno(), 1 << 16):
            with self._more:
                self._data += piece
                self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()
        pipe.close()

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the first match of the pattern, once it is there."""
        deadline = time.monotonic() + LONG
        with self._more:
            while True:
                found = re.search(pattern, self.text, re.MULTILINE)
                if found:
                    return found
                if self._ended or not self._more.wait(deadline - time.monotonic()):
                    raise AssertionError(f"{pattern!r} did not come in {self.text!r}")

    def finish(self) -> str:
        self._thread.join(LONG)
        return self.text


class Rank:
    """One process of a job."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self.out, self.err = Stream(process.stdout), Stream(process.stderr)

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = LONG) -> int:
        return self.process.wait(seconds)


class Job:
    """Ranks that run one script.

    Parameters
    ----------
    n : int
        How many.
    script : str
        Python; it has numpy as np, malt, the rank as r and the size as n.
    prelude : bool
        Whether to give it those. Without, the script does not touch malt first.
    """

    def __init__(
        self, n: int, script: str, *, timeout: float = LONG, prelude: bool = True, env: Mapping[str, str] | None = None
    ) -> None:
        self._mark = uuid.uuid4().hex
        self._folder = tempfile.TemporaryDirectory(prefix="ranks-")
        path = Path(self._folder.name) / "script.py"
        path.write_text((PRELUDE if prelude else "") + textwrap.dedent(script))
        self.tmp = Path(self._folder.name) / "tmp"
        self.tmp.mkdir()
        self.env = {
            "MALT_SIZE": str(n),
            "MALT_STORE": f"local:{self._mark}",
            "MALT_TOKEN": uuid.uuid4().hex,
            "MALT_TIMEOUT": str(timeout),
            "TMPDIR": str(self.tmp),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            MARK: self._mark,
        }
        self.ranks: list[Rank] = []
        try:
            for rank in range(n):
                own = {"MALT_RANK": str(rank)}
                self.ranks.append(self._start([sys.executable, "-u", str(path)], {**self.env, **own, **(env or {})}))
        except BaseException:
            self.close()
            raise

    def _start(self, command: Sequence[str], env: Mapping[str, str]) -> Rank:
        process = subprocess.Popen(
            command,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return Rank(process)

    def finish(self, seconds: float = LONG) -> list[Rank]:
        """Wait until all have ended by themselves."""
        deadline = time.monotonic() + seconds
        for rank in self.ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.process.wait(max(0.0, deadline - time.monotonic()))
        hang = [
            f"rank {i} hangs; so far: {rank.out.text!r} {rank.err.text!r}"
            for i, rank in enumerate(self.ranks)
            if rank.process.poll() is None
        ]
        assert not hang, "\n".join(hang)
        for rank in self.ranks:
            rank.out.finish()
            rank.err.finish()
        return self.ranks

    def close(self) -> None:
        """End what is left and assert that this was all."""
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.kill()
                rank.process.send_signal(signal.SIGCONT)
            rank.process.wait(LONG)
            assert rank.process.stdin is not None
            rank.process.stdin.close()
        strays = marked(self._mark)
        for pid in strays:
            os.kill(pid, signal.SIGKILL)
        left = os.listdir(self.tmp) + [name for name in os.listdir("/dev/shm") if "malt" in name]
        self._folder.cleanup()
        assert not strays, f"processes left: {strays}"
        assert not left, f"files left: {left}"

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def run(n: int, script: str, *, code: int = 0, **more: object) -> list[str]:
    """Run a script to its end on n ranks; return what each has written to its standard output."""
    with Job(n, script, **more) as job:  # type: ignore[arg-type]
        ranks = job.finish()
        bad = [
            f"rank {i} ended with {k.process.returncode}:\n{k.out.text[-3000:]}\n{k.err.text}"
            for i, k in enumerate(ranks)
            if k.process.returncode != code
        ]
        assert not bad, "\n".join(bad)
        return [rank.out.text.strip() for rank in ranks]


SERVE = """
import ast, linecache
given = dict(globals())
for number, line in enumerate(sys.stdin):
    text = ast.literal_eval(line)
    linecache.cache["script.py"] = len(text), None, text.splitlines(True), "script.py"
    exec(compile(text, "script.py", "exec"), dict(given))
    malt.barrier()
    print(f"\\0{number}", flush=True)
"""


class Kept:
    """Ranks that run one script after the other, each with names of its own: for what takes long to import."""

    def __init__(self, n: int, prepared: str) -> None:
        self._job = Job(n, prepared + SERVE)
        self._count = 0

    def run(self, script: str) -> list[str]:
        """Run a script to its end; return what each rank has written to its standard output meanwhile."""
        said = []
        before = [len(rank.out.text) for rank in self._job.ranks]
        try:
            for rank in self._job.ranks:
                rank.say(repr(textwrap.dedent(script)))
            for rank, start in zip(self._job.ranks, before, strict=True):
                end = rank.out.wait_for(f"\0{self._count}$").start()
                said.append(rank.out.text[start:end].removeprefix(f"\0{self._count - 1}\n").strip())
        except (AssertionError, OSError) as e:
            raise AssertionError("\n".join(rank.err.finish()[-3000:] for rank in self._job.finish())) from e
        self._count += 1
        return said

    def close(self) -> None:
        """End the ranks, which have nothing more to do."""
        for rank in self._job.ranks:
            assert rank.process.stdin is not None
            with contextlib.suppress(OSError):  # it has failed
                rank.process.stdin.close()
        try:
            assert all(rank.process.returncode == 0 for rank in self._job.finish())
        finally:
            self._job.close()
