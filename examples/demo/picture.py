"""The picture of the demo: loss over time and over examples, and the graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import malt
from demo.table import Entry, reached

SHADES = {"all": "#1f6fb2", "halton": "#d1602b"}
OTHER = "#2e8b57"
DASHES = {"bsp": "-", "async": ":"}


def style(entry: Entry, ranks: Sequence[int]) -> dict[str, Any]:
    """Return colour by graph (for ``all`` that is not in step, another), dashes by consistency, weight by ranks."""
    if not entry.graph:
        return {"color": "black", "linewidth": 2.2}
    return {
        "color": OTHER if (entry.graph == "all") > (entry.consistency == "bsp") else SHADES.get(entry.graph, OTHER),
        "linestyle": DASHES.get(entry.consistency, "--"),
        "linewidth": 1 + 0.8 * ranks.index(entry.ranks),
        "alpha": 0.9,
    }


def curves(ax: Axes, entries: Sequence[Entry], goal: float, over: str) -> None:
    """Draw the loss of each entry's first run over ``"seconds"`` or ``"examples"``."""
    ranks = sorted({entry.ranks for entry in entries if entry.graph})
    for entry in entries:
        run = entry.runs[0]
        look = style(entry, ranks)
        ax.plot(getattr(run, over), run.loss, label=str(entry), **look)
        if hit := reached(run, goal):
            ax.plot(hit[over == "examples"], goal, "o", color=look["color"], markersize=3 + 2 * look["linewidth"])
    ax.axhline(goal, color="grey", linewidth=0.8)
    ax.annotate(
        "target",
        (0, goal),
        xycoords=("axes fraction", "data"),
        va="top",
        color="grey",
        xytext=(4, -2),
        textcoords="offset points",
    )
    ax.set(yscale="log", xlim=(0, None), ylim=(0.97 * goal, 2 * goal), ylabel="loss over all training windows")
    ax.yaxis.set_minor_formatter("{x:.2f}")
    ax.grid(alpha=0.2, which="both")


def wheel(ax: Axes, spec: str, size: int) -> None:
    """Draw a graph with its ranks on a circle; the arrows of rank 0 stand out."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(size) / size
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    graph = malt.Graph(spec, size)
    for rank in reversed(range(size)):
        for to in graph.receivers(rank):
            arrow = {
                "arrowstyle": "-|>",
                "color": SHADES.get(spec, OTHER) if rank == 0 else "#c8c8c8",
                "shrinkA": 9,
                "shrinkB": 9,
                "connectionstyle": "arc3,rad=0.12",
            }
            ax.annotate("", xy=place[to], xytext=place[rank], arrowprops=arrow)
    for rank, (x, y) in enumerate(place):
        ax.text(x, y, str(rank), ha="center", va="center", bbox={"boxstyle": "circle", "fc": "white", "ec": "black"})
    ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", title=f"{spec}, {size} ranks")
    ax.axis("off")


def draw(entries: Sequence[Entry], goal: float, title: str, path: Path) -> None:
    """Write the picture to `path`, narrow enough for a phone; of each graph, with most ranks."""
    wheels = {entry.graph: entry.ranks for entry in sorted(entries, key=lambda e: e.ranks) if entry.graph}
    figure = Figure(figsize=(5.6, 13.2), layout="constrained")
    figure.suptitle("\n".join(fill(line, 68) for line in title.split("\n")), fontsize=10)
    grid = figure.add_gridspec(3, 1, height_ratios=(2, 2, 1))
    time, learning = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    curves(time, entries, goal, "seconds")
    time.set_xlabel("seconds of training, communication included")
    curves(learning, entries, goal, "examples")
    learning.set_xlabel("examples, all ranks together")
    learning.legend(fontsize=8)
    below = grid[2].subgridspec(1, len(wheels))
    for place, (spec, size) in enumerate(wheels.items()):
        wheel(figure.add_subplot(below[place]), spec, size)
    figure.savefig(path, dpi=100)
