"""Whether several ranks have paid, where the rest of their time went, and what would help most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from malt._cli.supervise import name
from malt._cli.wrap import counted, span
from malt._ranks.rank import Outcome, first_failure, successors
from malt._ranks.story import Story, Track

WORTH = 0.03
"""The part of a job's time from which a change is worth a sentence."""

SHORTEST = 0.1
"""Seconds from which the time of a job tells something."""

QUICK = 0.001
"""Seconds that a rank waits for a sync up to which rarer ones help, and not that ranks run ahead of slow steps."""

UNEVEN = 0.75
"""Which part of their time all steps take at most at the pace of the quickest rank, where that is worth a word."""

STEPS = 10
"""Syncs of a rank from which its steps have a pace."""

RARER = 4
"""Each so many syncs there would be one, in the figure for rarer syncs."""

PARTS = {
    "compute": "computing",
    "starved": "without a free core",
    "wait": "waiting for others",
    "exchange": "exchange of updates",
}
"""Where the time of a rank went."""

Spent = dict[str, Any]
"""What is known of a rank, between its joining and its end: docs/api/json.md has what is in it."""

Ranks = Sequence[tuple[Outcome, Spent]]
"""The ranks of which something is known, with what has become of them."""


def spent(outcomes: Sequence[Outcome], story: Story | None) -> list[Spent]:
    """Return where the time of each rank went, as far as that is known."""
    if story is not None:
        story.settle()
    tracks = story.tracks if story is not None else {}
    ranks = [_spent(one, tracks.get(one.number)) for one in lives(outcomes)]
    hosts = defaultdict(list)
    for one, rank in zip(lives(outcomes), ranks, strict=True):
        hosts[one.host].append((one, rank))
    for near in hosts.values():
        _crowded(near)
    return ranks


def _crowded(near: Ranks) -> None:
    """Note which part of the waits of ranks of one host fell into time in which none of its cores was free.

    With so many more ranks than cores a rank that waits for others waits for a core.
    """
    cores, seconds = near[0][0].cores, max(rank["seconds"] for _, rank in near)
    if not cores or len(near) <= cores or not seconds:
        return
    busy = sum((one.summary or {}).get("busy", 0.0) for one, _ in near)
    full = min(1.0, max(0.0, busy / seconds - (cores - 1)))  # at least: as if never two were free at once
    for _, rank in near:
        rank["crowded"] = full * rank["wait"]


def divided(rank: Spent) -> dict[str, float]:
    """Return the seconds of a rank by kind."""
    crowded = rank["crowded"]
    return {
        **{kind: rank[kind] for kind in PARTS},
        "starved": rank["starved"] + crowded,
        "wait": rank["wait"] - crowded,
    }


def _spent(one: Outcome, track: Track | None) -> Spent:
    """Return the same of a rank; no seconds if neither it nor its events tell."""
    told, did = one.summary or {}, track or Track(0.0)
    seconds = told["wall"] - told["setup"] if told else 0.0
    if told and (track is None or track.lost):
        wait, waited = told["wait"], {int(other): share for other, share in told["waited"].items()}
        called, syncs = wait + told["scatter"] + told["fold"] + told["collective"], int(told["syncs"])
    else:
        seconds = max(did.last - did.first, seconds)
        called, wait, waited, syncs = did.called, did.wait, dict(did.waited), did.syncs
    free = max(0.0, seconds - called)
    starved = 0.0
    if told and seconds > 0:  # as everywhere in its time, or more, if it had no processor for so long
        starved = min(free, max(told["starved"] / seconds * free, min(told["starved"], free - told["busy"])))
    return {
        "rank": one.number,
        "seconds": seconds,
        "compute": free - starved,
        "starved": starved,
        "wait": wait,
        "crowded": 0.0,
        "exchange": max(0.0, called - wait),
        "waited": waited,
        "host": one.host,
        "cores": one.cores,
        "sent": dict(sorted(did.sent.items())),
        "ages": dict(sorted(did.ages.items())),
        "syncs": syncs,
        "lost": did.lost,
        "not_finite": did.not_finite,
    }


