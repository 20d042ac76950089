"""The ranks of this user on this machine, as they show themselves in memory (libmalt/internal/core/trace.go).

A rank keeps a memfd open, whose first page says what it is doing, and behind which its last
events lie. Others read it through ``/proc``: no file is left over, the kernel refuses other
users, and the rank does not notice.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MAGIC = 0x34574F4E544C414D
PAGE = struct.Struct("<11Qq3Qd118Q")  # core.Now: words, of which the age has a sign, and the loss is a float
WORDS = {"rank": 2, "size": 3, "near": 4, "room": 7, "doing": 8, "syncs": 9, "bytes": 10, "age": 11, "recorded": 13}
TEXTS = {"mark": 49, "place": 70, "host": 113}  # where they begin
RECORDED, EVENTS = 8 * WORDS["recorded"], 4096  # where their number is, and where they begin
RECORD = struct.Struct("<32Q")
KINDS = ("", "call", "wait", "fold", "death", "mark", "log", "send")
NO_AGE = -128  # it does not fit in a byte
IN_CALL = ("computing", "in a gather", "in a scatter", "in a collective call")
IN_COLLECTIVE = 3
OBJECT = (1 << 20) - 1  # of an object's number, where doing has it
MEMORY = "/memfd:malt-rank"

Key = tuple[str, int]
"""A rank among those of several machines: its host, and its process there."""


class Rank(NamedTuple):
    """What a rank shows, and the kernel of its process."""

    rank: int
    size: int
    near: int  # ranks of this machine; 0: not all have joined yet
    job: str
    host: str
    pid: int
    command: str
    cwd: str
    memory: int  # bytes
    signals: int  # that it handles: a bit for each, from 1
    doing: int  # a word: see Marks.Note of the library
    state: str
    waits_for: list[int]
    waited: float  # seconds, asleep in its call
    slept: float  # the same, of all its calls
    late: list[int]  # the ranks that it slept for last
    syncs: int
    bytes: int
    clock: int  # of the vector that it used last; 0: none
    age: int
    loss: float | None
    mark: str
    place: str  # of its last call
    advice: str  # on its present wait, once that is long
    dead: list[int]
    room: int  # for events
    recorded: int
    at: float  # time.monotonic()
    joined: float  # the same

    @property
    def key(self) -> Key:
        """What tells it from all other ranks."""
        return self.host, self.pid


class Event(NamedTuple):
    """An event of a rank."""

    rank: int
    number: int  # from 1
    kind: str
    begin: float  # seconds, by time.monotonic()
    seconds: float
    ranks: list[int]  # waited for, folded, dead, or those that an update went to
    value: float
    text: str = ""
    update: int = 0  # of a fold or an update: object << 40 | clock
    ages: tuple[int, ...] = ()  # of a fold: of the first of its ranks; none: all are 0


def ranks() -> list[Rank]:
    """Return the ranks of this user on this machine."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        # A process may have just ended, not be a rank, or belong to another user.
        with contextlib.suppress(OSError, ValueError, KeyError, struct.error):
            if os.stat(f"/proc/{name}").st_uid == os.getuid():
                found.append(_described(name, _mapped(name)))
    return found


def jobs(found: Iterable[Rank]) -> dict[str, list[Rank]]:
    """Return ranks in their order, by the name of their job."""
    by_job: dict[str, list[Rank]] = defaultdict(list)
    for rank in sorted(found):
        by_job[rank.job].append(rank)
    return {job: _late(ranks) for job, ranks in sorted(by_job.items())}


def _late(ranks: list[Rank]) -> list[Rank]:
    """Take out of what ranks wait for those which are in the same gather by now: they wake no rank until all are."""
    doing = {rank.rank: rank.doing for rank in ranks}

    def still(rank: Rank) -> list[int]:
        gather = rank.doing >> 40 if rank.doing >> 60 == 1 else -1
        return [r for r in rank.waits_for if doing.get(r, 0) >> 40 != gather or doing[r] < rank.doing]

    return [rank._replace(waits_for=still(rank) or rank.waits_for) for rank in ranks]


def descriptor(pid: int | str, name: str) -> tuple[str, str]:
    """Return the path of a process's memfd whose name begins so, and its whole name; empty if it has none."""
    folder = f"/proc/{pid}/fd"
    for fd in os.listdir(folder):
        with contextlib.suppress(OSError):  # it has just been closed
            target = os.readlink(f"{folder}/{fd}")
            if target.startswith(name):
                return f"{folder}/{fd}", target.removesuffix(" (deleted)")
    return "", ""


