"""What this process is to the job, as its environment says it.

``malt run`` describes a rank to its process in the variables `RANK_VARIABLES`.
Once the process has joined as that rank the description is used up: it is
replaced by one variable, `INSIDE`, so that processes which the rank starts know
where they are without taking themselves for the rank. A forked child is treated
the same. This module is imported with the package and must stay light.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NamedTuple

from .. import _frames

RANK_VARIABLES = (
    "MALT_RANK",
    "MALT_SIZE",
    "MALT_STORE",
    "MALT_STORE_FD",
    "MALT_TOKEN",
    "MALT_TOGETHER",
    "MALT_WITNESSES",
)
INSIDE = "MALT_INSIDE"


class Who(NamedTuple):
    """A rank, or the rank that a helper process belongs to."""

    rank: int
    size: int
    local_rank: int
    """-1 in the children of a rank that had yet to join: nobody knew it."""
    generation: int


def used_up(who: Who) -> None:
    """Replace the description of a rank by the mark of the processes inside it."""
    for name in RANK_VARIABLES:
        os.environ.pop(name, None)
        os.unsetenv(name)  # the library has set some behind the back of os.environ
    os.environ[INSIDE] = ",".join(map(str, who))


def inside() -> Who | None:
    """Return which rank this helper process belongs to; None if it is not a helper.

    A process that has a description of its own is a rank, also when its launcher
    was itself started inside another job.
    """
    _forked()  # a hook of the user's may have come before ours
    mark = os.environ.get(INSIDE)
    if mark is None or "MALT_RANK" in os.environ:
        return None
    try:
        return Who(*map(int, mark.split(",")))
    except (ValueError, TypeError):
        from .._guide import lines  # not with the package

        raise ValueError(lines(f"{INSIDE}={mark!r} is not rank,size,local_rank,generation", do="Unset it.")) from None


def _tell_launcher(error: Exception) -> bool:
    """Have the launcher show an exception of a rank that has not joined yet; False if it does not."""
    if "MALT_REPORT" not in os.environ:  # which `reporter` takes out
        return False
    from .._ranks.report import reporter

    sys.stderr.flush()
    return reporter().failed(error, _frames.plain(_frames.show))


_frames.tell_launcher = _tell_launcher

_pid = os.getpid()
_started: tuple[str, str] = "", ""  # rank and size in variables of another launcher, before the last fork


def _before_fork() -> None:
    """Look up what a child must know: an import there could wait for a thread that the child has not got."""
    global _started
    _started = "", ""
    if "MALT_RANK" not in os.environ and INSIDE not in os.environ:
        from .. import _launchers

        with contextlib.suppress(ValueError):  # which the parent hears of
            found = _launchers.described(os.environ)
            if found and found.size:
                _started = str(found.rank), str(found.size)


def _forked() -> None:
    """Take the rank away from a child, once: its parent is the rank, or will be."""
    global _pid
    if os.getpid() != _pid:
        _pid = os.getpid()
        _take_away(_started)


def _take_away(started: tuple[str, str]) -> None:
    """Mark this process as a helper of the rank that its environment describes.

    A parent that is not a rank leaves its children free to become ranks.
    """
    if INSIDE in os.environ and "MALT_RANK" not in os.environ:
        return  # a helper already
    rank, size = (os.environ.get(name, "") for name in ("MALT_RANK", "MALT_SIZE"))
    if not rank:
        rank, size = started
    if rank.isdecimal() and size.isdecimal():
        used_up(Who(int(rank), int(size), -1, 1))


os.register_at_fork(before=_before_fork, after_in_child=_forked)


def _spawned() -> None:
    """Take the rank away from a child that multiprocessing starts afresh, before its parent has joined.

    If the parent was itself started with the description that the child has
    inherited, it is, or will be, the rank. Otherwise it is a launcher.
    """
    # multiprocessing.parent_process() is not known yet where the main module is imported again.
    if not any(
        word.startswith(("--multiprocessing-fork", "from multiprocessing.forkserver ")) for word in sys.orig_argv
    ):
        return
    try:
        with open(f"/proc/{os.getppid()}/environ", "rb") as file:
            started_with = file.read().split(b"\0")
    except OSError:  # it has ended
        return
    own = [f"{name}={os.environ[name]}" for name in RANK_VARIABLES if name in os.environ]
    if all(os.fsencode(pair) in started_with for pair in own):
        _before_fork()
        _take_away(_started)


_spawned()
