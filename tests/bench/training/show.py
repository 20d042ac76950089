"""The table, the record, and the chart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from math import inf, isinf
from pathlib import Path
from statistics import median

from .. import machine
from .race import How, Outcome
from .tasks import TASKS


def faster(outcome: Outcome, outcomes: Sequence[Outcome]) -> float:
    """Return how many times sooner than the serial program it reached the target, by medians; 0 if one never did."""
    serial = next((o for o in outcomes if o.key == outcome.key and o.contender == "serial"), None)
    if serial is None or not serial.seconds or not outcome.seconds or isinf(median(serial.seconds)):
        return 0.0
    return median(serial.seconds) / median(outcome.seconds)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return a table for each task and place, and below it why contenders are not in it."""
    parts = []
    for (task, place), group in groupby(outcomes, key=lambda o: o.key):
        ours = list(group)
        lines = [
            f"**{task}, {place}**: {ours[0].figure} of {ours[0].target:g}\n",
            f"| | lines | seconds to target | least to most | times faster | final {ours[0].figure} | rate | steps |",
            "| --- " + "| ---: " * 7 + "|",
        ]
        for o in ours:
            if o.how and not o.left_out:
                times = faster(o, ours)
                cells = [
                    o.contender,
                    str(o.lines),
                    _seconds(median(o.seconds)),
                    f"{_seconds(min(o.seconds))} to {_seconds(max(o.seconds))}",
                    f"{times:.2f}" if times else "",
                    f"{median(o.final):.4f}",
                    f"{o.how.rate:g}",
                    f"{o.how.every}",
                ]
                lines.append("| " + " | ".join(cells) + " |")
        without = [f"{o.contender}: {' '.join(o.left_out.split())[:150]}" for o in ours if o.left_out]
        parts.append("\n".join(lines) + ("\n\nWithout " + "; ".join(without) + "." if without else ""))
    return "\n\n".join(parts) + "\n"


def _seconds(value: float) -> str:
    return "never" if value == inf else f"{value:.3g}"


def chart(outcomes: Sequence[Outcome], file: Path) -> None:
    """Draw how many times sooner than the serial program each contender reached the targets: a row for each task."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    tasks = list(dict.fromkeys(o.task for o in outcomes))
    places = list(dict.fromkeys(o.place for o in outcomes))
    names = list(dict.fromkeys(o.contender for o in outcomes if o.contender != "serial" and not o.left_out))
    size = (1.5 + 3 * len(places), 0.6 + 1.7 * len(tasks))
    figure, axes = plt.subplots(len(tasks), len(places), figsize=size, squeeze=False, sharex=True, layout="constrained")
    for down, across in ((d, a) for d in range(len(tasks)) for a in range(len(places))):
        ax = axes[down][across]
        ours = {o.contender: o for o in outcomes if o.key == (tasks[down], places[across])}
        for row, name in enumerate(names):
            o = ours.get(name)
            times = 0.0 if o is None or o.left_out else faster(o, list(ours.values()))
            ax.barh(row, times, color="#1f6fb2" if name.startswith("MALT") else "#999999")
            said = f" {times:.2f}" if times else " not here" if o is None or o.left_out else " never"
            ax.text(times, row, said, va="center", fontsize=7)
        ax.tick_params(labelsize=7)
        ax.set_yticks(range(len(names)), names if across == 0 else [""] * len(names), fontsize=7)
        ax.invert_yaxis()
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set_title(f"{tasks[down]}, {places[across]}", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("times sooner than the serial program", fontsize=7)
    axes[0][0].set_xlim(0, 1.15 * axes[0][0].get_xlim()[1])  # shared by all: room for the figures
    figure.savefig(file, dpi=120)
    plt.close(figure)


def keep(folder: Path, found: list[Outcome]) -> None:
    """Write record, table and chart, of these and of what this machine has found in other races."""
    file, state = folder / "results.json", machine.describe()
    here = {name: state[name] for name in ("processor", "cores", "kernel", "python")}
    before = json.loads(file.read_text()) if file.exists() else {}
    if before.get("machine") == here:
        others = [Outcome(**{**o, "how": o["how"] and How(*o["how"])}) for o in before["outcomes"]]
        found = sorted([o for o in others if o.key != found[0].key] + found, key=lambda o: [*TASKS].index(o.task))
    file.write_text(json.dumps({"machine": here, "outcomes": [asdict(o) for o in found]}, indent=1) + "\n")
    (folder / "table.md").write_text(markdown(found))
    chart(found, folder / "training.png")
    print(f"{file}, table.md and training.png")
