"""A process that goes on in namespaces of its own, and whose end is the end of everything in there."""

from __future__ import annotations

import contextlib
import os
import select
import signal

from malt._ranks import parent
from malt._sim import kernel
from malt._sim.programs import NEEDED, SimError, batch, found

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)

_SI_KERNEL = 0x80  # asm-generic/siginfo.h: the sender is the kernel, for a terminal

REFUSED = """\
a simulated network needs namespaces of its own
this machine refuses them: {error}
One of these helps:
  in a container     start it with --privileged
  on Ubuntu          as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0, which lets users have namespaces
  on other systems   as root: sysctl user.max_user_namespaces=10000, for the same
  or                 run this command as root"""


def isolate() -> None:
    """Go on as the second process of new namespaces: of the network, processes, mounts, names; of users, if need be.

    Three processes come out of the one that calls. The caller's own stays outside:
    it hands signals on, and ends as the others do. Its child is the first process
    inside, whose end makes the kernel kill all that are left inside, however they
    have run off. That one's child returns from this call. Each is killed when the
    one before it is, so that nothing of this depends on anybody's tidiness.

    Inside the caller is root over what is inside. An ordinary user gets that from a
    user namespace; `Host.enter` gives it back before a user's program starts.

    Raises
    ------
    SimError
        The machine does not permit it, or lacks a program; says what to do.

    Notes
    -----
    For a process without other threads.
    """
    for program in NEEDED:
        found(program)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, the kernel would throw exit codes away
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        _unshare_processes()
        alive, held = os.pipe()
        first = os.fork()
        if first:
            os.close(alive)
            raise SystemExit(_relay(first))
        os.close(held)
        _end_with_parent(alive)
        _furnish()
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        raise SimError(REFUSED.format(error=error)) from None
    except SimError:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        raise
    second = os.fork()
    if second:
        os._exit(_relay(second))
    os.close(alive)
    signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _unshare_processes() -> None:
    """Have the next child be the first of a process namespace, as root or with a user namespace."""
    try:
        kernel.unshare(kernel.NEWPID)
    except PermissionError:
        outside = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER | kernel.NEWPID)
        kernel.map_user(0, 0, outside)


def _end_with_parent(alive: int) -> None:
    """Have this process killed with its parent, which holds the other end of the pipe `alive`."""
    parent.end_with(os.getppid())  # 0: it is in another namespace
    ended = select.poll()
    ended.register(alive)
    if ended.poll(0):  # it has ended before
        os._exit(128 + signal.SIGKILL)


def _furnish() -> None:
    """Make the other namespaces."""
    kernel.unshare(kernel.NEWNET | kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    batch("ip", ["link set lo up"])


def _relay(child: int) -> int:
    """Hand signals on to a child, reap it and the processes that are left to this one, and return its exit code.

    Signals from a terminal are not handed on: they have reached the child as well.
    """
    while True:
        came = signal.sigwaitinfo(_SIGNALS)
        if came.si_signo == signal.SIGCHLD:
            code = _reap(child)
            if code is not None:
                return code
        elif came.si_code != _SI_KERNEL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, came.si_signo)


def _reap(child: int) -> int | None:
    """Reap all that have ended; return the exit code of child, 128 + n after signal n, if it was among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                status = os.waitstatus_to_exitcode(ended[1])
                code = status if status >= 0 else 128 - status
    return code
