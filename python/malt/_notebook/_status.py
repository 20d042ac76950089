"""``%malt status``: memory and time of the ranks, from the operating system."""

from __future__ import annotations

import os
import time

from ._team import Team


def table(team: Team) -> str:
    """Return a line about the team, and one about each rank."""
    since = time.strftime("%H:%M:%S", time.localtime(team.since))
    cells = f"{team.cells} cell{'s'[: team.cells != 1]}"
    lines = [
        f"{team.size} rank{'s'[: team.size != 1]} since {since}, {cells}",
        "rank      pid      memory  processor time",
    ]
    for rank in team.job.ranks:
        if rank.died is not None:
            lines.append(f"{rank.number:4} {rank.pid:8} {rank.fate()} after {rank.lived:.1f} s")
            continue
        memory, seconds = usage(rank.pid)
        lines.append(f"{rank.number:4} {rank.pid:8} {memory / 2**20:7.0f} MiB {seconds:13.1f} s")
    return "\n".join(lines)


def usage(pid: int) -> tuple[int, float]:
    """Return the memory of a process in bytes, and the processor time that it has used in seconds."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            pages = int(file.read().split()[1])
        with open(f"/proc/{pid}/stat") as file:
            ticks = file.read().rpartition(")")[2].split()[11:13]
    except OSError:  # it has just ended
        return 0, 0.0
    return pages * os.sysconf("SC_PAGE_SIZE"), sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
