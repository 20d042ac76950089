"""What the launcher asks the kernel about processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGKILL``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def watch(pid: int) -> int:
    """Return a descriptor that becomes readable when the child pid has ended.

    The child stays unreaped. Linux before 5.3, and a Python built on headers
    older than that, have no pidfd: there a thread waits.
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        pass
    reader, writer = os.pipe()

    def wait() -> None:
        with contextlib.suppress(OSError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.close(writer)

    threading.Thread(target=wait, name=f"malt-watch-{pid}", daemon=True).start()
    return reader


def peek(pid: int) -> int | None:
    """How the child pid ended, leaving it unreaped.

    Returns
    -------
    int or None
        Its exit code, or minus the signal that killed it; None while it runs.

    Raises
    ------
    ChildProcessError
        Something else in this process has reaped it.
    """
    info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


def members(groups: Collection[int]) -> dict[int, int]:
    """Live processes of these process groups: process id to group."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The command, in parentheses, may itself hold any character.
                state, _, group, *_ = file.read().rpartition(b")")[2].split()
        except (OSError, ValueError):
            continue  # it ended while we looked
        if state not in (b"Z", b"X") and int(group) in groups:
            found[int(name)] = int(group)
    return found


def start_guard(groups: bytes) -> subprocess.Popen[bytes]:
    """Start ``guard.py``, which has these groups to kill from the start; further ones go to its standard input."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")
    read, write = os.pipe()
    pipe = open(write, "wb", buffering=0)  # noqa: SIM115 (closed by the launcher)
    try:
        pipe.write(groups)
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", program, str(os.getpid())],
            stdin=read,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except BaseException:
        pipe.close()
        raise
    finally:
        os.close(read)
    guard.stdin = pipe
    return guard
