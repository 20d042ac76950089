"""Contenders are started afresh several times, and take turns in between, so that a disturbance of one reaches all."""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from .rows import Row, Target
from .systems import AGAIN, System
from .team import Team, TeamError

ROUND = 0.03
"""Seconds that each rank has a core in a turn, about."""

LEAST = 4
"""Calls in a turn: the first also waits for ranks that got out of the one before later, which is no part of a call."""

ALONE = 30e-6
"""Seconds that a call takes besides the lateness of a rank, at least: so many calls do for a median."""

T = TypeVar("T")

Contender = tuple[str, Team, str, dict[str, Any]]
"""Name, ranks, operation and options."""


@dataclass
class Plan:
    """How often everything is measured, and in which order."""

    starts: int
    """How often each contender is started: two processes may differ for as long as they live, by where memory lies."""
    turns: int
    """Of each contender in a start."""
    seed: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Return them in random order, in another one each time."""
        made = list(items)
        self._random.shuffle(made)
        return made


@dataclass
class Result:
    """What came out for a row."""

    row: Row
    samples: dict[str, list[float]] = field(default_factory=dict)
    """One value per start and contender: the median of its turns."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why a contender has no values."""
    turns: dict[str, list[list[float]]] = field(default_factory=dict)
    """By start."""

    def add(self, name: str, turns: list[float]) -> None:
        """Add a contender's turns of one start."""
        self.turns.setdefault(name, []).append(turns)
        self.samples.setdefault(name, []).append(median(turns))

    def leave_out(self, name: str, why: str) -> None:
        """Leave a contender out, also where it has been measured in earlier starts: not all of its values are known."""
        self.left_out[name] = why
        self.samples.pop(name, None)
        self.turns.pop(name, None)


def measure(
    rows: Iterable[Row],
    systems: Sequence[System],
    plan: Plan,
    cores: int,
    say: Callable[[Result], None],
    before: Callable[[Row], None] = lambda _: None,
    enter: Sequence[Callable[[], None]] = (),
) -> list[Result]:
    """Measure all rows: in each start all systems are up, for the rows with as many ranks and the same link.

    `before` makes ready for rows with a link; `enter` moves new processes, one for each rank, to where they belong.
    `say` is told of a row when its last start is over.
    """
    found = []
    ordered = sorted(rows, key=lambda row: row.ranks)
    for (ranks, _), group in itertools.groupby(ordered, key=lambda row: (row.ranks, row.link)):
        wanted = [_Measured(row, cores) for row in group]
        before(wanted[0].result.row)
        able = [s for s in systems if ranks <= (cores if s.bound else s.most)]
        for start in range(plan.starts):
            print(f"bench: start {start + 1} of {plan.starts}, {ranks} ranks", file=sys.stderr)
            with _up(able, wanted, ranks, plan, enter) as teams:
                for each in wanted:
                    each.start(teams, plan)
                    if start == plan.starts - 1:
                        found.append(each.result)
                        say(each.result)
    return found


@contextlib.contextmanager
def _up(
    systems: Sequence[System],
    wanted: Sequence[_Measured],
    ranks: int,
    plan: Plan,
    enter: Sequence[Callable[[], None]],
) -> Iterator[dict[str, Team]]:
    """Start the systems that any row has use for, in random order; rows leave out those that do not start."""
    most = max(each.result.row.size for each in wanted)
    with contextlib.ExitStack() as stack:
        teams: dict[str, Team] = {}
        for system in plan.shuffled(systems):
            users = [each for each in wanted if each.has_use_for(system)]
            try:
                if users:
                    teams[system.name] = stack.enter_context(Team(system, ranks, most, enter))
            except TeamError as error:
                for each in users:
                    each.result.leave_out(system.name, str(error))
        yield teams


class _Measured:
    """A row in the course of its starts."""

    def __init__(self, row: Row, cores: int) -> None:
        self.result, self._cores = Result(row), cores
        self._systems: set[str] = set()
        self._calls: dict[str, tuple[int, int]] = {}
        """Calls of a turn by contender, as found out in its first start."""

    def has_use_for(self, system: System) -> bool:
        """Whether it takes part; MALT does so twice where something is asked of it."""
        asked = system.name != AGAIN or self.result.row.target != Target()
        if use := asked and system.has(self.result.row.op) and system.name not in self.result.left_out:
            self._systems.add(system.name)
        return use

    def start(self, up: dict[str, Team], plan: Plan) -> None:
        """Measure the turns of one start: one contender after the other where memory does not do for all at once."""
        row, result = self.result.row, self.result
        teams = {name: team for name, team in up.items() if name in self._systems - result.left_out.keys()}
        contenders = [each for each in _contenders(row, teams) if each[0] not in result.left_out]
        if (needs := room(row)) > free():
            why = f"would need about {needs >> 20} MB of memory, {free() >> 20} MB may be taken"
            for name in {*teams, "malt"}:
                result.leave_out(name, why)
        elif room(row, len(teams)) > free():
            for each in plan.shuffled(contenders):
                self._take_turns([each], plan)
        else:
            self._take_turns(contenders, plan)
        if row.known is not None and len(result.samples.get("malt", ())) > len(result.samples.get("limit", ())):
            result.add("limit", [row.known] * plan.turns)

    def _take_turns(self, contenders: Sequence[Contender], plan: Plan) -> None:
        row, result = self.result.row, self.result
        ready: dict[str, Team] = {}
        times: dict[str, list[float]] = {}
        with contextlib.ExitStack() as stack:
            for name, team, op, options in contenders:
                try:
                    stack.callback(_drop, team)
                    team.prepare(name, op, row.size, options)
                    if name not in self._calls:
                        self._calls[name] = _calls(row, name, team, self._cores)
                    elif not row.once:
                        team.turn(name, LEAST)
                    ready[name] = team
                except TeamError as error:
                    result.leave_out(name, str(error))
            for _ in range(plan.turns):
                for name in plan.shuffled(ready):
                    try:
                        times.setdefault(name, []).append(ready[name].turn(name, *self._calls[name]))
                    except TeamError as error:
                        result.leave_out(name, str(error))
                        del ready[name]
        for name in ready:
            result.add(name, times[name])


def _contenders(row: Row, teams: dict[str, Team]) -> Iterator[Contender]:
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
    if "late" in row.options:  # the value is not the time that a call takes
        return 1 + int(ROUND / (row.options["late"] + ALONE)), row.ranks
    calls, enough = LEAST, ROUND * max(1, row.ranks / cores)
    while (taken := calls * team.turn(part, calls, min(2 * calls, row.ranks))) < enough / 2:
        calls *= max(2, min(10, int(enough / max(taken, 1e-9))))
    return calls, min(2 * calls, row.ranks)


def room(row: Row, contenders: int = 1) -> int:
    """Return the bytes that a row may take: a rank has an array and three slots of MALT's, others two arrays."""
    return (4 + 2 * contenders) * row.size * row.ranks


def free() -> int:
    """Return the bytes that may be taken: half of what the machine has free."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 9
    return 1 << 30