def _mapped(pid: int | str) -> mmap.mmap:
    path, _ = descriptor(pid, MEMORY)
    if not path:
        raise ValueError(pid)
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def _described(pid: int | str, memory: mmap.mmap) -> Rank:
    page = _read(memory)
    status = dict(line.split(":", 1) for line in _text(pid, "status").splitlines())
    if page[0] != MAGIC or page[1] != int(status["NSpid"].split()[-1]):
        raise ValueError(pid)  # it has left, or is a child of the rank
    arguments = _text(pid, "cmdline").rstrip("\0").split("\0")
    if os.path.basename(arguments[0]).startswith("python") and len(arguments) > 1:
        del arguments[0]
    now = time.monotonic()
    activity = page[8] >> 60
    used = page[8] if activity < IN_COLLECTIVE and page[8] >> 40 & OBJECT else page[12]
    late = _set(page[16:32])
    waits_for = late if page[14] and activity else []
    waited = max(0.0, now - page[14] / 1e9) if waits_for else 0.0
    kernel = status["State"].split()[0]
    if kernel in "Tt":
        state = "stopped"
    elif not page[4]:
        state = "joining"
    else:
        state = "waiting" if waits_for else IN_CALL[min(activity, IN_COLLECTIVE)]
    words: dict[str, Any] = {key: page[at] for key, at in WORDS.items()}
    words |= {key: _words(page[at:]) for key, at in TEXTS.items()}
    return Rank(
        **words,
        job=f"{page[5]:08x}" if page[5] else f"pid-{pid}",
        pid=int(pid),
        command=printable(" ".join(arguments)),
        cwd=os.readlink(f"/proc/{pid}/cwd"),
        memory=int(status.get("VmRSS", "0 kB").split()[0]) << 10,
        signals=int(status["SigCgt"], 16),
        state=state,
        waits_for=waits_for,
        waited=waited,
        slept=page[91] / 1e9 + waited,
        late=late,
        clock=used & (1 << 40) - 1,
        loss=page[15] if page[48] else None,
        advice=_words(page[92:]) if waits_for else "",
        dead=_set(page[32:48]),
        at=now,
        joined=page[6] / 1e9,
    )


class Ring:
    """The events of a rank, to be read as they come, and the last ones after its end.

    Parameters
    ----------
    pid : int or str
        Its process.

    Raises
    ------
    OSError
        It has ended, or is another user's.
    ValueError
        It is not a rank, or keeps no events.
    """

    def __init__(self, pid: int | str) -> None:
        self._memory, self._read = _mapped(pid), 0
        self.rank = _described(pid, self._memory)
        if not self.rank.room:
            raise ValueError(pid)

    def read(self) -> tuple[bytes, int]:
        """Return the records of events since the last time, and how many of these are lost.

        An event is lost if a newer one has overwritten it before it was read.
        """
        recorded = int.from_bytes(self._memory[RECORDED : RECORDED + 8], "little")
        first = max(self._read, recorded - self.rank.room)
        found = [record for number in range(first, recorded) if (record := self._record(number))]
        lost, self._read = recorded - self._read - len(found), recorded
        return b"".join(found), lost

    def _record(self, number: int) -> bytes:
        """Return a record; none if it is overwritten meanwhile: then it has another number in the second copy."""
        at = EVENTS + number % self.rank.room * RECORD.size
        once, twice = (self._memory[at : at + RECORD.size] for _ in range(2))
        return once if once == twice and int.from_bytes(once[:8], "little") == number + 1 else b""

    def events(self) -> tuple[list[Event], int]:
        """Return the events since the last time, and how many are lost."""
        records, lost = self.read()
        return list(decoded(self.rank.rank, records)), lost


def decoded(rank: int, records: bytes) -> Iterator[Event]:
    """Yield the events of a rank's records."""
    for words in RECORD.iter_unpack(records):
        number, kind, begin, took, value = words[:5]
        name = KINDS[kind & 0xFF] if kind & 0xFF < len(KINDS) else ""
        text = struct.pack("<11Q", *words[21:])[: kind >> 8]
        others = [other for other in _set(words[5:21]) if other != rank]
        at = begin / 1e9
        # Rounded once: an event that ends when the next one begins ends at the same float.
        event = Event(rank, number, name, at, (begin + took) / 1e9 - at, others, 0.0)
        if name == "fold":
            ages = struct.unpack(f"{len(text)}b", text)
            known = [age for age in ages if age != NO_AGE] or ages
            yield event._replace(update=value, ages=ages, value=float(max(known, default=0)))
        elif name == "send":
            yield event._replace(update=value, value=float(words[21]))
        else:
            yield event._replace(value=_float(value), text=text.decode(errors="replace"))


def _read(memory: mmap.mmap) -> tuple[Any, ...]:
    """Return the words of the page: twice the same, so that no text is half a new one."""
    before = memory[: PAGE.size]
    for _ in range(3):
        after = memory[: PAGE.size]
        if before[392:] == after[392:]:
            break
        before = after
    return PAGE.unpack(after)


def _words(words: tuple[int, ...]) -> str:
    """Return a text behind its count; empty while it is being changed."""
    count, length = words[0] >> 8, words[0] & 0xFF
    text = struct.pack("<20Q", *words[1:21])[:length].decode(errors="replace")
    return "" if count % 2 else printable(text)


def printable(text: str) -> str:
    """Return a text that leaves a terminal as it is."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _set(words: tuple[int, ...]) -> list[int]:
    return [64 * i + bit for i, word in enumerate(words) if word for bit in range(64) if word >> bit & 1]


def _float(word: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", word))[0])


def _text(pid: int | str, name: str) -> str:
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()
