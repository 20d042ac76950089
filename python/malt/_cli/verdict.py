"""Whether several ranks have paid, where the rest of their time went, and what would help most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from malt._cli.supervise import name
from malt._cli.wrap import counted, span
from malt._ranks.rank import Outcome, first_failure, successors
from malt._ranks.story import Story, Track

WORTH = 0.03
"""The part of a job's time from which a change is worth a sentence."""

RARER = 4
"""Each so many syncs there would be one, in the figure for rarer syncs."""

PARTS = {
    "compute": "computing",
    "starved": "without a free core",
    "wait": "waiting for others",
    "exchange": "exchange of updates",
}
"""Where the time of a rank went."""


class Split(NamedTuple):
    """The seconds of one rank between its joining and its end."""

    rank: int
    waited: dict[int, float]
    """Of the waiting, the share of each rank."""
    seconds: float = 0.0
    compute: float = 0.0
    """In the user's own code, on a core."""
    starved: float = 0.0
    """The same, but ready to run, without a core: the part of it that this is of all its time."""
    wait: float = 0.0
    """For other ranks, in any call."""
    exchange: float = 0.0
    """In calls, without waits."""
    meeting: float = 0.0
    """Of the waiting, that in collective calls: known of ranks that came to their end."""
    longest: tuple[float, str] = (0.0, "")
    """The seconds of the longest wait of which the user was told, and what was said of it."""
    whole: bool = True
    """It was not killed, nor stopped."""


class Change(NamedTuple):
    """Something that the user could change."""

    kind: str
    saves: float
    """Seconds of the job."""
    rank: int = -1


class Verdict(NamedTuple):
    """What was measured of a job."""

    ranks: int
    seconds: float
    alone: float
    """Seconds that one rank would have computed for the steps of all, if they are as fast as here."""
    lost: dict[str, float]
    """By kind, which part of the time of all ranks it took."""
    blamed: int
    """The rank that was waited for longest."""
    blame: float
    """By how much of the waiting."""
    change: Change
    """The one that would help most."""
    longest: tuple[float, int, str]
    """Seconds, rank, and words of the longest wait of which the user was told."""


def split(outcome: Outcome, track: Track | None) -> Split | None:
    """Return where the time of a rank went; None if neither it nor its events tell."""
    told = outcome.summary or {}
    seconds = told["wall"] - told["setup"] if told else 0.0
    lacking = min(1.0, told["starved"] / seconds) if seconds > 0 else 0.0
    if track is not None and not (track.lost and told):
        seconds = max(track.last - track.first, seconds)
        called, wait, waited = track.called, track.wait, dict(track.waited)
    elif told:
        wait, waited = told["wait"], {int(other): share for other, share in told["waited"].items()}
        called = wait + told["scatter"] + told["fold"] + told["collective"]
    else:
        return None
    free = max(0.0, seconds - called)
    return Split(
        rank=outcome.number,
        waited=waited,
        seconds=seconds,
        compute=free * (1 - lacking),
        starved=free * lacking,
        wait=wait,
        exchange=max(0.0, called - wait),
        meeting=told.get("meeting", 0.0),
        longest=told.get("longest", (0.0, "")),
        whole=not outcome.status,
    )


