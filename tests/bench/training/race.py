"""Each contender is tuned on one shuffle of the data, and measured on others, afresh each time and in random order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from malt._ranks.machine import cores

from ..environments import ROOT, has_torch
from ..net.systems import meet
from ..systems import Command, Environment, Start, System, on_death, openmpi
from ..team import Team, TeamError
from ..turns import Plan
from . import contenders
from .tasks import Task

RATES, INTERVALS = (0.5, 1.0, 2.0, 4.0), (1, 4, 16)
"""The grid: times the task's learning rate, times its steps between two exchanges."""

PROGRAM = "bench.training.rank"

TUNING = 100
"""The seed of the shuffle that settings are chosen on; those that are measured are 0, 1, …"""


class How(NamedTuple):
    """A setting: times the usual learning rate, steps between two exchanges."""

    rate: float
    every: int


@dataclass(frozen=True)
class Contender:
    """Who takes part."""

    name: str
    program: type[contenders.Serial]
    torch: bool = False
    """Needs a module of PyTorch."""
    exchanges: bool = True
    """After some steps, so that the interval has to be chosen."""
    single: bool = False
    """One process, however many ranks the others have."""
    hosts: str = ""
    """Why it does not take part on several hosts, if so."""


ALL = (
    Contender("serial", contenders.Serial, exchanges=False, single=True),
    Contender("torch threads", contenders.Threads, True, False, True, hosts="threads are of one host"),
    Contender("hogwild", contenders.Hogwild, exchanges=False, hosts="memory is of one host"),
    Contender("torch DDP, gloo", contenders.Ddp, True, exchanges=False),
    Contender("local SGD, mpi4py", contenders.Mpi, hosts="mpirun needs ssh to start processes on other hosts"),
    Contender("MALT all, bsp", contenders.Malt),
    Contender("MALT halton, ssp:2", contenders.Halton),
    Contender("MALT changes, ssp:2", contenders.Changes),
)


@dataclass
class Outcome:
    """What came out for a contender in a task."""

    task: str
    place: str
    figure: str
    target: float
    contender: str
    lines: int
    how: How | None = None
    """Chosen; none where it was left out."""
    seconds: list[float] = field(default_factory=list)
    """To the target, for each shuffle; infinite where it was not reached."""
    final: list[float] = field(default_factory=list)
    left_out: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What it is compared in."""
        return self.task, self.place


Curve = Sequence[tuple[float, float]]


def reached(curve: Curve, target: float) -> float:
    """Return the seconds of the first copy that is as good as the target; infinity if there is none."""
    return next((at for at, figure in curve if figure <= target), float("inf"))


@dataclass
class Race:
    """A task, and where it is run."""

    task: Task
    ranks: int
    rows: int | None = None
    """Train on so many examples, not on all."""
    rates: Sequence[float] = RATES
    intervals: Sequence[int] = INTERVALS
    addresses: Sequence[str] = ()
    """Of the hosts with a rank each, if it is not this machine alone."""
    enter: Sequence[Callable[[], None]] = ()
    """What moves a new process into each host."""

    def run(self, plan: Plan, only: Sequence[str] = ()) -> list[Outcome]:
        """Tune and measure all contenders, or those named."""
        task, place = self.task, f"{self.ranks} {'hosts' if self.addresses else 'ranks'}"
        found = {
            one: Outcome(task.name, place, task.figure, task.target, one.name, contenders.lines(one.program))
            for one in ALL
            if not only or one.name in only
        }
        for one in plan.shuffled(found):
            found[one].left_out = self._unable(one)
            self._tune(one, found[one])
        for seed in range(plan.starts):
            for one in plan.shuffled(found):
                outcome = found[one]
                if outcome.how and (ends := self._ends(one, outcome, seed, [outcome.how])):
                    outcome.seconds.append(ends[0][0])
                    outcome.final.append(ends[0][1])
        return list(found.values())

    def _unable(self, one: Contender) -> str:
        if one.torch and not (self.task.torch and has_torch()):
            return "needs PyTorch (make torch)" if self.task.torch else "needs a module of PyTorch"
        return one.hosts if self.addresses else ""

    def _grid(self, one: Contender) -> list[How]:
        intervals = self.intervals if one.exchanges else self.intervals[:1]
        return [How(rate, self.task.unit * n) for rate in self.rates for n in intervals]

    def _tune(self, one: Contender, outcome: Outcome) -> None:
        """Choose the setting that reaches the target first, or else comes closest."""
        grid = self._grid(one)
        ends = self._ends(one, outcome, TUNING, grid) if len(grid) > 1 else [(0.0, 0.0)]
        if ends:
            outcome.how = grid[ends.index(min(ends))]

    def _ends(self, one: Contender, outcome: Outcome, seed: int, settings: Sequence[How]) -> list[tuple[float, float]]:
        """Start it, and train in each setting: seconds to the target, and the figure in the end; none if it fails."""
        if outcome.left_out:
            return []
        try:
            curves = self._curves(one, seed, settings)
        except TeamError as error:
            outcome.left_out = str(error)
            return []
        return [(reached(curve, self.task.target), curve[-1][1]) for curve in curves]

    def _curves(self, one: Contender, seed: int, settings: Sequence[How]) -> list[Curve]:
        count = 1 if one.single else self.ranks
        curves = []
        with Team(System(one.name, self._start(one)), count, 0, self.enter[:count]) as team:
            for how in settings:
                team.prepare("run", self.task.name, 0, {"seed": seed, "rows": self.rows, **how._asdict()})
                curves.append(next(filter(None, team.answers("run", 1))))
                team.drop()
        return curves

    def _start(self, one: Contender) -> Start:
        """Return how to start its processes, for a number of ranks."""
        path = os.pathsep.join([str(ROOT / "examples"), *sys.path])  # an MPI's environment has little of its own
        more = {"BENCH_CONTENDER": one.program.__name__, "BENCH_PATH": path, "BENCH_THREADS": str(self.ranks)}

        def start(ranks: int) -> list[tuple[Command, Environment]]:
            return [(command, {**own, **more}) for command, own in self._processes(one.program)(ranks)]

        return start

    def _processes(self, program: type[contenders.Serial]) -> Start:
        command = [sys.executable, "-m", PROGRAM]
        if issubclass(program, contenders.Mpi):
            return openmpi("core" if self.ranks <= cores() else "none", PROGRAM, pml="ob1", osc="^ucx")
        if issubclass(program, contenders.Malt) and not self.addresses:
            return on_death("stop", PROGRAM)
        if issubclass(program, contenders.Malt):
            job = meet(self.ranks, self.addresses)
            return lambda ranks: [(command, {**job, "MALT_RANK": str(rank)}) for rank in range(ranks)]
        if issubclass(program, contenders.Ddp):
            return lambda ranks: [(command, {"BENCH_RANK": str(rank)}) for rank in range(ranks)]
        return lambda _: [(command, {})]
