"""What ``malt run -H`` starts on each host: it starts the ranks there, and ends them when the connection ends.

Standard input and output are the connection (``frames``). Its end, by whatever
accident, is the end of the ranks. That ``malt run``'s machine is gone, and can no
longer end it, the system finds out by what is sent there: so something always is.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

import malt
from malt import _addresses, _parent
from malt._cli import target
from malt._cli.frames import PREAMBLE, frame, said
from malt._cli.supervise import not_started
from malt._cli.terminal import Terminal
from malt._launch import Job, meeting, program_environment
from malt._machine import crowding
from malt._room import shortage

_PIECE = 1 << 16

_SIGN = 5.0
"""Seconds between two signs of life."""


class RefusedError(Exception):
    """What was asked cannot be done here; the message says why."""


def _refuse(why: str) -> NoReturn:
    raise RefusedError(why)


class Agent:
    """The ranks of one host, and the connection.

    Parameters
    ----------
    job : Job
        Of the ranks; none has been started.
    connection : Terminal
        Writes, without ever waiting for a reader who does not read.
    """

    def __init__(self, job: Job, connection: Terminal) -> None:
        self._job = job
        self._connection = connection
        self._heard = b""
        self._argv: list[str] = []
        self._env: dict[str, str] = {}
        self._asked: dict[str, Any] = {}
        self._listening: list[socket.socket] = []
        self._told: dict[int, dict[str, Any]] = {}
        self._open = True

    def serve(self) -> None:
        """Do as told until the ranks have ended, or the connection."""
        self._connection.show(1, PREAMBLE)
        self._say(version=malt.__version__)
        while self._open and not self._job.ranks:
            self._hear()
        if not self._open:
            return
        self._connection.job = self._job
        self._job.watch(0, self._hear)
        while not self._job.wait(time.monotonic() + _SIGN, self._tell):
            if self._open:
                self._say(alive=True)
        if self._open:
            self._tell()
            self._connection.detach()
            self._say(left=self._job.close())

    def _say(self, **message: Any) -> None:
        self._connection.show(1, said(message))

    def _tell(self) -> bool:
        """Say what is new about the ranks."""
        for rank in self._job.ranks:
            news = {
                "status": rank.status,
                "failed": rank.failed is not None,
                "failure": rank.failure,
                "words": rank.words,
                "summary": rank.summary,
            }
            if news != self._told.get(rank.number):
                self._told[rank.number] = news
                self._say(rank=rank.number, **news)
        return False

    # ------------------------------------------------------------------ what is heard

    def _hear(self) -> None:
        piece = os.read(0, _PIECE)
        if not piece:
            self._open = False
            if self._job.ranks:
                self._job.forget(0)
                self._job.kill()
            return
        *lines, self._heard = (self._heard + piece).split(b"\n")
        try:
            for line in lines:
                self._obey(**json.loads(line))
        except RefusedError as error:
            self._say(refused=str(error))

    def _obey(self, do: str, **what: Any) -> None:
        tasks: dict[str, Callable[..., None]] = {
            "prepare": self._prepare,
            "start": self._start,
            "signal": self._job.signal,
            "asked": self._note_that_asked,
            "stop": self._stop,
            "kill": self._kill,
        }
        tasks[do](**what)

    def _prepare(self, **what: Any) -> None:
        """See whether the ranks can be started, and be the host where they meet if rank 0 is one of them."""
        folder, count = what["folder"], what["count"]
        try:
            os.chdir(folder)
        except OSError as error:
            _refuse(
                f"its folder {folder!r} cannot be entered ({error.strerror}): share it, or name another with --chdir"
            )
        os.environ.update(what["env"])
        self._argv = target.command(what["program"], _refuse, "malt run")
        found = shortage(count, python=self._argv[0] == sys.executable)
        if found is not None:
            _refuse(str(found))
        self._env = program_environment(count)
        self._asked = what
        store = ""
        try:
            if what["first"] == 0:
                self._listening, store = _addresses.listen()
            all_of_them = _addresses.addresses(os.environ.get("MALT_INTERFACE", ""))
        except ValueError as error:
            _refuse(str(error).removeprefix("malt: "))
        public = [address for address in all_of_them if _addresses.public(address)]
        self._say(ready=True, store=store, notes=crowding(count, self._env), public=public)

    def _start(self, store: str) -> None:
        first, count = self._asked["first"], self._asked["count"]
        env = self._env | meeting(self._asked["size"], store, self._asked["token"])
        try:
            for rank in range(first, first + count):
                own, pass_fds = {"MALT_RANK": str(rank)}, []
                if rank == 0:
                    pass_fds = [one.fileno() for one in self._listening]
                    own["MALT_STORE_FD"] = ",".join(map(str, pass_fds))
                self._job.start(self._argv, env | own, pass_fds, number=rank)
        except OSError as error:
            _refuse(not_started("rank", self._argv[0], len(self._job.ranks), count, error))
        for one in self._listening:
            one.close()

    def _note_that_asked(self) -> None:
        self._job.asked = True

    def _stop(self) -> None:
        self._job.judge()  # what has failed before that has failed by itself
        self._job.stop()

    def _kill(self) -> None:
        self._job.judge()
        self._job.kill()


def main() -> int:
    """Serve one ``malt run``."""
    connection = Terminal("malt")
    agent = os.getpid()

    def output(rank: int, stream: int, data: bytes) -> None:
        connection.show(1, frame(stream, rank, data))  # also that there is no more

    # Tracebacks travel with the news of a rank: malt run shows them.
    with Job(output, preexec=lambda: _parent.end_with(agent), told=lambda _: None) as job:
        Agent(job, connection).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
