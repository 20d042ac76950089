"""The system calls of namespaces, which Python has from 3.12 on or not at all."""

from __future__ import annotations

import ctypes
import os

NEWNS = 0x00020000  # linux/sched.h
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWUSER = 0x10000000
NEWPID = 0x20000000
NEWNET = 0x40000000

MS_NOSUID = 2  # linux/mount.h
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

# Looked up at import: between fork and exec there must be no loading of anything.
_libc = ctypes.CDLL(None, use_errno=True)
_unshare, _setns, _mount = _libc.unshare, _libc.setns, _libc.mount
_mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def _succeed(status: int, what: str, where: str | None = None) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}", where)


def unshare(flags: int) -> None:
    """Give this process new namespaces; of NEWPID, what it starts next is the first process."""
    _succeed(_unshare(flags), "unshare")


def setns(fd: int) -> None:
    """Move this process into the namespace that fd is."""
    _succeed(_setns(fd, 0), "setns")


def mount(source: str, where: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount something; the arguments are those of mount(2)."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, where, kind, data)]
    _succeed(_mount(*encoded[:3], flags, encoded[3]), "mount", where)


def become(uid: int, gid: int) -> None:
    """Go on as another user, in a user namespace of this process's own.

    Parameters
    ----------
    uid, gid : int
        The user as which this process sees itself from now on, whatever user it is outside.
        To be root here is to rule over the namespaces made from now on, not more.
    """
    outside = os.geteuid(), os.getegid()
    unshare(NEWUSER)
    map_user(uid, gid, outside)


def map_user(uid: int, gid: int, outside: tuple[int, int]) -> None:
    """Say who this process is in the user namespace that it has just made.

    Parameters
    ----------
    uid, gid : int
        Its user and group inside.
    outside : pair of int
        The same before it made the namespace.
    """
    _write("/proc/self/setgroups", "deny")  # without this an ordinary user may not map a group
    _write("/proc/self/uid_map", f"{uid} {outside[0]} 1")
    _write("/proc/self/gid_map", f"{gid} {outside[1]} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def own_user() -> tuple[int, int] | None:
    """Return who this process was, as user and group, before it became root by `map_user`; None if it did not."""
    found = []
    for path in ("/proc/self/uid_map", "/proc/self/gid_map"):
        with open(path) as file:
            inside, outside, count = map(int, file.read().split()[:3])
        if inside != 0 or count != 1 or outside == 0:
            return None
        found.append(outside)
    return found[0], found[1]
