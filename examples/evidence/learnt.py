"""What MALT and MALT-2 say of learning with many ranks: M4, M5, M8 to M13, M16, N1 to N7."""

from __future__ import annotations

import functools
import math
import statistics
from typing import Any

from .filters import texts
from .job import job
from .shown import Program, Shown, Verdict, among

Found = dict[str, Any]

NEAR = 1.01  # times the last loss of one process


def goal_of(serial: Found) -> float:
    """Return the loss to reach."""
    return NEAR * float(serial["loss"])


def reached(curve: list[tuple[float, float, float]], goal: float, what: int = 0) -> float:
    """Return this number of the first point that has the loss: by default examples of a rank; infinite if none has."""
    return next((point[what] for point in curve if point[2] <= goal), math.inf)


def times(ratio: float) -> str:
    """Return a ratio as text."""
    return f"{ratio:.1f} times" if ratio else "never"


def m4() -> Shown:
    """Count the examples that a rank needs."""
    serial = job(1, "paced.py", "learn", runs={"": {}}, passes=5, points=60)[""]
    goal, said, least = goal_of(serial), [], math.inf
    for ranks in (4, 10):
        for every in (100, 1000):
            run = job(ranks, "paced.py", "learn", runs={"": {}}, every=every, passes=12, points=120)[""]
            gain = reached(serial["curve"], goal) / reached(run["curve"], goal)
            least = min(least, gain)
            said.append(f"{ranks} ranks every {every}: {times(gain)}")
    how = f"counted: examples of a rank until the loss of one process after 5 passes, + 1 %; {texts()}, λ 1e-4, bsp"
    return Shown(
        "10 ranks are faster (no figure)",
        f"fewer examples, {', '.join(said)}",
        how,
        "holds" if least > 1 else "in part",
    )


def m5() -> Shown:
    """Compare an average every 1,000 examples with one per pass."""
    serial = job(1, "paced.py", "learn", data="splice", every=1000, runs={"": {}}, passes=1, points=40)[""]
    often, seldom = (
        job(10, "paced.py", "learn", data="splice", every=every, runs={"": {}}, passes=passes, points=40)[""]
        for every, passes in ((1000, 3), (17_000, 10))
    )
    goal = goal_of(serial)
    seen, alone = reached(often["curve"], goal), reached(serial["curve"], goal)
    more = reached(seldom["curve"], goal) / seen
    ours = (
        f"one average per pass needs {more:.1f} times the examples"
        if math.isfinite(more)
        else f"one average per pass does not reach the loss in 10 passes: {seldom['loss']:.4f}"
    )
    ours += f"; an average every 1,000 needs {alone / seen:.1f} times fewer per rank than one process"
    how = "counted: 10 ranks, splice-site, until the loss of one process after a pass, + 1 %"
    holds = more >= 3 and alone / seen > 10
    return Shown("3 times, and more than 10 times faster than one", ours, how, "holds" if holds else "in part")


def m8() -> Shown:
    """Compare rows that are replaced with sums of changes."""
    replace: dict[str, Any] = {"fold": "replace", "sparse": "model", "consistency": "async"}
    runs = {
        "replace on all": replace,
        "replace on halton": {**replace, "graph": "halton"},
        "sum-changes": {"fold": "sum-changes", "consistency": "async"},
    }
    serial = job(1, "paced.py", "factor", runs={"": {}})[""]
    found = job(8, "paced.py", "factor", runs=runs, pace=0.05, turns=5)
    goal = NEAR * serial["rmse"]

    def passes(run: Found) -> int:
        return next((n for n, (_, rmse) in enumerate(run["curve"], 1) if rmse <= goal), 0)

    said = [f"{name} {run['rmse']:.4f}, near after pass {passes(run) or 'none'}" for name, run in found.items()]
    ours = (
        f"RMSE {serial['rmse']:.4f} of one process, within 1 % after pass {passes(serial)}; 8 ranks: {'; '.join(said)}"
    )
    how = (
        "emulated: 8 ranks, MovieLens, 20 passes, each in an eighth of the time, async, 3,200 ratings in 50 ms; "
        "medians of 5 turns"
    )
    near = [passes(found[name]) for name in list(runs)[:2]]
    return Shown("faster than one; halton 14 % faster still", ours, how, "in part" if all(near) else "does not hold")


