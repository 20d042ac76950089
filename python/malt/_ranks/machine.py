"""The cores that this process may use, and how ranks share them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def threads(size: int, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give each of `size` ranks its share of the cores.

    Without them the BLAS of every rank would start a thread for each core. Variables
    that the user has set stay. Libraries look at OMP_NUM_THREADS where their own
    variable is not set: if the user has set that one, it holds for all.
    """
    if "OMP_NUM_THREADS" in env:
        return {}
    return dict.fromkeys((name for name in THREADS if name not in env), str(max(1, cores() // size)))


def crowding(count: int, env: Mapping[str, str]) -> list[str]:
    """Return what a user may want to know of so many ranks on this machine, with that environment."""
    usable, said = cores(), []
    shared = [name for name in THREADS if name not in os.environ and name in env]
    if shared:
        share = env[shared[0]]
        names = shared[0] + (" and the like" if len(shared) > 1 else "")
        here = f"{usable} core{'s'[: usable != 1]}, {count} rank{'s'[: count != 1]}"
        said.append(f"{share} thread{'s'[: share != '1']} for each rank ({names}; {here})")
    if binds(env) and not shares(count):
        said.append(f"MALT_BIND has no effect: there are more ranks than the {len(os.sched_getaffinity(0))} cores")
    if count > usable:
        said.append(
            f"{count} ranks share {usable} core{'s'[: usable != 1]} and take turns: "
            f"expect no more speed than from {usable}"
        )
    return said


def binds(env: Mapping[str, str]) -> bool:
    """Tell whether ranks are to be bound to cores."""
    return env.get("MALT_BIND", "").lower() not in ("", "0", "false")


def shares(size: int, root: str = "/sys/devices/system/cpu") -> list[list[int]]:
    """Return the hardware threads of each of `size` ranks, all of which differ; none, where there are more ranks.

    Ranks get whole cores, and neighbours get adjacent ones. With more ranks than cores each
    has one thread, and the second ones of the cores come last.
    """
    usable = sorted(os.sched_getaffinity(0))
    together: dict[str, list[int]] = {}
    for thread in usable:
        siblings = _read(f"{root}/cpu{thread}/topology/thread_siblings_list").strip()
        together.setdefault(siblings or str(thread), []).append(thread)
    cores = list(together.values())
    if size > len(usable):
        return []
    if size > len(cores):
        last = sorted((place, thread) for core in cores for place, thread in enumerate(core))
        return [[thread] for _, thread in last[:size]]
    each = len(cores) // size
    return [list(chain(*cores[each * rank : each * (rank + 1)])) for rank in range(size)]


def bound(size: int, env: Mapping[str, str]) -> list[list[int]]:
    """Return `shares` if ranks of this environment are to be bound, and can be; else nothing for each."""
    return (shares(size) if binds(env) else []) or [[]] * size


def cores() -> int:
    """Return the cores of this process: its affinity, and the CPU quota of its control groups."""
    number = len(os.sched_getaffinity(0))
    share = quota()
    return number if share is None else max(1, min(number, int(share)))


def quota(proc: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> float | None:
    """Return the smallest CPU quota of the control groups that hold this process, in cores."""
    found = []
    for group in groups("cpu", proc, root):
        found.append(_ratio(*(_read(f"{group}/cpu.max").split() or ["max", "1"])))
        found.append(_ratio(_read(f"{group}/cpu.cfs_quota_us"), _read(f"{group}/cpu.cfs_period_us")))
    return min((share for share in found if share is not None), default=None)


def groups(controller: str, proc: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> Iterator[str]:
    """Yield the folders of the control groups that hold this process, of either version, the innermost first."""
    for line in _read(proc).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            base = root
        elif controller in controllers.split(","):
            base = f"{root}/{controller}"
        else:
            continue
        # In a container the path may be the host's, and only the root is there.
        while path not in ("", "/"):
            yield base + path
            path = os.path.dirname(path)
        yield base


def _ratio(limit: str, period: str) -> float | None:
    try:
        return int(limit) / int(period) if int(limit) > 0 else None
    except (ValueError, ZeroDivisionError):  # "max", or no such file
        return None


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
