"""The table and the picture of ``halton_vs_all.py``: what each way to exchange came to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from matplotlib.figure import Figure

from demo import picture
from demo.table import Entry, reached
from demo.worker import Run


class Turn(NamedTuple):
    """One training run in one of the ways."""

    run: Run
    steps: int
    wire: float
    """Bytes that a host sent, as the network counts them; the first models and the last average are among them."""


class Outcome(NamedTuple):
    """A line of the table: medians over the turns."""

    sent: float
    """Kilobytes of models that a rank sent per step."""
    wire: float
    """Kilobytes that its host sent per step."""
    step: float
    """Milliseconds per step."""
    computing: float
    """Those of them in which the rank learnt."""
    seconds: float
    """Until the loss was reached."""
    loss: float
    """In the end."""


def computing(turn: Turn, every: int) -> float:
    """Return the seconds in which a step of so many examples learns."""
    return 1e-6 * turn.run.step * every


def outcome(turns: Sequence[Turn], every: int, goals: Sequence[float]) -> Outcome:
    """Return what came of one way, whose goals are losses to reach."""
    hits = [reached(turn.run, goal) for turn, goal in zip(turns, goals, strict=True)]
    return Outcome(
        sent=median(1e3 * turn.run.sent / turn.steps for turn in turns),
        wire=median(turn.wire / 1e3 / turn.steps for turn in turns),
        step=median(1e3 * turn.run.seconds[-1] / turn.steps for turn in turns),
        computing=median(1e3 * computing(turn, every) for turn in turns),
        seconds=median(hit[0] if hit else float("inf") for hit in hits),
        loss=median(turn.run.loss[-1] for turn in turns),
    )


COLUMNS = {
    "graph": "<8",
    "consistency": "<12",
    "ranks": ">6",
    "KB/step": ">9",
    "on cable": ">10",
    "ms/step": ">9",
    "computing": ">11",
    "time to loss": ">14",
    "final loss": ">12",
}


def table(entries: Sequence[Entry], found: Sequence[Outcome]) -> str:
    """Return a line for each way."""
    lines: list[Sequence[object]] = [list(COLUMNS)]
    for entry, each in zip(entries, found, strict=True):
        figures = [f"{x:.1f}" for x in (each.sent, each.wire, each.step, each.computing)]
        mode = [entry.graph, entry.consistency, entry.ranks]
        lines.append([*mode, *figures, f"{each.seconds:.2f} s", f"{each.loss:.4f}"])
    widths = COLUMNS.values()
    return "\n".join("".join(map(format, map(str, words), widths)).rstrip() for words in lines)


def draw(entries: Sequence[Entry], found: Sequence[Outcome], goal: float, title: str, path: Path) -> None:
    """Draw the loss over time and over examples, and the bytes."""
    figure = Figure(figsize=(5, 9), layout="constrained")
    figure.suptitle(title, fontsize=10)
    time, learning, cost = figure.subplots(3, 1, height_ratios=(3, 3, 2))
    picture.curves(time, entries, goal, "seconds")
    time.set_xlabel("seconds of training, communication included")
    time.legend()
    picture.curves(learning, entries, goal, "examples")
    learning.set_xlabel("examples, all ranks together")
    learning.xaxis.set_major_formatter("{x:,.0f}")
    learning.locator_params(axis="x", nbins=5)
    ranks = sorted({entry.ranks for entry in entries})
    bars = cost.barh(
        [f"{entry.graph}, {entry.consistency}" for entry in entries],
        [each.sent for each in found],
        color=[picture.style(entry, ranks)["color"] for entry in entries],
    )
    cost.bar_label(bars, fmt="%.0f", padding=4)
    cost.set(xlabel="KB that a rank sends per step", xlim=(0, 1.15 * max(each.sent for each in found)))
    cost.invert_yaxis()
    figure.savefig(path, dpi=120)