def m9() -> Shown:
    """Time the modes to an equal loss."""
    runs: dict[str, Found] = {mode: {"consistency": mode} for mode in ("bsp", "ssp:4", "async")}
    serial = job(1, "paced.py", "learn", data="splice", every=250, runs={"": {}}, passes=0.25, points=1)[""]
    goal, said, firsts = goal_of(serial), [], []
    for kind, what in (("even", "even"), ("jitter", "half to one and a half"), ("one", "one rank 5 times slower")):
        found = job(
            8, "paced.py", "learn", data="splice", every=250, runs=runs, pace=0.06, kind=kind, passes=0.5, points=21,
            turns=3,
        )  # fmt: skip
        seconds = {mode: [reached(curve, goal, 1) for curve in run["curves"]] for mode, run in found.items()}
        firsts.append(min(seconds, key=lambda mode: statistics.median(seconds[mode])))
        said.append(f"{what}: " + ", ".join(f"{mode} {among(at, form='.2f')} s" for mode, at in seconds.items()))
    how = (
        "emulated: 8 ranks, splice-site, 250 windows in 60 ms, the last rank's model; until it has the loss of one "
        "process after 43,000 windows, + 1 %; medians of 3 turns, since they take minutes (extremes)"
    )
    wins = firsts.count("ssp:4")
    verdict: Verdict = "holds" if wins == len(firsts) else "in part" if wins else "does not hold"
    return Shown("SSP, then ASP, then BSP", "; ".join(said).replace("never s", "never"), how, verdict)


def m10() -> Shown:
    """Find the share of the waits."""
    said = []
    for ranks, pace in ((2, 0.0), (20, 0.2)):
        for kind in ("even", "jitter") if pace else ("even",):
            run = job(ranks, "paced.py", "learn", runs={"": {}}, every=500, pace=pace, kind=kind)[""]
            said.append(f"{ranks} ranks, {kind} steps: {run['inside'] / run['span']:.0%} in sync")
    how = f"real with 2 ranks, emulated with 20: {texts()}, bsp, 500 texts a step, of 200 ms; two passes"
    return Shown("little blocking (no figure)", "; ".join(said), how, "in part")


def m12() -> Shown:
    """Time syncs of clients that do not wait, and of some that do."""
    changes = {"fold": "mean-changes", "consistency": "async"}
    runs = {
        "all": changes,
        "shards:1": {**changes, "graph": "shards:1"},
        "star in notify-ack": {"graph": "star", "consistency": "notify-ack"},
    }
    found = job(5, "paced.py", "calls", runs=runs, turns=5, kind="jitter", values=100_000)
    milliseconds = {name: 1e3 * statistics.median(t["inside"] for t in turns) / 200 for name, turns in found.items()}
    ours = ", ".join(f"{name} {ms:.2f} ms" for name, ms in milliseconds.items())
    how = "emulated: 5 ranks, 400 KB, 200 steps of 5 to 15 ms; mean time in a sync, medians of 5 turns"
    fast = milliseconds["shards:1"] < milliseconds["star in notify-ack"] / 2
    text = f"{ours}: a server of changes answers without a wait, too"
    return Shown("a server's clients wait, MALT does not", text if fast else ours, how, "in part" if fast else "holds")


def m11() -> Shown:
    """Count the bytes of graphs and servers, where steps change the words of some texts."""
    rows = {"sparse": "model", "consistency": "async"}
    server = {"fold": "sum-changes", "graph": "shards:1", "consistency": "async"}
    runs = {
        "all": {**rows, "graph": "all"},
        "halton": {**rows, "graph": "halton"},
        "a server that sends all values": server,
        "one that sends changed values": {**server, "sparse": "model"},
    }
    sent = {name: bytes / 1e6 for name, (bytes,) in job(20, "machine.py", "moved", runs=runs).items()}
    ours = ", ".join(f"{name} {megabytes:.1f} MB" for name, megabytes in sent.items())
    how = f"counted: 20 ranks, {texts()} instead of webspam, async; what all send while each learns 100 texts"
    least = sent["halton"] < min(sent["all"], *list(sent.values())[2:])
    return Shown("halton, then all, then the server (no figure)", ours, how, "holds" if least else "in part")


