"""``malt top`` in a terminal of 80 columns: the text is that of the command, for these ranks."""

from __future__ import annotations

import matplotlib.pyplot as plt

from malt._cli import top
from malt._ranks import seen

PAPER, INK = "#1e1e1e", "#e6e6e6"
PLACE = "train.py:13: v.sync()"


def ranks(at: float) -> list[seen.Rank]:
    """Return what four ranks show when rank 2 has computed for four seconds."""
    same = seen.Rank(
        rank=0, size=4, near=4, job="8b7a3bed", host="node1", pid=9017, command="train.py", cwd="/",
        memory=42_500_000, signals=0, doing=0, state="waiting", waits_for=[2], waited=4.2, slept=9.0, late=[2],
        syncs=300, bytes=460_800, clock=300, age=0, loss=0.1432, mark="epoch 3", place=PLACE, advice="",
        dead=[], room=0, recorded=0, at=at, joined=0.0,
    )  # fmt: skip
    late = same._replace(state="computing", waits_for=[], waited=0.0, loss=0.1467)
    return [(late if r == 2 else same)._replace(rank=r, pid=9017 + r) for r in range(4)]


def draw() -> None:
    """Draw the text in white on black."""
    lines = ["$ malt top", *top._table({"8b7a3bed": ranks(1.0)}, {}, 80)]
    text = "\n".join(lines).rstrip()
    fig = plt.figure(figsize=(7.2, 0.2 * len(text.splitlines()) + 0.3), facecolor=PAPER)
    fig.text(0.02, 0.94, text, family="monospace", fontsize=8.5, color=INK, va="top", linespacing=1.5)


draw()
