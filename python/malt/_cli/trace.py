"""``malt run --trace``: what the ranks did, in the format of Chrome's trace viewer; ``malt trace`` compares two."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from malt._cli.facts import Facts, described, smoothed
from malt._cli.options import Parser, Refuse
from malt._cli.supervise import name
from malt._cli.verdict import PARTS
from malt._cli.wrap import aligned
from malt._ranks import seen
from malt._ranks.room import MOST
from malt._ranks.story import KEPT, NAMES, Story

DESCRIPTION = """\
Says what two runs had in common and where they differ: their time and where it went, the bytes
that they sent, and how soon they reached the same loss (malt.log). The files are those of malt
run --trace; with one file, its figures. To look at one, open it in https://ui.perfetto.dev."""

EXAMPLES = """\
  malt run -n 1 --trace one.json.gz train.py
  malt run -n 4 --trace four.json.gz train.py
  malt trace one.json.gz four.json.gz    what four ranks changed
"""

# ------------------------------------------------------------------ writing

BEGIN = b'{"displayTimeUnit": "ms", "otherData": '
"""What a file begins with."""


def write(file: BinaryIO, story: Story, facts: Facts, packed: bool) -> str:
    """Write what the ranks did; returns what is left out, empty if nothing is."""
    sampled = f"calls, waits and folds in {story.stride - 1} of {story.stride} windows of 0.1 s"
    others = sum(track.nameless for track in story.tracks.values())
    named = f"{others} logged values, whose names came after the first {NAMES}"
    left = "; ".join(filter(None, [left_out(story), sampled * (story.stride > 1), named * (others > 0)]))
    told = {"malt": facts, "left out": left or "nothing", "clocks may be off by, in seconds": facts["off"]}
    packing = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=5, mtime=0) if packed else None
    with packing or contextlib.nullcontext(file) as out:
        out.write(BEGIN + json.dumps(told).encode() + b', "traceEvents": [')
        for i, event in enumerate(_events(story, facts)):
            out.write((b"\n" if i == 0 else b",\n") + json.dumps(event).encode())
        out.write(b"\n]}\n")
    return left


def left_out(story: Story) -> str:
    """Say of what the sums over a job know nothing; empty if they know all."""
    lost = sum(track.lost for track in story.tracks.values())
    overwritten = f"{lost} events that were overwritten before they were read: a larger --events avoids that"
    unseen = f"all events of {name(story.unseen)}, which ended before they could be read" if story.unseen else ""
    return "; ".join(filter(None, [overwritten * (lost > 0), unseen]))


def _events(story: Story, facts: Facts) -> Iterator[dict[str, Any]]:
    since = story.timeline()
    places = {rank["rank"]: facts["hosts"].index(rank["host"]) for rank in facts["ranks"]}

    def at(rank: int, when: float, lane: int = 0) -> dict[str, Any]:
        return {"pid": places[rank], "tid": rank + MOST * lane, "ts": round(since(rank, when) * 1e6, 3)}

    for number, host in enumerate(facts["hosts"]):
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": host}}
    for rank, track in story.tracks.items():
        for when, text in track.marks:
            yield {"ph": "i", "s": "t", "name": text, "cat": "mark", **at(rank, when)}
        for when, dead, generation in track.deaths:
            view = {"generation": generation}
            yield {"ph": "i", "s": "p", "name": f"without {name(dead)}", "cat": "death", **at(rank, when), "args": view}
        for key, curve in track.logs.items():
            for when, _, value in curve:
                if math.isfinite(value):  # JSON has no other numbers
                    yield {"ph": "C", "name": f"{key} of rank {rank}", **at(rank, when), "args": {key: value}}
    sent = {(event.rank, event.update): event for event in story.events if event.kind == "send"}
    for event in sent.values():
        where = at(event.rank, event.begin)
        yield {"ph": "C", "name": f"bytes from rank {event.rank}", **where, "args": {"bytes": event.value}}
    lanes, arrows = {(rank, 0) for rank in places}, 0
    for event, lane in _bars(story.events):
        lanes.add((event.rank, lane))
        where, end = (at(event.rank, event.begin + took, lane) for took in (0.0, event.seconds))
        yield from _drawn(event, where, end["ts"] - where["ts"])
        for update in _used(event, sent) if event.kind == "fold" else ():
            if arrows < KEPT:
                arrows += 1
                arrow = {"cat": "update", "name": "update", "id": arrows}
                yield {**arrow, "ph": "s", **at(update.rank, update.begin)}
                yield {**arrow, "ph": "f", "bp": "e", **where}
    for rank, lane in sorted(lanes):
        place = {"ph": "M", "pid": places[rank], "tid": rank + MOST * lane}
        yield {**place, "name": "thread_name", "args": {"name": f"rank {rank}{', another thread' * (lane > 0)}"}}
        yield {**place, "name": "thread_sort_index", "args": {"sort_index": rank}}


TOUCH = 1e-6
"""Seconds by which bars of one thread may seem to cross: times are floats."""