def lives(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the last process of each rank."""
    return [one for one in outcomes if one.witness is None and not successors(one, outcomes)]


def splits(outcomes: Sequence[Outcome], story: Story | None) -> list[Split]:
    """Return where the time of the ranks went, as far as that is known."""
    if story is not None:
        story.settle()
    tracks = story.tracks if story is not None else {}
    found = (split(one, tracks.get(one.number)) for one in lives(outcomes))
    return [part for part in found if part is not None and part.seconds > 0]


def verdict(ranks: Sequence[Split]) -> Verdict | None:
    """Judge a job; None where nothing is known of it."""
    if not ranks:
        return None
    count, seconds = len(ranks), max(rank.seconds for rank in ranks)
    spent = {kind: sum(getattr(rank, kind) for rank in ranks) for kind in PARTS}
    spent["ended"] = sum(seconds - rank.seconds for rank in ranks)
    alone = spent.pop("compute")
    blames: dict[int, float] = {}
    for rank in ranks:
        for other, waited in rank.waited.items():
            blames[other] = blames.get(other, 0.0) + waited
    blamed = max(blames, key=lambda rank: blames[rank], default=-1)
    return Verdict(
        ranks=count,
        seconds=seconds,
        alone=alone,
        lost={kind: value / (count * seconds) for kind, value in spent.items()},
        blamed=blamed,
        blame=min(1.0, blames[blamed] / spent["wait"]) if blames and spent["wait"] else 0.0,
        change=max(_changes(ranks), key=lambda change: change.saves),
        longest=max((rank.longest[0], rank.rank, rank.longest[1]) for rank in ranks),
    )


def _changes(ranks: Sequence[Split]) -> Iterator[Change]:
    ranks = [rank for rank in ranks if rank.whole] or ranks
    count = len(ranks)
    busy = {rank.rank: rank.compute + rank.starved + rank.exchange for rank in ranks}
    slowest = max(busy, key=lambda rank: busy[rank])
    yield Change("less", busy[slowest] - sum(busy.values()) / count, slowest)
    starved = sum(rank.starved for rank in ranks) / count
    # All ranks wait at times: another one is slow in each step, and not for the lack of a core.
    yield Change("ahead", min(rank.wait - rank.meeting for rank in ranks) - starved)
    yield Change("rarer", sum(rank.exchange for rank in ranks) / count * (1 - 1 / RARER))
    yield Change("cores", starved)


def told(outcomes: Sequence[Outcome], found: Verdict | None) -> list[str]:
    """Return what is said of a job: which ranks died, and the verdict on it, if there is one.

    Beyond three sentences it does not say where the time went: the table and the report show that.
    """
    ends, ended = list(_ends(outcomes)), first_failure(outcomes) is not None
    words = sentences(found, ended, _crowd(outcomes)) if found is not None else []
    return ends + (words if len(ends) + len(words) <= 3 else words[:1] + words[2:])


def _crowd(outcomes: Sequence[Outcome]) -> str:
    """Return how many ranks shared how few cores, on the hosts with the most for each; empty if there were enough."""
    ranks = Counter((one.host, one.cores) for one in lives(outcomes) if one.cores)
    crowded: dict[tuple[int, int], list[str]] = defaultdict(list)
    for (host, cores), count in ranks.items():
        if count > cores:
            crowded[count, cores].append(host)
    if not crowded:
        return ""
    (count, cores), hosts = max(crowded.items(), key=lambda found: found[0][0] / found[0][1])
    where = f" of host {hosts[0]}" if len(hosts) == 1 else f" of each of {len(hosts)} hosts"
    return f"{counted(count, 'rank')} on {counted(cores, 'core')}{where * (len(ranks) > 1)}"


def _ends(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield which ranks died, and which one ended the job."""
    dead = [one for one in outcomes if one.died is not None and one.witness is None]
    if dead:
        how = f"{dead[0].fate()} {dead[0].lived:.1f} s after the start" if len(dead) == 1 else "died"
        again = {one.number for one in dead if successors(one, outcomes)}
        after = f", and a new process took the place of {name(again)}" if again else ""
        yield f"{name({one.number for one in dead}).capitalize()} {how}; the others went on{after}."
    failed = first_failure(outcomes)
    if failed is not None:
        yield f"{name([failed.number]).capitalize()} {failed.fate()}, which ended the job."
        if failed.killed and not any(one.least for one in outcomes):
            yield "With --on-death continue the other ranks go on, and with replace a new process takes its place."


def sentences(found: Verdict, ended: bool = False, crowd: str = "") -> list[str]:
    """Return the verdict in two sentences; what was said of a long wait; which change helps. Of one rank one sentence.

    Of a job that a failure has ``ended`` no change is named. If it mostly waited, that wait is all that counts.
    """
    speed = found.alone / found.seconds
    if found.ranks == 1:
        return [f"One rank took {span(found.seconds)}, of which it computed {span(found.alone)}."]
    times = f"{speed:.0f}" if speed >= 99.5 else f"{speed:.2g}"
    fast = f"{times} times as fast, of at most {found.ranks}"
    if times == "1":
        fast = f"about as fast (at most: {found.ranks} times)"
    first = (
        f"{found.ranks} ranks took {span(found.seconds)} for steps that one rank alone would compute in "
        f"{span(found.alone)}: {fast}, if they learn as much from each example (see malt explain trace)."
    )
    lost = [(part, kind) for kind, part in found.lost.items() if part >= WORTH / 3]
    words = [f"{part:.0%} {_lost(kind, found, crowd)}" for part, kind in sorted(lost)[::-1]]
    rest = 1 - min(1.0, speed / found.ranks)
    second = f"The other {rest:.0%} of their time: {', '.join(words)}." if words else "They lost almost no time."
    took, rank, said = found.longest
    long = [f"For {span(took)}, {name([rank])} {said}"] if said else []
    if ended and said and took > found.seconds / 2:
        return long
    # That wait is the cause of what another change would save.
    advise = not ended and not (said and took > found.change.saves / 2)
    return [first, second, *([_advice(found)] if advise else []), *long]


def _lost(kind: str, found: Verdict, crowd: str) -> str:
    if kind == "ended":
        return "ranks that ended before the others"
    if kind == "wait" and found.blamed >= 0:
        return f"{PARTS[kind]} ({found.blame:.0%} of that for {name([found.blamed])})"
    return PARTS[kind] + (f" ({crowd})" if kind == "starved" and crowd else "")


def _advice(found: Verdict) -> str:
    kind, saves, rank = found.change
    if saves < WORTH * found.seconds:
        return f"No single change would save more than {span(saves)} of {span(found.seconds)}."
    what = {
        "less": f"give {name([rank])} less work, as malt.deal does",
        "ahead": 'let ranks run ahead of slow steps, with consistency="ssp:2"',
        "rarer": f"sync only in every {RARER}th step",
        "cores": "give each rank a core of its own",
    }[kind]
    return f"The best single change is to {what}: it would save about {span(saves)} of {span(found.seconds)}."
