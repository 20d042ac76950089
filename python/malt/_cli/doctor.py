"""``malt doctor``: checks this machine and says what to do."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from malt._cli import hosts, pairs
from malt._cli.finding import OK, PROBLEM, WARNING, Finding, show
from malt._cli.options import Parser, refuse_given
from malt._ranks import machine, room

DESCRIPTION = """\
Checks memory, limits, cores, kernels, transports and versions, and lets two ranks
exchange data. With -H it checks the network between hosts instead: addresses,
firewalls, MTU, round trip and rate of each pair. Each line is ok, a warning (MALT
works, but less well) or a problem, with what to do about it. The exit code is 1 if
there is a problem."""

EXAMPLES = """\
  malt doctor
  malt doctor -H node1,node2,node3    the network between hosts that ssh reaches
"""

GIB = 1 << 30


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("doctor", "malt doctor [-H HOST,...]", DESCRIPTION, EXAMPLES)
    made.add_argument("-H", "--hosts", metavar="HOST,...", help="check the network between these hosts")
    hosts.add_ways(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    if options.hosts is None:
        refuse_given(options, ("ssh", "python"), parse.error, "goes with -H, which names hosts")
        return show(findings())
    return pairs.main(options, parse.error)


def findings() -> Iterator[Finding]:
    """Check one thing after the other."""
    yield _python()
    try:
        state = inspect()
    except Exception as error:  # whatever keeps the library from loading, the rest is worth knowing
        state = None
        what, _, advice = str(error).removeprefix("malt: ").partition("\n")
        yield Finding(
            PROBLEM,
            "library",
            f"cannot be loaded: {what}",
            advice or "install the wheel of MALT for this machine again",
        )
    if state is not None:
        yield _library(state)
        yield _memory(state["memory"])
        yield _kernels(state["kernels"])
    yield _cores()
    yield _binding()
    yield _files()
    yield from _limits(resource.getrlimit)
    yield from _settings(room.number)
    yield _pidfd()
    if state is not None:
        for transport in state["transports"]:
            yield _transport(**transport)
        yield _fabric(state["fabric"], resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
        yield _exchange()


def inspect() -> dict[str, Any]:
    """Return what the library knows about the machine (malt.h, malt_inspect)."""
    from malt import _lib

    state: dict[str, Any] = json.loads(_lib.inspect("doctor"))
    return state


# ------------------------------------------------------------------ the checks


def _python() -> Finding:
    try:
        import numpy

        found = f"{platform.python_version()} with numpy {numpy.__version__}"
    except ImportError as error:
        return Finding(PROBLEM, "python", f"numpy cannot be imported: {error}", "pip install numpy")
    return Finding(OK, "python", f"{found}, at {sys.executable}")


def _library(state: dict[str, Any]) -> Finding:
    import malt

    found = f"{state['version']}, ABI {state['abi']}, on {state['system']}"
    if state["version"] != malt.__version__:
        return Finding(
            PROBLEM,
            "library",
            f"{found}, but the Python package is {malt.__version__}",
            "pip install --force-reinstall malt",
        )
    return Finding(OK, "library", found)


def _memory(memory: dict[str, Any]) -> Finding:
    free, total = memory["free"] / GIB, memory["total"] / GIB
    found = f"{free:.1f} GiB can be used of {total:.1f} GiB (limit: {memory['limit']})"
    if free < 0.125:
        return Finding(PROBLEM, "memory", found, "end other programs, or give the container more memory")
    if free < 1:
        return Finding(
            WARNING,
            "memory",
            found,
            "keep vectors small: each rank holds one, and two or more updates of it for the others",
        )
    return Finding(OK, "memory", found)


def _kernels(path: str) -> Finding:
    if path.startswith("avx"):
        return Finding(OK, "kernels", f"folds use {path}")
    return Finding(
        WARNING, "kernels", f"folds use {path}", "nothing to do, unless this processor has AVX2: then report it"
    )


def _cores() -> Finding:
    here, usable, all_ = len(os.sched_getaffinity(0)), machine.cores(), os.cpu_count() or 1
    if usable < here:
        return Finding(
            WARNING,
            "cores",
            f"{here} cores, but a control group allows the time of {usable}",
            f"use at most {usable} ranks, or give the container more CPU",
        )
    if here < all_:
        return Finding(OK, "cores", f"{here} of the machine's {all_}, by affinity: use at most {here} ranks")
    if usable == 1:
        return Finding(WARNING, "cores", "1 core", "expect no speed-up: ranks will take turns")
    return Finding(OK, "cores", f"{usable}: use at most {usable} ranks")


def _binding() -> Finding:
    if machine.binds(os.environ):
        return Finding(OK, "binding", "malt run binds each rank to cores of its own (MALT_BIND)")
    return Finding(OK, "binding", "ranks may move between cores: malt run --bind changes that")


def _files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{soft} per process" if soft != resource.RLIM_INFINITY else "no limit"
    if soft != resource.RLIM_INFINITY and soft < 1024:
        return Finding(
            WARNING, "open files", f"{found}: vectors of many ranks need more", f"ulimit -n {min(4096, hard)}"
        )
    return Finding(OK, "open files", found)


def _limits(limit: Callable[[int], tuple[int, int]]) -> Iterator[Finding]:
    """Limits of the process that are infinite unless somebody has set them."""
    for which, name, letter, effect in (
        (resource.RLIMIT_FSIZE, "file size", "f", "shared memory counts as files: larger vectors are refused"),
        (resource.RLIMIT_AS, "addresses", "v", "the library reserves more addresses than it uses memory"),
    ):
        soft = limit(which)[0]
        if soft == resource.RLIM_INFINITY:
            yield Finding(OK, name, "no limit")
        else:
            yield Finding(WARNING, name, f"limited to {soft / GIB:.2f} GiB: {effect}", f"ulimit -{letter} unlimited")


def _settings(number: Callable[[str], int | None]) -> Iterator[Finding]:
    """Look at settings of the kernel."""
    maps = number("/proc/sys/vm/max_map_count")
    if maps is not None and maps < 65530:
        yield Finding(
            WARNING,
            "mappings",
            f"vm.max_map_count is {maps}: many vectors over many ranks need more",
            "sysctl vm.max_map_count=65530 (as root)",
        )
    elif maps is not None:
        yield Finding(OK, "mappings", f"{maps} per process")
    if number("/proc/sys/vm/overcommit_memory") == 2:
        yield Finding(
            WARNING,
            "overcommit",
            "vm.overcommit_memory is 2: memory counts when it is mapped, not when it is used",
            "sysctl vm.overcommit_memory=0 (as root), or keep vectors small",
        )


def _pidfd() -> Finding:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return Finding(
            WARNING, "pidfd", "missing: a thread for each rank watches for deaths", "Linux 5.3 or newer has it"
        )
    return Finding(OK, "pidfd", "deaths of ranks are noticed at once")


def _transport(name: str, works: bool, why: str) -> Finding:
    if works:
        return Finding(OK, name, "works")
    needs = "TCP sockets" if name == "tcp" else "memfd_create and Unix sockets"
    return Finding(PROBLEM, name, f"does not work: {why}", f"a sandbox may forbid it: allow {needs}")


def _fabric(found: dict[str, Any], lockable: int) -> Finding:
    state, why = found["state"], found["why"]
    if state == "off":
        return Finding(OK, "fabric", "RDMA is switched off (MALT_FABRIC)")
    if state == "no device":
        return Finding(OK, "fabric", "no device for RDMA")
    unlimited = "ulimit -l unlimited; in a container, --ulimit memlock=-1"
    if state == "no library":
        return Finding(WARNING, "fabric", why, "apt install libfabric1, or set MALT_LIBFABRIC")
    if state in ("failed", "memlock"):
        return Finding(WARNING, "fabric", why, f"see fi_info; {unlimited}, and give it /dev/infiniband")
    works = f"{found['provider']} on {found['device']}, libfabric {found['library']}: a write to itself arrived"
    if found["hardware"] and lockable != resource.RLIM_INFINITY:
        return Finding(WARNING, "fabric", f"{works}; it can lock {lockable >> 20} MiB of memory at most", unlimited)
    return Finding(OK, "fabric", works if found["wanted"] else f"{works}; jobs use it with MALT_FABRIC=auto")


def _exchange() -> Finding:
    """Let two ranks exchange something."""
    import malt

    start = time.monotonic()
    try:
        values = malt.run(_meet, 2, timeout=20)
    except Exception as error:  # whatever a rank may raise
        return Finding(PROBLEM, "two ranks", f"cannot work together: {error}", "the message says what was refused")
    if values != [1.5, 1.5]:
        return Finding(PROBLEM, "two ranks", f"exchanged 1 and 2 and got the means {values}", "please report this")
    return Finding(OK, "two ranks", f"met, exchanged and left in {time.monotonic() - start:.2f} s")


def _meet() -> float:
    import malt

    with malt.Vector(1000, start="own") as v:
        v.array[:] = malt.rank() + 1
        v.sync()
        return float(v.array[-1])
