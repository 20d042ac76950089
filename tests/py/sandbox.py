"""Forbids system calls to a process, as sandboxes do."""

from __future__ import annotations

import ctypes
import platform

NUMBERS = {
    "x86_64": {"memfd_create": 319, "clone": 56, "clone3": 435},
    "aarch64": {"memfd_create": 279, "clone": 220, "clone3": 435},
}.get(platform.machine(), {})

_prctl = ctypes.CDLL(None, use_errno=True).prctl


class _Filter(ctypes.Structure):  # linux/filter.h
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.POINTER(_Filter))]


def forbid(call: str, error: int) -> None:
    """Let a system call fail, in this process and all that it becomes or starts."""
    load, equal, answer = 0x20, 0x15, 0x06
    refused, allowed = 0x00050000 | error, 0x7FFF0000
    steps = (_Filter * 4)(
        (load, 0, 0, 0), (equal, 0, 1, NUMBERS[call]), (answer, 0, 0, refused), (answer, 0, 0, allowed)
    )
    no_new_privileges, seccomp, by_filter = 38, 22, 2
    if _prctl(no_new_privileges, 1, 0, 0, 0) or _prctl(seccomp, by_filter, ctypes.byref(_Program(4, steps))):
        raise OSError(ctypes.get_errno(), "seccomp")
