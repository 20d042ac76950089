"""``malt run --report``: a job on one page of HTML, without links to anything outside it."""

from __future__ import annotations

import cmath
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import BinaryIO

from malt._cli.facts import Facts, described, smoothed
from malt._cli.supervise import name
from malt._cli.top import size
from malt._cli.trace import left_out
from malt._cli.verdict import PARTS, divided
from malt._cli.wrap import counted
from malt._ranks.rank import MADE
from malt._ranks.seen import NO_AGE
from malt._ranks.story import Story

SHOWN = 64
"""Ranks of which rows, columns and bars are drawn."""

BARS = 16
"""Most bars of ages."""

LABELLED = 16
"""Ranks up to which cells have numbers, and the graph is drawn."""

BEGIN = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="generator" content="malt">'
"""What a page begins with."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #667085; --line: #d5d9e0; --paper: #ffffff;
  --compute: #3f7fbf; --starved: #9a6fc0; --wait: #d9534f; --exchange: #e0a030; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #3a4252; --paper: #151a23; } }
* { box-sizing: border-box } body { margin: 0 auto; max-width: 1000px; padding: 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
.soft { color: var(--soft) } .verdict { font-size: 1.1rem } .wide { overflow-x: auto }
.row { display: flex; align-items: center; gap: .5rem; margin: 2px 0 } .row b { flex: 0 0 5rem; font-weight: normal }
.row i { flex: 0 0 4rem; font-style: normal; text-align: right } .bar { flex: 1; display: flex; height: 1.1rem }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .3em } .keys span { margin-right: 1em }
.compute { background: var(--compute) } .starved { background: var(--starved) } .wait { background: var(--wait) }
.exchange { background: var(--exchange) } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: 2px 6px; text-align: right; font-weight: normal; border: 1px solid var(--line); min-width: 1.2em }
th { color: var(--soft) } .facts td, .facts th { text-align: left; vertical-align: top }
.facts th { overflow-wrap: normal }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 1rem }
.wide td, .wide th, .keys span { white-space: nowrap }
.many td, .many th { padding: 0 1px; min-width: 0; font-size: 9px; line-height: 1.3 }
svg { width: 100%; max-width: 600px; height: auto; overflow: visible; color: var(--ink) }
svg text { fill: var(--soft); font-size: 13px }
@media (max-width: 600px) { svg text { font-size: 20px } }
"""


def write(file: BinaryIO, story: Story, facts: Facts, _: bool = False) -> str:
    """Write the page."""
    left = left_out(story)
    file.write(page(facts, left).encode())
    return left


def page(facts: Facts, left: str = "") -> str:
    """Return the page; `left` says what is missing in its sums."""
    ranks = sorted(facts["ranks"], key=lambda rank: -sum(rank["sent"].values()) - rank["seconds"])[:SHOWN]
    ranks.sort(key=lambda rank: rank["rank"])
    command, count = escape(facts["command"]), len(facts["ranks"])
    named = f'<title>{command}</title><meta name="viewport" content="width=device-width">'
    head = f"<h1>{command}</h1><p class=soft>{described(facts)}, started {facts['started']}</p>"
    verdict = " ".join(facts["verdict"]) or "The ranks have reported nothing: did they use MALT?"
    known = f"<p class=soft>Bytes, waits, ages and losses are without {escape(left)}.</p>" if left else ""
    rest = f"<p class=soft>{count - SHOWN} ranks that did less are left out below.</p>" if count > SHOWN else ""
    sections = (
        ("Time of each rank", "", _bars(ranks)),
        (
            "Waits of each rank for others, in seconds",
            "A wait for several ranks counts for the ranks that had not come to a call on that vector, or of the job, "
            f"by then. It is divided evenly while all were in one{', and where their events are lost' * bool(left)}.",
            _matrix(ranks, "waited", "wait", lambda v: f"{v:.2f}"),
        ),
        ("Bytes from rank to rank", "", _graph(ranks) + _matrix(ranks, "sent", "compute", size)),
        (
            "Age of the updates that were folded, in clocks",
            "The number of syncs of the rank that folded minus that of the update. Below 0: its sender was ahead.",
            _ages(ranks),
        ),
        ("Loss", "", _losses(facts)),
        ("Deaths and repairs", "", _deaths(facts["ends"])),
        ("Vectors", "", _vectors(facts["vectors"])),
        ("Settings and machine", "", _settings(facts)),
    )
    body = f"{head}<p class=verdict>{escape(verdict)}</p>{known}{rest}" + "".join(
        f"<h2>{title}</h2>{caption and f'<p class=soft>{caption}</p>'}{drawn}"
        for title, caption, drawn in sections
        if drawn
    )
    return f"{BEGIN}{named}<style>{STYLE}</style><body>{body}</body></html>\n"


