"""The programs of iproute2, which do to the network what is asked here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from functools import cache

from malt._guide import below

NEEDED = ("ip", "tc", "bridge")
_PACKAGES = {"nft": "apt install nftables (Debian, Ubuntu), dnf install nftables (Fedora)"}
_IPROUTE = "apt install iproute2 (Debian, Ubuntu), dnf install iproute iproute-tc (Fedora)"

_FOLDERS = ("/usr/sbin", "/sbin")  # not in the PATH of every user


class SimError(Exception):
    """The simulated network cannot be made, or not be changed as asked."""

    def __init__(self, what: str, where: str = "", do: str = "") -> None:
        super().__init__(below(what, where, do))


@cache
def found(name: str) -> str:
    """Return the path of a program.

    Raises
    ------
    SimError
        It is not there; says which package has it.
    """
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_FOLDERS]))
    if path is None:
        raise SimError(
            f"a simulated network needs the program {name}",
            "it is neither in PATH nor in /usr/sbin",
            _PACKAGES.get(name, _IPROUTE),
        )
    return path


def call(*argv: str, enter: Callable[[], None] | None = None, text: str = "") -> str:
    """Run a program and return what it prints.

    Parameters
    ----------
    argv : str
        The program and its arguments.
    enter : callable, optional
        Run in the new process first, such as `Host.enter`.
    text : str
        Its standard input.

    Raises
    ------
    SimError
        It failed; names the command and shows what it said.
    """
    done = subprocess.run(
        [found(argv[0]), *argv[1:]], input=text, capture_output=True, text=True, check=False, preexec_fn=enter
    )
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        at = re.search(r"Command failed -:(\d+)", said)  # of a batch
        asked = f"{argv[0]} {text.splitlines()[int(at[1]) - 1]}" if at else " ".join(argv)
        raise SimError("the network cannot be set up", f"{said} ({asked})", _advice(said))
    return done.stdout


def _advice(said: str) -> str:
    """Return what to do about what iproute2 has said."""
    if "qdisc kind is unknown" in said or "TC classifier" in said:
        return "This kernel lacks it; load it, as root: modprobe sch_tbf cls_bpf cls_u32 act_mirred."
    if "Operation not supported" in said or "Unknown device type" in said:
        return "This kernel lacks veth or bridge devices; load them, as root: modprobe -a veth bridge."
    return ""


def batch(program: str, lines: Iterable[str], enter: Callable[[], None] | None = None) -> None:
    """Run lines of ip, tc or bridge in one process, until one fails."""
    call(program, "-batch", "-", enter=enter, text="".join(f"{line}\n" for line in lines))