def m13() -> Shown:
    """Find which share of its rate a cable carries."""
    rate, free = 100, {"consistency": "async"}  # Mbit/s
    found = [
        job(8, "machine.py", "loaded", rate=f"{rate}Mbit", options={}, steps=5),
        job(12, "machine.py", "loaded", rate=f"{rate}Mbit", hosts=4, options=free, steps=250, pace=0.02),
    ]
    step, run = (statistics.median(shares) * 8e-6 / rate for shares in found)
    ours = f"{step:.2f} of the rate in bsp, {run:.2f} in async"
    how = (
        f"net: cables of {rate} Mbit/s, 4 MB on all; 8 hosts in bsp, 4 hosts with 3 ranks each in async; the bytes "
        "that the host with the fewest sends, with headers, medians of 5"
    )
    holds = step >= 0.95 and run >= 33 / 40
    return Shown("40 of 40 Gbit/s, and 33: 1.0 and 0.82", ours, how, "holds" if holds else "in part")


def m16() -> Shown:
    """Kill one of ten ranks."""
    found: dict[bool, list[Found]] = {True: [], False: []}
    for _ in range(5):
        for dies, runs in found.items():
            runs.append(job(10, "machine.py", "death", on_death="continue", dies=dies))
    lost, whole = (statistics.median(run["span"] for run in runs) for runs in found.values())
    waits = [run["longest"] for run in found[True]]
    longest = statistics.median(waits)
    ratios = [one["span"] / other["span"] for one, other in zip(*found.values(), strict=True)]
    ours = (
        f"the longest sync takes {among(waits, form='.2f')} s; all in all "
        f"{among(ratios, lost / whole, '.2f')} times the time without a death "
        f"(9 ranks for 70 of 100 steps: {0.3 + 0.7 * 10 / 9:.2f})"
    )
    how = "emulated: 10 ranks, pieces of 20 ms, one is killed after 30 of 100; medians of 5 turns (extremes)"
    holds = longest < 5 and lost / whole < 10 / 9 + longest / whole
    return Shown("seconds, then as survivors (10/9)", ours, how, "holds" if holds else "in part")


def n1() -> Shown:
    """Sweep the exchange."""
    sweep = (5, 25, 100, 1000)
    turns = [[job(4, "paced.py", "learn", runs={"": {}}, every=every)[""] for every in sweep] for _ in range(5)]
    said = [
        f"every {every}: loss {run[0]['loss']:.4f}, {statistics.median(one['span'] for one in run):.2f} s, "
        f"{sum(run[0]['updates']) / 4:.0f} syncs"
        for every, run in zip(sweep, zip(*turns, strict=True), strict=True)
    ]
    how = f"real: 4 ranks on 2 cores, SVM on {texts()}, two passes, bsp; medians of 5 turns"
    return Shown("no effect is claimed", "; ".join(said), how, "in part")


def n2() -> Shown:
    """Compare the memory of two graphs."""
    runs = {
        f"{graph} {mode}": {"graph": graph, "consistency": mode}
        for graph in ("all", "halton")
        for mode in ("bsp", "async")
    }
    found = job(8, "machine.py", "memory", runs=runs)
    ours = ", ".join(f"{name} {copies:.1f}" for name, copies in found.items())
    how = "real: 8 ranks, 16 MB, proportional set size of all ranks, in copies of the array for each, after 5 syncs"
    less = found["all async"] / found["halton async"]
    text = f"{ours}. An update lies once, at its sender, and all in bsp needs no copy"
    verdict: Verdict = "holds" if less >= 9 / 5 else "in part" if less > 1.1 else "does not hold"
    return Shown("buffers for 9 against 5 arrays", text, how, verdict)