def _bars(events: Sequence[seen.Event]) -> Iterator[tuple[seen.Event, int]]:
    """Yield what has a bar, and on which track of its rank: others are for what would cross, as of two threads."""
    ranks: dict[int, list[list[float]]] = defaultdict(list)
    bars = (event for event in events if event.kind != "send")
    for event in sorted(bars, key=lambda event: (event.begin, -event.seconds)):
        tracks, end = ranks[event.rank], event.begin + event.seconds
        for around in tracks:  # the ends of what a bar would be in, the innermost last
            while around and around[-1] <= event.begin + TOUCH:
                around.pop()
        if all(tracks):
            tracks.append([])
        ends = [around[-1] if around else math.inf for around in tracks]
        fits = [lane for lane, until in enumerate(ends) if end <= until + TOUCH]
        # What is no call belongs to the call that it is in.
        lane = fits[0] if event.kind == "call" else min(fits, key=ends.__getitem__)
        tracks[lane].append(end)
        yield event, lane


def _drawn(event: seen.Event, where: Mapping[str, Any], length: float) -> Iterator[dict[str, Any]]:
    """Yield the bar of an event, and what goes with it; viewers colour a bar by its name."""
    bar = {"ph": "X", "cat": event.kind, **where, "dur": round(length, 3)}
    if event.kind == "call":
        yield {**bar, "name": event.text, **({"args": {"failed": True}} if event.value else {})}
    elif event.kind == "wait":
        yield {**bar, "name": f"wait for {name(event.ranks)}"}
    else:
        clock = event.update & (1 << 40) - 1
        age = {} if event.value == seen.NO_AGE else {"largest age": event.value}
        yield {**bar, "name": "fold", "args": {"from": event.ranks, "clock": clock, **age}}
        if age:
            yield {"ph": "C", "name": f"age at rank {event.rank}", **where, "args": {"updates": event.value}}


def _used(fold: seen.Event, sent: Mapping[tuple[int, int], seen.Event]) -> Iterator[seen.Event]:
    """Yield the updates that a fold has used, as far as they are known."""
    for rank, age in zip(fold.ranks, fold.ages or [0] * len(fold.ranks), strict=False):  # there are ages of the first
        update = sent.get((rank, fold.update - age))
        if update is not None and age != seen.NO_AGE:
            yield update


# ------------------------------------------------------------------ malt trace


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("trace", "malt trace FILE [FILE]", DESCRIPTION, EXAMPLES)
    made.add_argument("first", metavar="FILE", help="a file of malt run --trace")
    made.add_argument("second", nargs="?", metavar="FILE", help="another one, to be compared with it")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    first = read(options.first, parse.error)
    if options.second is None:
        off = [f"clocks of the hosts may be off by {first['off'] * 1000:.3g} ms"] if first["off"] else []
        lines = [_title(first), *first["verdict"], *off]
    else:
        lines = [*compared(first, read(options.second, parse.error))]
    print("\n".join(lines))
    return 0


def read(path: str, refuse: Refuse) -> Facts:
    """Return the facts in a file of ``malt run --trace``."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        found = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        facts: Facts = found["otherData"]["malt"]
        _ = [*compared(facts, facts), facts["off"]]  # another version may know less
    except (ValueError, LookupError, TypeError, AttributeError, EOFError, zlib.error, gzip.BadGzipFile):
        refuse(f"{path!r} is not a trace of this MALT", do="Make one: malt run -n 4 --trace out.json.gz train.py")
    except OSError as error:
        refuse(f"{path!r} cannot be read", error.strerror or "")
    return facts


def _title(facts: Facts) -> str:
    return f"{facts['command']}: {described(facts)}"


def compared(a: Facts, b: Facts) -> Iterator[str]:
    """Yield the lines that compare two runs."""
    yield f"A: {_title(a)}"
    yield f"B: {_title(b)}"
    yield ""
    rows = [("", "A", "B", "B / A"), _row("seconds", [a["seconds"], b["seconds"]])]
    for kind, words in PARTS.items():
        rows.append(_row(words, [sum(rank[kind] for rank in facts["ranks"]) for facts in (a, b)]))
    rows.append(_row("MB sent", [sum(sum(rank["sent"].values()) for rank in x["ranks"]) / 1e6 for x in (a, b)]))
    both, first = _to_same_loss(a, b)
    unit = a["unit"] if a["unit"] == b["unit"] else "examples or syncs"
    if first:
        rows.append(_row(f"loss {both:.4g}, s", [when for when, _, _ in first]))
        rows.append(_row(f"… {unit}", [examples for _, examples, _ in first], ".6g"))
    yield from (*aligned(rows, left={0}), "")
    if first and unit == "examples" and all(when > 0 and examples > 0 for when, examples, _ in first):
        time, used = (first[1][i] / first[0][i] for i in range(2))
        yield (
            f"To that loss B used {used:.2f} times the examples of A, at {used / time:.2f} times as many per second: "
            f"{1 / time:.2f} times as fast."
        )
    for run, facts in ("A", a), ("B", b):
        said = facts["verdict"] or ["nothing is known of its ranks."]
        yield f"{run}: {said[0 if facts['ends'] else -1]}"


def _to_same_loss(a: Facts, b: Facts) -> tuple[float, list[tuple[float, float, float]]]:
    """Return the best loss that both have reached, and when each had: by means, since one step may have luck."""
    curves = [smoothed(facts, max(len(facts["ranks"]), len(facts["loss"]) // 20)) for facts in (a, b)]
    if not all(curves):
        return 0.0, []
    both = max(min(loss for _, _, loss in curve) for curve in curves)
    return both, [next(point for point in curve if point[2] <= both) for curve in curves]


def _row(label: str, values: Sequence[float], form: str = ".2f") -> tuple[str, str, str, str]:
    a, b = values
    return label, f"{a:{form}}", f"{b:{form}}", f"{b / a:.2f}" if a > 0 else ""
