"""Sees the system calls of a process's main thread, as its parent, through ptrace: no tool has to be installed.

The process says when: it calls `TRACED` once, and from then on ``os.getppid()`` before
and after each piece of work that counts.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
from collections.abc import Generator, Iterator
from pathlib import Path

TRACED = """
import ctypes
if ctypes.CDLL(None, use_errno=True).ptrace(0, 0, 0, 0):  # PTRACE_TRACEME
    sys.exit("refused")
os.kill(os.getpid(), signal.SIGSTOP)
"""

MARK, YIELD, FUTEX, SIGRETURN, TGKILL = 110, 24, 202, 15, 234
"""Numbers on x86-64; getppid is the mark."""

_SYSCALL, _SETOPTIONS, _INFO = 24, 0x4200, 0x420E
_SYSGOOD, _EXITKILL = 1, 1 << 20
_ENTRY = 1
_PRIVATE = 128


def possible() -> str:
    """Return why calls cannot be counted here, or nothing."""
    if platform.machine() != "x86_64":
        return "the numbers of system calls are known for x86-64 alone"
    try:
        scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except FileNotFoundError:
        return ""
    return "ptrace is forbidden here (kernel.yama.ptrace_scope)" if scope > 2 else ""


def during(pid: int) -> Iterator[list[int]]:
    """Yield, for each piece of work between two marks, the numbers of its system calls, until the process ends.

    Those of Go's runtime are left out: futexes within the process, by which it wakes its monitor thread after a
    while without Go code, and the ends of its signals. Futexes of MALT are those of several processes.

    The caller runs where the process does: each stop takes microseconds there, and between cores so long that other
    ranks fall asleep meanwhile.
    """
    elsewhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, os.sched_getaffinity(pid))
    piece: list[int] | None = None
    try:
        for number, how in _calls(pid):
            if number == MARK:
                if piece is not None:
                    yield piece
                piece = [] if piece is None else None
            elif piece is not None and number != SIGRETURN and not (number == FUTEX and how & _PRIVATE):
                piece.append(number)
    finally:
        os.sched_setaffinity(0, elsewhere)


def interrupted(pid: int, sent: int) -> tuple[int, int]:
    """Send the main thread a signal after each system call from the mark on; return their number, and how it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    count, handling = 0, False
    calls = _calls(pid)
    while True:
        try:
            number, _ = next(calls)
        except StopIteration as end:
            return count, os.waitstatus_to_exitcode(end.value)
        handling = handling and number != SIGRETURN
        if (number == MARK or count) and number != SIGRETURN and not handling:
            count, handling = count + 1, True
            libc.syscall(TGKILL, pid, pid, sent)  # arrives when the call returns, on the stack that it was made on


def _calls(pid: int) -> Generator[tuple[int, int], None, int]:
    """Yield number and second argument of each call of the main thread as it is made; return the status of the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    info = ctypes.create_string_buffer(88)

    def ptrace(request: int, address: int, data: object) -> None:
        if libc.ptrace(ctypes.c_long(request), pid, ctypes.c_void_p(address), data) < 0:
            raise OSError(ctypes.get_errno(), f"ptrace request {request:#x}")

    passed = 0
    _, status = os.waitpid(pid, 0)
    if os.WIFSTOPPED(status):
        ptrace(_SETOPTIONS, 0, ctypes.c_void_p(_SYSGOOD | _EXITKILL))
    while os.WIFSTOPPED(status):
        if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
            ptrace(_INFO, len(info), info)
            # struct ptrace_syscall_info: op, padding, arch, two addresses, then the number and its arguments.
            if info.raw[0] == _ENTRY:
                number, _, how = struct.unpack_from("=3Q", info, 24)
                yield number, how
            passed = 0
        else:
            passed = 0 if os.WSTOPSIG(status) == signal.SIGSTOP else os.WSTOPSIG(status)
        ptrace(_SYSCALL, 0, ctypes.c_void_p(passed))
        _, status = os.waitpid(pid, 0)
    return status
