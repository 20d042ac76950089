"""The processes of one system, and the driver's end of the lines to its ranks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .environments import MissingError
from .numbers import after_last
from .systems import System, base_environment

JOIN = 60.0
"""Seconds until all ranks have said hello."""

ANSWER = 60.0
"""Seconds that one order may take: a peer that hangs is shown as such, and ended."""

END = 5.0
"""Seconds that a process is given to end by itself."""


class TeamError(Exception):
    """The system cannot do it, or does not answer; the text says which."""


class Team:
    """All ranks of a system, as a context manager: leaving it ends every process.

    Parameters
    ----------
    system : System
        Which.
    ranks : int
        How many.
    most : int
        Bytes of the largest row, for systems that have to know before.
    enter : sequence of callable, optional
        Run in the new process of each rank: moves it to its host.
    """

    def __init__(self, system: System, ranks: int, most: int, enter: Sequence[Callable[[], None]] = ()) -> None:
        self.name, self.ranks = system.name, ranks
        self._lines: list[Any] = []
        self._gone = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._names, self._others = system.names, _shared(system.names)
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        self._errors = (Path(self._folder.name) / "errors").open("wb+")
        try:
            self._start(system, most, enter)
        except (OSError, MissingError) as error:
            self.close()
            raise TeamError(str(error)) from error
        except BaseException:
            self.close()
            raise

    def _start(self, system: System, most: int, enter: Sequence[Callable[[], None]]) -> None:
        folder = self._folder.name
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(f"{folder}/door")
            door.listen(self.ranks)
            door.settimeout(0.5)
            more = {"BENCH_SOCKET": f"{folder}/door", "BENCH_FOLDER": folder, "BENCH_TEAM": system.name}
            more.update(BENCH_SIZE=str(self.ranks), BENCH_MOST=str(most))
            for place, (command, own) in enumerate(system.start(self.ranks)):
                env = {**base_environment(), **own, **more}
                env["PYTHONPATH"] = base_environment()["PYTHONPATH"]
                self._processes.append(
                    subprocess.Popen(
                        command,
                        env=env,
                        stdin=subprocess.DEVNULL,
                        stdout=self._errors,
                        stderr=self._errors,
                        start_new_session=True,
                        preexec_fn=enter[place] if enter else None,
                    )
                )
            end = time.monotonic() + JOIN
            while len(self._lines) < self.ranks:
                try:
                    line = door.accept()[0]
                except TimeoutError:
                    if time.monotonic() > end or any(process.poll() is not None for process in self._processes):
                        raise TeamError(f"did not start: {self._said()}") from None
                    continue
                line.settimeout(ANSWER)
                self._lines.append(line.makefile("rw"))
                with contextlib.suppress(ConnectionError):  # its process has ended, which is seen above
                    self._hear(self._lines[-1])

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self, part: str, op: str, size: int, options: dict[str, Any]) -> None:
        """Let all ranks make ready; `part` is what to call it."""
        self._order(do="prepare", part=part, op=op, size=size, **options)

    def turn(self, part: str, calls: int, warm: int = 0) -> float:
        """Let all ranks do so many calls; return the time of one, as the slowest that counts has it.

        Of ranks that note begin and end it is the time from the last arrival on. Before come `warm` calls that do not
        count, without a pause in between.
        """
        times = self.answers(part, calls, warm)
        if isinstance(times[0], list):
            return after_last(times)
        return float(max(t for t in times if t is not None))

    def answers(self, part: str, calls: int, warm: int = 0) -> list[Any]:
        """Let all ranks do so many calls; return what each says of them, in no order."""
        return [answer["seconds"] for answer in self._order(do="round", part=part, calls=calls, warm=warm)]

    def drop(self) -> None:
        """Let all ranks give back what they made ready."""
        self._order(do="drop")

    def _order(self, **order: Any) -> list[dict[str, Any]]:
        if self._gone:
            raise TeamError(self._gone)
        try:
            for line in self._lines:
                line.write(json.dumps(order) + "\n")
                line.flush()
            answers = [self._hear(line) for line in self._lines]
        except TimeoutError:
            self._gone = f"no answer in {ANSWER:.0f} s"
        except OSError:
            self._gone = f"a rank has ended: {self._said()}"
        if self._gone:  # for good: answers would be taken for those of later orders, and waits take others' cores
            self.close()
            raise TeamError(self._gone)
        for answer in answers:
            if "error" in answer:
                raise TeamError(answer["error"])
        return answers

    def _hear(self, line: Any) -> dict[str, Any]:
        text = line.readline()
        if not text:
            raise ConnectionError
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-400:].decode(errors="replace").strip() or "without a word"

    def close(self) -> None:
        """Hang up, which ends the ranks; kill those that go on. Once is enough."""
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.close()
        self._lines = []
        for process in self._processes:
            _end(process)
        for left in _shared(self._names) - self._others:
            left.unlink(missing_ok=True)
        self._errors.close()
        self._folder.cleanup()


def _shared(names: str) -> set[Path]:
    return set(Path("/dev/shm").glob(names)) if names else set()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process whose line is down; end it, and what it has started, if that takes too long."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            process.wait(END)
            return
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
    process.wait()
