"""When a run reached the serial run's loss, and the table of all entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from demo.worker import Run

COLUMNS = {
    "program": "<14",
    "ranks": "<6",
    "graph": "<8",
    "consistency": "<11",
    "time to target": ">15",
    "speed-up": ">9",
    "in examples": ">12",
    "us/example": ">11",
    "waiting": ">8",
    "final loss": ">11",
    "accuracy": ">9",
    "MB sent": ">8",
    "age": ">6",
}

PARTS = ("serial / ranks", "statistics", "waiting", "exchange", "slower steps")
"""Where the time to the target goes."""


@dataclass
class Entry:
    """One line of the table: what ran, and one `Run` per shuffle of the data."""

    ranks: int
    graph: str
    consistency: str
    runs: list[Run]
    program: str = ""
    """What learns; "" if all entries do it alike."""

    def __str__(self) -> str:
        how = f"{self.ranks} ranks, {self.graph}, {self.consistency}" if self.graph else "serial"
        return f"{self.program}, {how}" if self.program else how


def target(serial: Run, examples: int) -> float:
    """Return the loss to reach: that of the serial run after so many examples, plus 1 %."""
    return 1.01 * serial.loss[serial.examples.index(examples)]


def reached(run: Run, loss: float) -> tuple[float, int] | None:
    """Return seconds and examples at the first copy of the model that is as good as `loss`; None if none is."""
    copies = zip(run.seconds, run.examples, run.loss, strict=True)
    return next(((seconds, examples) for seconds, examples, at in copies if at <= loss), None)


def row(entry: Entry, serial: Entry, targets: Sequence[float], cores: int) -> dict[str, str]:
    """Return one line of the table: medians over the shuffles, where a run that never arrives is the slowest."""
    never = (float("inf"), float("inf"))
    ours = [reached(*pair) or never for pair in zip(entry.runs, targets, strict=True)]
    base = [reached(*pair) or never for pair in zip(serial.runs, targets, strict=True)]
    seconds = median(hit[0] for hit in ours)
    arrived = seconds < float("inf")
    out = {
        "program": entry.program,
        "ranks": f"{entry.ranks}{'*' if entry.ranks > cores else ''}" if entry.graph else "serial",
        "graph": entry.graph,
        "consistency": entry.consistency,
        "time to target": f"{seconds:.3f} s" if arrived else "not reached",
        "us/example": f"{median(run.step for run in entry.runs):.2f}",
        "final loss": f"{median(run.loss[-1] for run in entry.runs):.4f}",
        "accuracy": f"{median(run.accuracy for run in entry.runs):.4f}",
    }
    if arrived and entry.graph:
        out["speed-up"] = f"{median(b[0] / o[0] for b, o in zip(base, ours, strict=True)):.2f}"
        out["in examples"] = f"{median(entry.ranks * b[1] / o[1] for b, o in zip(base, ours, strict=True)):.2f}"
    if entry.graph:
        out["waiting"] = f"{median(run.waiting for run in entry.runs):.0%}"
        out["MB sent"] = f"{median(run.sent for run in entry.runs):.1f}"
        out["age"] = f"{median(run.age for run in entry.runs):.2f}"
    return out


def spent(run: Run, ranks: int, serial: Run, loss: float) -> dict[str, float] | None:
    """Return the seconds of each of `PARTS` up to `loss`, which add up to all of them; None if a run missed it.

    Ranks that learn as well from each example as the serial program, and as fast, without waiting or
    talking, need its time divided by their number. They need more examples (statistics), wait, and talk
    (exchange). The rest are slower steps, where ranks share caches, memory or cores.
    """
    ours, base = reached(run, loss), reached(serial, loss)
    if ours is None or base is None:
        return None
    parts = {
        "serial / ranks": base[0] / ranks,
        "statistics": 1e-6 * serial.step * (ours[1] - base[1]) / ranks,
        "waiting": run.waiting * ours[0],
        "exchange": run.exchange * ours[0],
    }
    return {**parts, "slower steps": ours[0] - sum(parts.values())}


def breakdown(entries: Sequence[Entry], serial: Entry, targets: Sequence[float]) -> str:
    """Return a table of where the seconds went, for each entry in its run of median time."""
    lines = [["", *PARTS, "together"]]
    for entry in entries:
        pairs = zip(entry.runs, serial.runs, targets, strict=True)
        found = [parts for run, base, loss in pairs if (parts := spent(run, entry.ranks, base, loss))]
        if len(found) == len(entry.runs):
            parts = sorted(found, key=lambda each: sum(each.values()))[len(found) // 2]
            lines.append([str(entry), *(f"{parts[name]:.3f} s" for name in PARTS), f"{sum(parts.values()):.3f} s"])
    return "\n".join(f"{who:<36}" + "".join(f"{value:>16}" for value in values) for who, *values in lines)


def verdict(rows: Sequence[dict[str, str]]) -> str:
    """Return in a sentence how much faster than alone the best of the rows of one program was."""
    best = max((row for row in rows if "speed-up" in row), key=lambda row: float(row["speed-up"]), default=None)
    alone = f"{rows[0]['program']} in one process"
    if best is None:
        return f"No speed-up: no run with several ranks reached the loss of {alone}."
    times = float(best["speed-up"])
    who = f"{best['ranks'].rstrip('*')} ranks ({best['graph']}, {best['consistency']})"
    if times >= 1.05:
        return f"The fastest, {who}, reached the loss {times:.1f} times as fast as {alone}."
    long = f"{1 / times:.1f} times as long" if times <= 0.95 else "as long"
    crowded = " More ranks than cores take turns." if best["ranks"].endswith("*") else ""
    return f"No speed-up: the fastest, {who}, took {long} as {alone}.{crowded}"


def text(rows: Iterable[dict[str, str]]) -> str:
    """Return the table as text."""
    lines = [dict(zip(COLUMNS, COLUMNS, strict=True)), *rows]
    return "\n".join("".join(format(line.get(c, ""), w) for c, w in COLUMNS.items()).rstrip() for line in lines)