@functools.cache
def acknowledged() -> dict[str, Found]:
    """Train on halton in three modes, and on all in lock-step, with steps of uneven time."""
    runs = {mode: {"graph": "halton", "consistency": mode} for mode in ("bsp", "notify-ack", "async")} | {ALL: {}}
    found: dict[str, Found] = job(8, "paced.py", "learn", runs=runs, passes=4, pace=0.06, kind="jitter", turns=5)
    return found


ALL = "bsp on all"
ACKNOWLEDGED = f"emulated: 8 ranks, halton, {texts()}, 4 passes, 100 texts in 30 to 90 ms; medians of 5 turns"


def n3() -> Shown:
    """Compare waits and times."""
    found = acknowledged()
    said = [
        f"{mode} {run['inside']:.2f} s in sync, {run['span']:.2f} s in all, loss {run['loss']:.4f}"
        for mode, run in found.items()
    ]
    half = found["notify-ack"]["inside"] <= 0.6 * found["bsp"]["inside"]
    paper = "barrier 7.45 s, ACK 3.6; in all 28.1, 28.6, async 20.7"
    return Shown(paper, "; ".join(said), ACKNOWLEDGED, "holds" if half else "in part")


def n4() -> Shown:
    """Count the updates of each fold."""
    found, said = acknowledged(), []
    for mode in ("async", "notify-ack"):
        counts = found[mode]["updates"][:4]
        said.append(f"{mode} " + ", ".join(f"{n}: {counts[n] / sum(counts):.0%}" for n in (3, 2, 1, 0)))
    paper = "async 3: 47.8 %, 2: 40.1, 1: 10.8, 0: 1.4; ACK 3: 80 %"
    return Shown(paper, "; ".join(said), ACKNOWLEDGED, "in part")


def n5() -> Shown:
    """Compare time and loss of notify-ack with bsp."""
    found = acknowledged()
    took, step = (found[mode]["span"] / found["bsp"]["span"] for mode in ("notify-ack", ALL))
    lower = found["bsp"]["loss"] - found["notify-ack"]["loss"]
    ours = (
        f"notify-ack takes {took:.2f} times the time of bsp, to a loss {lower:.4f} lower (of an SVM, not of MNIST); "
        f"{ALL} takes {step:.2f} times, to {found[ALL]['loss'] - found['bsp']['loss']:+.4f}"
    )
    return Shown("1 / 1.13 = .88 times", ours, ACKNOWLEDGED, "holds" if took <= 1 / 1.13 and lower > 0 else "in part")


def n6() -> Shown:
    """Count what a slow receiver folds, and what was overwritten before it did."""
    runs = {mode: {"consistency": mode} for mode in ("async", "notify-ack")}
    found = job(4, "paced.py", "calls", runs=runs, turns=1, steps=60, kind="one")
    said = [
        f"{mode}: {turn['folded_messages']} updates folded, {turn['overwritten']} overwritten"
        for mode, (turn,) in found.items()
    ]
    how = (
        "counted: 4 ranks, rank 0 takes 5 times as long for each of 60 steps; what it folds of the others' 180 updates"
    )
    exact = found["notify-ack"][0]["overwritten"] == 0
    return Shown("", f"{'; '.join(said)}. No queue grows in either", how, "holds" if exact else "does not hold")


def n7() -> Shown:
    """Measure the processor time of a receiver that sleeps."""
    here, net = (job(2, "machine.py", "sleeper", rate=rate) for rate in ("", "10Gbit"))
    per = [found["used"] / found["sent"] * 1e9 for found in (here, net)]
    ours = f"{per[0]:.3f} s a GB in shared memory, {per[1]:.3f} s over TCP"
    how = "real and net: rank 1 sends 64 updates of 16 MB while rank 0 sleeps; its processor time"
    return Shown("none, by RDMA", ours, how, "in part")


PROGRAMS: dict[str, Program] = {
    "M4": m4,
    "M5": m5,
    "M8": m8,
    "M9": m9,
    "M10": m10,
    "M11": m11,
    "M12": m12,
    "M13": m13,
    "M16": m16,
    "N1": n1,
    "N2": n2,
    "N3": n3,
    "N4": n4,
    "N5": n5,
    "N6": n6,
    "N7": n7,
}