def _bars(ranks: Sequence[Facts]) -> str:
    longest = max((rank["seconds"] for rank in ranks), default=0.0)
    if not longest:
        return ""
    keys = " ".join(f"<span><i class='key {kind}'></i>{words}</span>" for kind, words in PARTS.items())
    rows = [
        _bar(
            f"rank {rank['rank']}",
            [(kind, took / longest, f"{PARTS[kind]}: {took:.2f} s") for kind, took in divided(rank).items()],
            f"{rank['seconds']:.2f} s",
        )
        for rank in ranks
    ]
    return f"<p class='soft keys'>{keys}</p>{''.join(rows)}"


def _bar(label: str, pieces: Iterable[tuple[str, float, str]], figure: str) -> str:
    """Return a row: pieces have a colour, the part of the row's length, and what they are."""
    bar = "".join(
        f"<span class={kind} style='width:{part:.2%}' title='{words}'></span>" for kind, part, words in pieces
    )
    return f"<div class=row><b>{label}</b><div class=bar>{bar}</div><i>{figure}</i></div>"


def _table(rows: Iterable[tuple[str, Iterable[str]]], head: Iterable[str] = (), kind: str = "") -> str:
    """Return a table of rows, which have a title and cells: what is between the tags, with attributes."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = "".join(
        f"<tr><th>{escape(title)}</th>{''.join(f'<td{cell}</td>' for cell in cells)}</tr>" for title, cells in rows
    )
    return f"<table class='{kind}'>{titles and f'<tr>{titles}</tr>'}{lines}</table>"


def _matrix(ranks: Sequence[Facts], field: str, colour: str, shown: Callable[[float], str]) -> str:
    """Return a table: from the rank of a row, to that of a column."""
    values = {rank["rank"]: rank[field] for rank in ranks}
    most = max((value for row in values.values() for value in row.values()), default=0)
    if not most:
        return ""

    def cell(number: int, other: int) -> str:
        value = values[number].get(other, 0)
        tint = f"color-mix(in srgb, var(--{colour}) {60 * value / most:.0f}%, transparent)"
        text = shown(value) if value and len(values) <= LABELLED else ""
        return f" style='background:{tint}' title='{number} → {other}: {shown(value)}'>{text}"

    rows = ((f"rank {number}", [cell(number, other) for other in values]) for number in values)
    return f"<div class=wide>{_table(rows, ['', *map(str, values)], 'many' * (len(values) > LABELLED))}</div>"


def _graph(ranks: Sequence[Facts]) -> str:
    """Draw the ranks in a circle, with a line to each receiver: its width is the bytes. Many lines are thinner."""
    most = max((count for rank in ranks for count in rank["sent"].values()), default=0)
    if not most or not 1 < len(ranks) <= LABELLED:
        return ""
    turns = {rank["rank"]: cmath.exp(2j * math.pi * i / len(ranks)) for i, rank in enumerate(ranks)}
    at = {number: 300 + 130j - 105j * turn for number, turn in turns.items()}
    thin = min(1, 24 / sum(len(rank["sent"]) for rank in ranks))
    lines = []
    for rank in ranks:
        for other in sorted(at.keys() & rank["sent"]):
            count, begin, end = rank["sent"][other], at[rank["rank"]], at[other]
            way = end - begin
            # It bends to its right, so that both directions are seen, and ends beside the circle of a rank.
            bend, near = (begin + end) / 2 + way * 0.125j, end - 16 * way / abs(way)
            width = thin * (0.5 + 3 * count / most)
            lines.append(
                f"<path d='M{_at(begin)} Q{_at(bend)} {_at(near)}' stroke-width='{width:.2f}' "
                f"marker-end='url(#tip)'><title>{rank['rank']} → {other}: {size(count)}</title></path>"
            )
    nodes = [
        f"<g transform='translate({_at(place)})'><circle r='12' fill='var(--paper)' stroke='currentColor'/>"
        f"<text y='4.5' text-anchor='middle'>{number}</text></g>"
        for number, place in at.items()
    ]
    wide = f"{2 + 6 * thin:.1f}"
    tip = f"viewBox='0 0 6 6' refX='5' refY='3' markerWidth='{wide}' markerHeight='{wide}' markerUnits='userSpaceOnUse'"
    return (
        "<svg viewBox='0 0 600 260' role='img' aria-label='Bytes on the graph'><defs>"
        f"<marker id='tip' orient='auto' {tip}><path d='M0 0L6 3L0 6z' fill='var(--compute)'/></marker></defs>"
        f"<g fill='none' stroke='var(--compute)'>{''.join(lines)}</g>{''.join(nodes)}</svg>"
    )


def _at(place: complex) -> str:
    return f"{place.real:.1f},{place.imag:.1f}"


def _ages(ranks: Sequence[Facts]) -> str:
    ages = sum((Counter(rank["ages"]) for rank in ranks), Counter[int]())
    if not ages:
        return ""
    far = ages.pop(NO_AGE, 0)
    low, high = min(ages, default=0), max(ages, default=-1)
    wide = max(1, math.ceil((high - low + 1) / BARS))
    counts = [sum(ages[age] for age in range(first, first + wide)) for first in range(low, high + 1, wide)]
    labels = [f"{first}" + (f" to {first + wide - 1}" if wide > 1 else "") for first in range(low, high + 1, wide)]
    if far:
        labels, counts = [*labels, "beyond ±127"], [*counts, far]
    most = max(counts)
    return "".join(
        _bar(label, [("compute", count / most, f"{count:,} updates")], f"{count:,}")
        for label, count in zip(labels, counts, strict=True)
    )


def _losses(facts: Facts) -> str:
    odd = [f"{rank['not_finite']:,} of rank {rank['rank']}" for rank in facts["ranks"] if rank["not_finite"]]
    left = f"<p class=soft>Not drawn, since they are NaN or infinity: {', '.join(odd)}.</p>" if odd else ""
    if len(facts["loss"]) < 2:
        return left
    points = smoothed(facts, len(facts["ranks"]))
    marks = {text: when for when, _, text in reversed(facts["marks"])}
    ends = [end for end in facts["ends"] if end["lived"] is not None]
    marks |= {f"rank {end['rank']} {end['fate']}": end["lived"] - facts["setup"] for end in ends}
    time = _curve([(when, loss) for when, _, loss in points], "seconds", marks)
    over = _curve([(examples, loss) for _, examples, loss in points], f"{facts['unit']} of all ranks", {})
    return f"{left}<div class=pair>{time}{over}</div>"


def _curve(points: Sequence[tuple[float, float]], unit: str, marks: dict[str, float]) -> str:
    xs, ys = map(_ticks, zip(*points, strict=True))

    def place(x: float, y: float) -> complex:
        return complex(60 + 520 * (x - xs[0]) / (xs[-1] - xs[0]), 200 - 185 * (y - ys[0]) / (ys[-1] - ys[0]))

    drawn = []
    for tick in ys:
        y = place(xs[0], tick).imag
        drawn.append(f"<path d='M60 {y:.1f}H580' stroke='var(--line)'/>")
        drawn.append(f"<text x='54' y='{y + 4:.1f}' text-anchor='end'>{tick:.4g}</text>")
    drawn += [f"<text x='{place(tick, ys[0]).real:.1f}' y='222' text-anchor='middle'>{tick:.6g}</text>" for tick in xs]
    for text, when in list(marks.items())[-20:]:
        if xs[0] <= when <= xs[-1]:
            x = place(when, ys[0]).real
            drawn.append(f"<path d='M{x:.1f} 15V200' stroke='var(--exchange)'><title>{escape(text)}</title></path>")
    return (
        f"<svg viewBox='0 0 600 248' role='img' aria-label='Loss over {unit}'>{''.join(drawn)}"
        f"<polyline points='{' '.join(_at(place(*point)) for point in points)}' fill='none' stroke='var(--compute)' "
        f"stroke-width='2'/><text x='320' y='243' text-anchor='middle'>{unit}</text></svg>"
    )


def _ticks(values: Sequence[float]) -> list[float]:
    """Return four to eight round numbers around some values.

    Examples
    --------
    >>> _ticks([0.3, 2.1])
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    """
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    raw = max(1e-300, (high - low if high - low > 1e-9 * size else size or 1.0) / 4)  # no finer than a float
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * f for f in (1, 2, 5, 10) if unit * f >= raw * 0.99)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    return [i * step for i in range(first, last + 1)]


def _deaths(ends: Sequence[Facts]) -> str:
    lines = []
    for end in ends:
        line = f"{name([end['rank']])} {end['fate']}"
        if end["lived"] is not None:
            words = ", ".join(f"rank {who} went on {took:.3f} s later" for who, took in end["went_on"])
            line += f" {end['lived']:.2f} s after the start{': ' if words else ''}{words}"
        if end["replaced"]:
            line += "; a new process took its place"
        lines.append(f"<li>{escape(line)}</li>")
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _vectors(made: Mapping[str, Mapping[str, str]]) -> str:
    shown = {called: {**vector, "bytes": size(float(vector["bytes"]))} for called, vector in made.items()}
    columns = list(dict.fromkeys(key for vector in shown.values() for key in vector))
    rows = ((called, [f">{escape(vector.get(key, ''))}" for key in columns]) for called, vector in shown.items())
    more = f"<p class=soft>The first {MADE}; further ones are left out.</p>" if len(made) == MADE else ""
    return f"<div class=wide>{_table(rows, ['name', *columns], 'facts')}</div>{more}" if made else ""


def _settings(facts: Facts) -> str:
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank in facts["ranks"]:
        cores = f" ({counted(rank['cores'], 'core')})" if rank["cores"] else ""
        ranks[rank["host"] + cores].append(rank["rank"])
    rows = {
        "command": facts["command"],
        "ranks": str(len(facts["ranks"])),
        "hosts": "; ".join(f"{host}: {name(numbers)}" for host, numbers in ranks.items()),
        "machine of malt run": facts["machine"],
    }
    if facts["off"]:
        rows["clocks"] = f"of the hosts, may be off by {facts['off'] * 1000:.3g} ms"
    rows |= facts["settings"]
    return _table(((key, [f">{escape(value)}"]) for key, value in rows.items()), kind="facts")
