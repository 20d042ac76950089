"""What four ranks do over time when one of them is killed: with on_death=stop, and with continue."""

from __future__ import annotations

import matplotlib.pyplot as plt

COMPUTES, WAITS, DEATH = "#0072b2", "#d9d9d9", "#d55e00"
PACES = [1.0, 0.9, 1.0, 0.85]
KILLED, AT, NOTICED = 2, 3.4, 0.2
STEPS = 6


def bars(ax: plt.Axes, rank: int, start: float, end: float, met: float) -> None:
    """Draw one step of a rank: it computes until ``end``, and then waits until the others have met it."""
    ax.barh(rank, end - start, left=start, color=COMPUTES, edgecolor="white", label="computes")
    ax.barh(rank, met - end, left=end, color=WAITS, edgecolor="white", hatch="//", label="waits")


def panel(ax: plt.Axes, goes_on: bool) -> None:
    """Draw the steps in lock-step, in which the ranks that take part meet."""
    start = 0.0
    for _ in range(STEPS):
        alive = [r for r in range(len(PACES)) if r != KILLED or start < AT]
        dies = KILLED in alive and start + PACES[KILLED] > AT
        met = max(start + PACES[r] for r in alive if not (dies and r == KILLED))
        met = max(met, AT + NOTICED) if dies else met
        for r in alive:
            end = AT if dies and r == KILLED else start + PACES[r]
            bars(ax, r, start, end, end if dies and r == KILLED else met)
        start = met
        if dies and not goes_on:
            break
    ax.plot(AT, KILLED, marker="X", markersize=11, color=DEATH, linestyle="", label="is killed")
    ax.set(yticks=range(len(PACES)), yticklabels=[f"rank {r}" for r in range(len(PACES))], xticks=[])
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)


def draw() -> None:
    """Draw one panel per option."""
    panels = {
        "--on-death stop: every wait fails, the job ends": False,
        "--on-death continue: the next sync is one of ranks 0, 1 and 3": True,
    }
    fig, axes = plt.subplots(len(panels), 1, figsize=(5.5, 4.4), sharex=True)
    for ax, (title, goes_on) in zip(axes, panels.items(), strict=True):
        panel(ax, goes_on)
        ax.set_title(title, loc="left", fontsize=10)
    axes[-1].set_xlabel("time")
    handles, labels = axes[-1].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    axes[0].legend(named.values(), named.keys(), loc="center right", fontsize=9)
    fig.tight_layout()


draw()
