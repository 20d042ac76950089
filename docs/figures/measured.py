"""Charts of the tables in ``docs/developers/benchmarks.md``.

Sphinx runs the functions in the folder of this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt

TABLES = Path("../developers/benchmarks.md").read_text()
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
BYTES = {"KB": 1 << 10, "MB": 1 << 20}
MALT, PEER, LIMIT = "#0072b2", "#d55e00", "#8c8c8c"
WIDTH = 5  # inches: on a phone the letters are as large as the text


def number(cell: str, units: dict[str, float] | dict[str, int]) -> float | None:
    """Return what the first "2.91 us" or "64 KB" of a cell says."""
    found = re.search(rf"([\d.]+) ({'|'.join(units)})\b", cell)
    return float(found[1]) * units[found[2]] if found else None


def rows(title: str, ranks: int) -> Iterator[tuple[float, float, float | None, float | None]]:
    """Yield bytes, and the seconds of MALT, the limit and the best peer, from the first table with the row."""
    seen = set()
    for line in TABLES.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells[:2] == [title, str(ranks)] and cells[2] not in seen:
            seen.add(cells[2])
            size, own = number(cells[2], BYTES), number(cells[3], SECONDS)
            assert size is not None, line
            assert own is not None, line
            yield size, own, number(cells[4], SECONDS), number(cells[6], SECONDS)


def sizes(ax: plt.Axes, title: str, peer: str) -> None:
    """Draw seconds over bytes, both on logarithmic scales."""
    found = list(rows(title, 4))
    at = [size for size, *_ in found]
    for label, color, style, values in (
        (peer, PEER, "s--", [best for *_, best in found]),
        ("MALT", MALT, "o-", [own for _, own, *_ in found]),
        ("limit of the memory", LIMIT, "^:", [limit for _, _, limit, _ in found]),
    ):
        if all(values):
            ax.loglog(at, values, style, color=color, label=label)
    ax.set(xlabel="size of the vector", ylabel="time of one average")
    ax.set_xticks(
        at, [f"{size / (1 << 20):g} MB" if size >= 1 << 20 else f"{size / 1024:g} KB" for size in at], fontsize=9
    )
    ax.minorticks_off()
    ax.set_yticks([10.0**k for k in range(-6, 0)], ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"])
    low, high = [f([v for _, *rest in found for v in rest if v]) for f in (min, max)]
    ax.set_ylim(low / 2, high * 2)
    ax.grid(alpha=0.25)
    ax.legend()


def one_machine() -> None:
    """Draw times of an average of four ranks on one machine."""
    _, ax = plt.subplots(layout="constrained", figsize=(WIDTH, 3.6))
    sizes(ax, "average (sync)", "fastest other library")


def between_hosts() -> None:
    """Draw times of an average of four hosts."""
    _, ax = plt.subplots(layout="constrained", figsize=(WIDTH, 3.6))
    sizes(ax, "average of 4 hosts", "gloo")


def by_graph() -> None:
    """Draw times of one sync of 1 MB over each graph."""
    graphs = ("all", "one-peer", "star", "ring", "chord", "halton", "hypercube")
    times = [1e6 * next(rows(f"sync, {graph}", 4))[1] for graph in graphs]
    _, ax = plt.subplots(layout="constrained", figsize=(WIDTH, 3.2))
    bars = ax.barh(graphs, times, color=MALT)
    ax.bar_label(bars, [f"{time:.0f} µs" for time in times], padding=4)
    ax.invert_yaxis()
    ax.set(xlabel="microseconds for one sync", xlim=(0, max(times) * 1.2))
    ax.spines[["top", "right"]].set_visible(False)
