"""What three ranks do over time in each consistency mode: one of them is slow."""

from __future__ import annotations

import matplotlib.pyplot as plt

COMPUTES, WAITS = "#0072b2", "#d9d9d9"
STEPS = 5


def schedule(paces: list[float], senders: list[list[int]], lag: int | None) -> list[list[tuple[float, float]]]:
    """Return (start, wait) of each step; a step ends when the senders have sent that of `lag` steps before."""
    ranks: list[list[tuple[float, float]]] = [[] for _ in paces]
    starts, sent = [0.0] * len(paces), []
    for step in range(STEPS):
        sent.append([start + pace for start, pace in zip(starts, paces, strict=True)])
        for r, done in enumerate(sent[-1]):
            waits_for = [sent[step - lag][s] for s in senders[r]] if lag is not None and step >= lag else []
            end = max([done, *waits_for])
            ranks[r].append((starts[r], end - done))
            starts[r] = end
    return ranks


def draw() -> None:
    """Draw one row of bars per rank and one panel per mode."""
    paces = [1.0, 1.1, 2.0]
    everyone, ring = [[0, 1, 2]] * 3, [[2], [0], [1]]
    panels = {
        "bsp: all ranks meet at each sync": schedule(paces, everyone, 0),
        "ssp:2: a rank waits for a sender\nthat is more than 2 syncs behind": schedule(paces, everyone, 2),
        "async: no rank waits": schedule(paces, everyone, None),
        "notify-ack on a ring: a rank waits\nfor the next update of its sender": schedule(paces, ring, 0),
    }
    fig, axes = plt.subplots(len(panels), 1, figsize=(5, 7.2), sharex=True)
    for ax, (title, ranks) in zip(axes, panels.items(), strict=True):
        for r, (steps, pace) in enumerate(zip(ranks, paces, strict=True)):
            for start, wait in steps:
                ax.barh(r, pace, left=start, color=COMPUTES, edgecolor="white", label="computes")
                ax.barh(r, wait, left=start + pace, color=WAITS, edgecolor="white", hatch="//", label="waits")
        ax.set(yticks=range(len(ranks)), yticklabels=[f"rank {r}" for r in range(len(ranks))], xticks=[])
        ax.set_title(title, loc="left", fontsize=10)
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel(f"time, for {STEPS} steps of each rank")
    handles, labels = axes[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    axes[2].legend(named.values(), named.keys(), loc="upper right", fontsize=9)
    fig.tight_layout()


draw()
