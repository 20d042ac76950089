"""Contenders take turns, A B A B, so that what disturbs one disturbs all."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .rows import Row
from .systems import System
from .team import Team, TeamError

ROUND = 0.03
"""Seconds that each rank has a core in a turn, about."""

LEAST = 4
"""Calls in a turn: the first also waits for ranks that got out of the one before later, which is no part of a call."""


@dataclass
class Result:
    """What came out for a row."""

    row: Row
    samples: dict[str, list[float]] = field(default_factory=dict)
    """One value per turn and contender."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why a contender has no values."""


def measure(
    rows: Iterable[Row],
    systems: Sequence[System],
    turns: int,
    cores: int,
    say: Callable[[Result], None],
    before: Callable[[Row], None] = lambda _: None,
    enter: Sequence[Callable[[], None]] = (),
) -> list[Result]:
    """Measure all rows: systems are started anew where the number of ranks changes, or the link.

    `before` makes ready for rows with a link; `enter` moves new processes, one for each rank, to where they belong.
    """
    found = []
    ordered = sorted(rows, key=lambda row: row.ranks)
    for (ranks, _), group in itertools.groupby(ordered, key=lambda row: (row.ranks, row.link)):
        wanted = list(group)
        before(wanted[0])
        most = max(row.size for row in wanted)
        with contextlib.ExitStack() as stack:
            teams: dict[str, Team] = {}
            broken: dict[str, str] = {}
            for system in systems:
                if ranks > (cores if system.bound else system.most) or not any(system.has(r.op) for r in wanted):
                    continue
                try:
                    teams[system.name] = stack.enter_context(Team(system, ranks, most, enter))
                except TeamError as error:
                    broken[system.name] = str(error)
            for row in wanted:
                able = {s.name: teams[s.name] for s in systems if s.name in teams and s.has(row.op)}
                result = _row(row, able, turns, cores)
                result.left_out.update({s.name: broken[s.name] for s in systems if s.name in broken and s.has(row.op)})
                found.append(result)
                say(result)
    return found


def _row(row: Row, teams: dict[str, Team], turns: int, cores: int) -> Result:
    result = Result(row)
    if (needs := room(row)) > free():
        result.left_out["malt"] = f"would need about {needs >> 20} MB of memory, {free() >> 20} MB may be taken"
        return result
    ready: dict[str, tuple[Team, int, int]] = {}
    with contextlib.ExitStack() as stack:
        for name, team, op, options in _contenders(row, teams):
            try:
                stack.callback(_drop, team)
                team.prepare(name, op, row.size, options)
                ready[name] = team, *_calls(row, name, team, cores)
            except TeamError as error:
                result.left_out[name] = str(error)
        for _ in range(turns):
            for name, (team, calls, warm) in list(ready.items()):
                try:
                    result.samples.setdefault(name, []).append(team.turn(name, calls, warm))
                except TeamError as error:
                    result.left_out[name] = str(error)
                    del ready[name], result.samples[name]
    if row.known is not None and "malt" in result.samples:
        result.samples["limit"] = [row.known] * len(result.samples["malt"])
    return result


def _contenders(row: Row, teams: dict[str, Team]) -> Iterator[tuple[str, Team, str, dict[str, Any]]]:
    """Yield name, ranks, operation and options: of those that have it, and of the baseline, which MALT's ranks do."""
    for name, team in teams.items():
        if name != "limit" or row.baseline == "limit":
            yield name, team, row.op, row.options
    if row.baseline != "limit" and row.known is None and "malt" in teams:
        yield "limit", teams["malt"], row.baseline, row.base_options


def _drop(team: Team) -> None:
    with contextlib.suppress(TeamError):
        team.drop()


def _calls(row: Row, part: str, team: Team, cores: int) -> tuple[int, int]:
    """Return how many calls make a turn, and how many come before them; the very first ones touch the memory.

    Ranks begin a turn one after the other, the later the fewer cores there are. A rank hears of another over one edge
    per call, so after as many calls as ranks all are under way. What is slow is let off with twice as many as are
    timed.
    """
    if row.once:
        return 1, 0
    team.turn(part, 1)
    calls, enough = LEAST, ROUND * max(1, row.ranks / cores)
    while (taken := calls * team.turn(part, calls, min(2 * calls, row.ranks))) < enough / 2:
        calls *= max(2, min(10, int(enough / max(taken, 1e-9))))
    return calls, min(2 * calls, row.ranks)


def room(row: Row) -> int:
    """Return the bytes that a row may take: the array and three slots of each rank, once for MALT and for a peer."""
    return 6 * row.size * row.ranks


def free() -> int:
    """Return the bytes that may be taken: half of what the machine has free."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 9
    return 1 << 30