def lives(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the last process of each rank."""
    return [one for one in outcomes if one.witness is None and not one.late and not successors(one, outcomes)]


def verdict(outcomes: Sequence[Outcome], ranks: Sequence[Spent]) -> list[str]:
    """Return what is said of a job: which ranks died, and whether its ranks paid, if that is known; `ranks` as `spent`.

    Beyond three sentences it does not say where the time went: the table and the report show that.
    """
    ends, ended = list(_ends(outcomes)), first_failure(outcomes) is not None
    known = [(one, rank) for one, rank in zip(lives(outcomes), ranks, strict=True) if rank["seconds"] > 0]
    words = sentences(known, ended, _crowd(outcomes)) if known else []
    return ends + (words if len(ends) + len(words) <= 3 else words[:1] + words[2:])


def _crowd(outcomes: Sequence[Outcome]) -> str:
    """Return how many ranks shared how few cores, on the hosts with the most for each; empty if there were enough."""
    ranks = Counter((one.host, one.cores) for one in lives(outcomes) if one.cores)
    found = ((count, cores) for (_, cores), count in ranks.items())
    count, cores = max(found, key=lambda one: one[0] / one[1], default=(0, 0))
    if count <= cores:
        return ""
    hosts = [host for (host, there), several in ranks.items() if (several, there) == (count, cores)]
    where = f" of host {hosts[0]}" if len(hosts) == 1 else f" of each of {len(hosts)} hosts"
    return f"{counted(count, 'rank')} on {counted(cores, 'core')}{where * (len(ranks) > 1)}"


def _ends(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield which ranks died, and which one ended the job."""
    gone = [one for one in outcomes if one.died is not None or (one.vanished and one.failed is None)]
    dead = [one for one in gone if one.witness is None and not one.late]
    failed = first_failure(outcomes)
    if dead:
        how = f"{dead[0].fate()} {dead[0].lived:.1f} s after the start" if len(dead) == 1 else "died"
        again = {one.number for one in dead if successors(one, outcomes)}
        after = f", and a new process took the place of {name(again)}" if again else ""
        others = any(one not in gone and one is not failed for one in lives(outcomes))
        yield f"{name({one.number for one in dead}).capitalize()} {how}{'; the others went on' * others}{after}."
    if failed is not None and failed.asked:
        yield "The job was ended from outside, by Ctrl-C or a signal."
    elif failed is not None:
        yield f"{name([failed.number]).capitalize()} {failed.fate()}, which ended the job."
        joined = any((one.summary or {}).get("setup") for one in outcomes)
        if failed.killed and joined and not any(one.least for one in outcomes):
            near = len({one.host for one in outcomes}) == 1
            replaced = ", and with replace a new process takes its place" * near
            yield f"With --on-death continue the other ranks go on{replaced}."


def shares(ranks: Ranks) -> dict[str, float]:
    """Return by kind which part of the time of all ranks it took."""
    seconds = [rank["seconds"] for _, rank in ranks]
    total = len(ranks) * max(seconds)
    parts = {kind: sum(divided(rank)[kind] for _, rank in ranks) / total for kind in PARTS}
    return {**parts, "ended": 1 - sum(seconds) / total}


def sentences(ranks: Ranks, ended: bool = False, crowd: str = "") -> list[str]:
    """Return the verdict in two sentences; what was said of a long wait; which change helps. Of one rank one sentence.

    Of a job that a failure has ``ended`` no change is named. If it mostly waited, that wait is all that counts.
    """
    count, seconds, parts = len(ranks), max(rank["seconds"] for _, rank in ranks), shares(ranks)
    if seconds < SHORTEST:
        return [f"{counted(count, 'rank')} took {span(seconds)}, too little to tell."]
    speed = count * parts.pop("compute")
    alone = span(speed * seconds)  # if the steps are as fast as here
    times = _times(speed)
    fast = f"{times} times as fast, of at most {count}"
    if times == "1":
        fast = f"about as fast (at most: {count} times)"
    pace = _pace(ranks)
    if pace is not None and pace[0] < UNEVEN * speed * seconds:  # because of its core, or of what it has to do
        alone += f", or in {span(pace[0])} at the pace of {name([pace[1]])}"
        fast = f"{times} or {_times(pace[0] / seconds)} times as fast, of at most {count}"
    first = (
        f"{count} ranks took {span(seconds)} for steps that one rank alone would compute in "
        f"{alone}: {fast}, if they learn as much from each example (see malt explain trace)."
    )
    kinds = {**PARTS, "ended": "ranks that ended before the others"}
    kinds["wait"] += _blame(ranks)
    kinds["starved"] += crowd and f" ({crowd})"
    lost = sorted((part, kind) for kind, part in parts.items() if part >= WORTH / 3)
    words = ", ".join(f"{part:.0%} {kinds[kind]}" for part, kind in lost[::-1])
    if count == 1:
        return [f"One rank took {span(seconds)}, of which it computed {alone}{words and f' (the rest: {words})'}."]
    rest = 1 - min(1.0, speed / count)
    second = f"The other {rest:.0%} of their time: {words}." if words else "They lost almost no time."
    second += _behind(ranks)
    took, said, rank = max((*(one.summary or {}).get("longest", (0.0, "")), one.number) for one, _ in ranks)
    long = [f"For {span(took)}, {name([rank])} {said}"] if said else []
    if ended and said and took > seconds / 2:
        return long
    saves, change = max(_changes(ranks))
    advice = f"The best single change is to {change}: it would save up to {span(saves)} of {span(seconds)}."
    if saves < WORTH * seconds:
        advice = f"No single change would save more than {span(saves)} of {span(seconds)}."
    # That wait is the cause of what another change would save.
    return [first, second, *([advice] if not ended and not (said and took > saves / 2) else []), *long]


def _times(speed: float) -> str:
    return f"{speed:.0f}" if speed >= 99.5 else f"{speed:.2g}"


def _pace(ranks: Ranks) -> tuple[float, int] | None:
    """Return what all steps would take at the pace of the rank with the quickest ones, and that; None: not known."""
    if any(rank["syncs"] < STEPS for _, rank in ranks):
        return None
    pace, quickest = min((rank["compute"] / rank["syncs"], one.number) for one, rank in ranks)
    return pace * sum(rank["syncs"] for _, rank in ranks), quickest


def _behind(ranks: Ranks) -> str:
    """Return which rank nobody waits for, in async, though it syncs far less often."""
    paces = sorted((rank["syncs"] / rank["seconds"], one.number) for one, rank in ranks if rank["syncs"])
    if not paces or paces[0][0] * 2 > paces[-1][0]:
        return ""
    (least, slow), (most, fast) = paces[0], paces[-1]
    made = [vector for one, _ in ranks if one.number == slow for vector in one.made.values()]
    if all(vector.get("consistency") != "async" for vector in made):
        return ""
    others = f"{name([fast])} {most:.3g}"
    return f" {name([slow]).capitalize()} synced {least:.3g} times a second, and {others}: its values are old."


def _blame(ranks: Ranks) -> str:
    """Return which rank was waited for longest."""
    waited: Counter[int] = Counter()
    for _, rank in ranks:
        waited.update(rank["waited"])
    total = sum(rank["wait"] for _, rank in ranks)
    if not waited or not total:
        return ""
    blamed = max(waited, key=waited.__getitem__)
    return f" ({min(1.0, waited[blamed] / total):.0%} of that for {name([blamed])})"


def _changes(ranks: Ranks) -> Iterator[tuple[float, str]]:
    """Yield how many seconds of the job it would save to do what; ranks that were killed or stopped tell less."""
    ranks = [(one, rank) for one, rank in ranks if not one.status] or ranks
    count = len(ranks)
    busy = {rank["rank"]: rank["seconds"] - divided(rank)["wait"] for _, rank in ranks}
    mean, most = sum(busy.values()) / count, max(busy.values())
    slow = [number for number, seconds in busy.items() if seconds >= (mean + most) / 2]
    yield most - mean, f"give {name(slow)} less work"
    starved = sum(divided(rank)["starved"] for _, rank in ranks) / count
    # All ranks wait at times: another one is slow in each step, and not for the lack of a core.
    ahead = min(_waits(one, rank)[0] for one, rank in ranks) - starved
    modes = {vector.get("consistency", "").partition(":")[0] for one, _ in ranks for vector in one.made.values()}
    if not modes or modes - {"ssp", "async"}:
        yield ahead, 'let ranks run ahead of slow steps, with consistency="ssp:2"'
    elif "ssp" in modes:
        yield ahead, 'let ranks run further ahead of slow steps, with a larger slack or consistency="async"'
    exchange = sum(rank["exchange"] + _waits(one, rank)[1] for one, rank in ranks) / count
    yield exchange * (1 - 1 / RARER), f"sync {RARER} times as seldom (every=)"
    yield starved, "give each rank a core of its own"


def _waits(one: Outcome, rank: Spent) -> tuple[float, float]:
    """Return how long a rank waited in its syncs for slow steps, and for the exchange."""
    waits = rank["wait"] - (one.summary or {}).get("meeting", 0.0)
    return (0.0, max(0.0, waits - rank["crowded"])) if waits <= QUICK * rank["syncs"] else (waits, 0.0)
