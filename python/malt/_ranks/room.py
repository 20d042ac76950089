"""Whether a machine has room for so many processes: asked before the first of them is started."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from malt._errors import HostError, OutOfMemoryError
from malt._guide import lines
from malt._ranks import machine

MOST = 1024
"""Ranks that a job can have at the most: the library's own bound (``maxSize``)."""

DESCRIPTORS = 4
"""What a launcher has open for each rank: its two outputs, its report, and the process itself."""

_SPARE = 16
"""Descriptors that starting one more process takes for a moment, and the guard."""

THREADS = 6
"""Threads of a rank that has loaded the library, at the least. They count as processes."""

MEMORY = 16 << 20
"""Bytes that a rank with Python, numpy and the library has for itself, at the least."""

_UNLIMITED = resource.RLIM_INFINITY


class Shortage(NamedTuple):
    """A limit that so many ranks would exceed."""

    ranks: int
    """Ranks that were asked for."""
    possible: int
    """Ranks for which there is room."""
    each: str
    """What a rank takes."""
    limit: str
    """What there is of it, and who says so."""
    remedy: str
    memory: bool = False

    def lines(self) -> tuple[str, str, str]:
        """Return the three lines of its error."""
        fewer = f"start at most {self.possible}, or " if self.possible > 0 else ""
        return (
            f"there is no room for {self.ranks} ranks, and none was started",
            f"each takes {self.each}, and {self.limit}",
            f"{fewer}{self.remedy}",
        )


def see_room(count: int, more: int = 0) -> None:
    """Raise an error if there is no room for so many ranks.

    Parameters
    ----------
    count : int
        How many, each a Python with the library.
    more : int
        Descriptors of the launcher for each rank besides `DESCRIPTORS`.

    Raises
    ------
    OutOfMemoryError, HostError
        There is not; says which limit is in the way.
    """
    found = shortage(count, more)
    if found is not None:
        raise (OutOfMemoryError if found.memory else HostError)(lines(*found.lines()))


def shortage(count: int, more: int = 0, python: bool = True) -> Shortage | None:
    """Return the limit that is most in the way of so many ranks, if one is.

    Parameters
    ----------
    count, more
        As of `see_room`.
    python : bool
        False: they run a program of which nothing is known.
    """
    limits = [*_descriptors(DESCRIPTORS + more), *_processes(THREADS if python else 1)]
    limits += _memory(MEMORY if python else 1 << 20)
    short = [Shortage(count, *limit) for limit in limits if limit[0] < count]
    return min(short, key=lambda one: one.possible, default=None)


_Limit = tuple[int, str, str, str, bool]
"""`Shortage`, less its ranks."""


def _descriptors(each: int) -> Iterator[_Limit]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != _UNLIMITED:
        possible = max(0, (soft - len(os.listdir("/proc/self/fd")) - _SPARE) // each)
        raised = "ulimit -n hard" if hard == _UNLIMITED else f"ulimit -n {hard}"
        if soft == hard:
            raised = "have the hard limit raised (nofile in /etc/security/limits.conf, LimitNOFILE of systemd)"
        yield possible, f"{each} open files of the launcher", f"ulimit -n is {soft}", raised, False


def _processes(each: int) -> Iterator[_Limit]:
    takes = f"{each} threads" if each > 1 else "a process"
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if soft != _UNLIMITED and os.geteuid() != 0:  # it does not hold for root
        left = max(0, soft - _running(os.getuid()))
        yield left // each, takes, f"ulimit -u is {soft}, of which {left} are left", "raise ulimit -u", False
    for group in machine.groups("pids"):
        most, now = number(f"{group}/pids.max"), number(f"{group}/pids.current")
        if most is not None and now is not None:
            left = max(0, most - now)
            said = f"the control group may have {most} threads, of which {left} are left"
            yield left // each, takes, said, "give the container more (pids.max)", False


def _memory(each: int) -> Iterator[_Limit]:
    free = free_memory()
    if free is not None:
        takes, said = f"{each >> 20} MiB of memory or more", f"{free / (1 << 30):.2f} GiB are free"
        yield free // each, takes, said, "end other programs, or give the machine or container more memory", True


def free_memory(meminfo: str = "/proc/meminfo", groups: Iterable[str] | None = None) -> int | None:
    """Return how many bytes the machine and its control groups leave this process; None if they do not say.

    The kernel's cache of files counts as free: the kernel gives that up first.
    """
    left = [fields["MemAvailable:"] << 10] if "MemAvailable:" in (fields := _fields(meminfo)) else []
    for group in machine.groups("memory") if groups is None else groups:
        for most, now, total in (
            ("memory.max", "memory.current", ""),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        ):
            limit, used = number(f"{group}/{most}"), number(f"{group}/{now}")
            if limit is not None and used is not None:
                fields = _fields(f"{group}/memory.stat")
                files = sum(fields.get(f"{total}{name}", 0) for name in ("active_file", "inactive_file"))
                left.append(max(0, limit - used + files))
    return min(left, default=None)


def oom_kills() -> int:
    """Return a number that grows when the kernel kills a process of the control group for lack of memory."""
    files = [
        f"{group}/{name}" for group in machine.groups("memory") for name in ("memory.events", "memory.oom_control")
    ]
    return sum(_fields(file).get("oom_kill", 0) for file in files)


def _fields(path: str) -> dict[str, int]:
    """Return the numbers of a file of the kernel by their names."""
    with suppress(OSError, ValueError), open(path) as file:
        return {name: int(number) for name, number, *_ in map(str.split, file) if number.isdigit()}
    return {}


def _running(user: int) -> int:
    """Return how many threads a user's processes have."""
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            if os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def number(path: str) -> int | None:
    """Return the number in a file of the kernel; None where there is none."""
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):  # "max", or no such file
        return None
