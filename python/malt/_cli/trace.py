"""``malt run --trace``: what the ranks did, in the format of Chrome's trace viewer; ``malt trace`` compares two."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from malt._cli.facts import PARTS, Facts, described
from malt._cli.options import Parser, Refuse
from malt._cli.supervise import name
from malt._cli.wrap import aligned
from malt._ranks import seen
from malt._ranks.story import KEPT, Story

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
    left = "; ".join(filter(None, [left_out(story), sampled * (story.stride > 1)]))
    shifts = {rank: story.clock(rank)[0] for rank in story.tracks}
    zero = min((track.joined + shifts[rank] for rank, track in story.tracks.items()), default=0.0)
    told = {"malt": facts, "left out": left or "nothing", "clocks may be off by, in seconds": facts["off"]}
    packing = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=5, mtime=0) if packed else None
    with packing or contextlib.nullcontext(file) as out:
        out.write(BEGIN + json.dumps(told).encode() + b', "traceEvents": [')
        for i, event in enumerate(_events(story, facts, shifts, zero)):
            out.write((b"\n" if i == 0 else b",\n") + json.dumps(event).encode())
        out.write(b"\n]}\n")
    return left


def left_out(story: Story) -> str:
    """Say of what the sums over a job know nothing; empty if they know all."""
    lost = sum(track.lost for track in story.tracks.values())
    words = []
    if lost:
        words.append(f"{lost} events that were overwritten before they were read: a larger --events avoids that")
    if story.unseen:
        words.append(f"all events of {name(story.unseen)}, which ended before they could be read")
    return "; ".join(words)


def _events(story: Story, facts: Facts, shifts: Mapping[int, float], zero: float) -> Iterator[dict[str, Any]]:
    hosts = list(dict.fromkeys(rank["host"] for rank in facts["ranks"]))
    places = {rank["rank"]: {"pid": hosts.index(rank["host"]), "tid": rank["rank"]} for rank in facts["ranks"]}

    def at(rank: int, when: float) -> dict[str, Any]:
        return {**places[rank], "ts": round((when + shifts[rank] - zero) * 1e6, 3)}

    for number, host in enumerate(hosts):
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": host}}
    for rank, place in places.items():
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": f"rank {rank}"}}
        yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": rank}}
    for rank, track in story.tracks.items():
        for when, text in track.marks:
            yield {"ph": "i", "s": "t", "name": text, "cat": "mark", **at(rank, when)}
        for when, dead, generation in track.deaths:
            view = {"generation": generation}
            yield {"ph": "i", "s": "p", "name": f"without {name(dead)}", "cat": "death", **at(rank, when), "args": view}
        for key, curve in track.logs.items():
            for when, value in curve:
                if math.isfinite(value):  # JSON has no other numbers
                    yield {"ph": "C", "name": f"{key} of rank {rank}", **at(rank, when), "args": {key: value}}
    for event in story.events:
        yield from _slices(event, at)
    yield from _arrows(story.events, at)


def _slices(event: seen.Event, at: Any) -> Iterator[dict[str, Any]]:
    """Yield what is drawn of an event; viewers colour a slice by its name."""
    kind, where, end = event.kind, at(event.rank, event.begin), at(event.rank, event.begin + event.seconds)
    bar = {"ph": "X", "cat": kind, **where, "dur": round(end["ts"] - where["ts"], 3)}
    if kind == "call":
        yield {**bar, "name": event.text, **({"args": {"failed": True}} if event.value else {})}
    elif kind == "wait":
        yield {**bar, "name": f"wait for {name(event.ranks)}"}
    elif kind == "fold":
        clock = event.update & (1 << 40) - 1
        yield {**bar, "name": "fold", "args": {"from": event.ranks, "clock": clock, "largest age": event.value}}
        yield {"ph": "C", "name": f"age at rank {event.rank}", **where, "args": {"updates": event.value}}
    elif kind == "send":
        yield {"ph": "C", "name": f"bytes from rank {event.rank}", **where, "args": {"bytes": event.value}}


def _arrows(events: Sequence[seen.Event], at: Any) -> Iterator[dict[str, Any]]:
    """Yield an arrow from each update to each fold that used it, up to as many as there may be events."""
    sent = {(event.rank, event.update): event for event in events if event.kind == "send"}
    count = 0
    for event in (event for event in events if event.kind == "fold"):
        for i, rank in enumerate(event.ranks):
            age = event.ages[i] if i < len(event.ages) else seen.NO_AGE if event.ages else 0
            update = sent.get((rank, event.update - age)) if age != seen.NO_AGE else None
            if update is None or count == KEPT:
                continue
            count += 1
            arrow = {"cat": "update", "name": "update", "id": count}
            yield {**arrow, "ph": "s", **at(rank, update.begin)}
            yield {**arrow, "ph": "f", "bp": "e", **at(event.rank, event.begin)}


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
    rows += _to_same_loss(a, b)
    yield from (*aligned(rows, left={0}), "")
    for run, facts in ("A", a), ("B", b):
        said = facts["verdict"] or ["nothing is known of its ranks."]
        yield f"{run}: {said[0 if facts['ends'] else -1]}"


def _to_same_loss(a: Facts, b: Facts) -> Iterator[tuple[str, str, str, str]]:
    """Yield rows on when both had reached the best loss that both have reached."""
    if not a["loss"] or not b["loss"]:
        return
    both = max(min(point[2] for point in facts["loss"]) for facts in (a, b))
    first = [next(point for point in facts["loss"] if point[2] <= both) for facts in (a, b)]
    unit = a["unit"] if a["unit"] == b["unit"] else "examples or syncs"
    yield _row(f"loss {both:.4g}, s", [point[0] for point in first])
    yield _row(f"… {unit}", [point[1] for point in first], ".6g")


def _row(label: str, values: Sequence[float], form: str = ".2f") -> tuple[str, str, str, str]:
    a, b = values
    return label, f"{a:{form}}", f"{b:{form}}", f"{b / a:.2f}" if a > 0 else ""
