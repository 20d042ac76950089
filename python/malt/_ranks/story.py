"""What the ranks of a job have done, from their events: sums over all of them, and the newest or a sample of them.

Whatever a job does, and for however long: a story takes a bounded amount of memory.
"""

from __future__ import annotations

import math
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import TypeVar

from malt._ranks import seen
from malt._ranks.launch import Job
from malt._ranks.rank import Rank

EVERY = 0.1
"""Seconds between two looks at the events of ranks."""

ROOM = 20_000
"""Events that a rank keeps for us, unless the user says how many."""

KEPT = 200_000
"""Events that are kept of a job. When there are more, some windows of time are kept whole."""

WINDOW = 0.1
"""Seconds of such a window."""

POINTS = 1000
"""Points that a curve keeps at least, if it got as many."""

CALLS = 5000
"""The last calls of a rank that are kept to tell which rank was late, at least."""

NAMES = 100
"""Names of logged values of a rank that have a curve."""

SHORT = 0.02
"""A part of a wait that is shorter, as a part of the whole, goes with the next."""

P = TypeVar("P")
Span = tuple[float, float]
Call = tuple[float, float, str]
"""Its end, its begin, and what it was about: an object, or the job."""


class Curve(list[P]):
    """Points, of which every second one is dropped when there are too many."""

    def __init__(self) -> None:
        super().__init__()
        self._stride = 1
        self._seen = 0

    def add(self, point: P) -> None:
        """Take the next point."""
        if self._seen % self._stride == 0:
            self.append(point)
            if len(self) == 2 * POINTS:
                self[:] = self[::2]
                self._stride *= 2
        self._seen += 1


class Track:
    """What one rank has done; times are by the clock of its machine.

    Parameters
    ----------
    joined : float
        When it joined the job, in time.monotonic().
    """

    def __init__(self, joined: float) -> None:
        self.joined = joined
        self.first = math.inf
        """The begin of its first event. All ranks have joined by then."""
        self.last = joined
        """The end of its last event."""
        self.called = 0.0
        """Seconds in calls, and in folds, which come after a call."""
        self.wait = 0.0
        self.waited: dict[int, float] = defaultdict(float)
        """Seconds for each rank: together they are `wait`."""
        self.calls: list[Call] = []
        """The last ones, in the order of their ends."""
        self.known = -math.inf
        """They are all since then."""
        self.unsettled: list[seen.Event] = []
        """Waits for several ranks, of which it is not known yet which one was late."""
        self.ages: Counter[int] = Counter()
        """Folded updates by age."""
        self.sent: Counter[int] = Counter()
        """Bytes by receiver."""
        self.syncs = 0
        self.logs: dict[str, Curve[tuple[float, float, float]]] = defaultdict(Curve)
        """By name: when, the number of examples, or where that is not logged of syncs, and the value."""
        self.nameless = 0
        """Values with other names: the loss and `NAMES` have a curve."""
        self.not_finite = 0
        """Losses that are NaN or infinity."""
        self.marks: Curve[tuple[float, str]] = Curve()
        self.deaths: list[tuple[float, list[int], float]] = []
        """When it heard of them; which ranks; the generation without them."""
        self.lost = 0
        """Events that were overwritten before they were read."""
        self._examples: float | None = None  # the last number that was logged

    def take(self, event: seen.Event) -> None:
        """Add an event to the sums."""
        end = event.begin + event.seconds
        self.first, self.last = min(self.first, event.begin), max(self.last, end)
        if event.kind == "call":
            self.called += event.seconds
            self.calls.append((end, event.begin, sys.intern(event.text.rpartition(".")[0])))
            if len(self.calls) > 2 * CALLS:
                self.known = self.calls[CALLS][0]
                del self.calls[: CALLS + 1]
        elif event.kind == "wait":
            self.wait += event.seconds
            for rank in event.ranks:
                self.waited[rank] += event.seconds / len(event.ranks)
        elif event.kind == "fold":
            self.called += event.seconds
            self.ages.update(event.ages or [0] * len(event.ranks))
        elif event.kind == "send":
            self.syncs += 1
            for rank in event.ranks:
                self.sent[rank] += int(event.value) // len(event.ranks)
        elif event.kind == "mark":
            self.marks.add((end, event.text))
        elif event.kind == "death":
            self.deaths.append((end, event.ranks, event.value))
        elif event.kind == "log":
            if event.text == "examples":
                self._examples = event.value
            if event.text == "loss" or event.text in self.logs or len(self.logs) < NAMES:
                used = self.syncs if self._examples is None else self._examples
                self.logs[event.text].add((end, used, event.value))
                self.not_finite += event.text == "loss" and not math.isfinite(event.value)
            else:
                self.nameless += 1


def parts(wait: seen.Event, calls: Mapping[int, Sequence[Span]]) -> Iterator[seen.Event]:
    """Yield the parts of a wait for several ranks: each for the ranks that were in no such call then, or else for all.

    `calls` has for each rank the begin and the end of its calls that were about the same.

    Examples
    --------
    >>> wait = seen.Event(0, 1, "wait", 10.0, 5.0, [1, 2], 0.0)
    >>> [(part.ranks, part.seconds) for part in parts(wait, {1: [(11.0, 15.0)], 2: [(14.0, 15.0)]})]
    [([1, 2], 1.0), ([2], 3.0), ([1, 2], 1.0)]
    """
    turns = [turn for rank in calls for begin, end in calls[rank] for turn in ((begin, True, rank), (end, False, rank))]
    late, at, until = set(wait.ranks), wait.begin, wait.begin + wait.seconds
    for when, inside, rank in [*sorted(turn for turn in turns if turn[0] < until), (until, False, -1)]:
        if when - at > (SHORT * wait.seconds if when < until else 0):
            yield wait._replace(begin=at, seconds=when - at, ranks=sorted(late) or wait.ranks)
            at = when
        (late.discard if inside else late.add)(rank)


def _since(calls: Sequence[Call], when: float) -> Iterator[Call]:
    """Yield the calls that ended then or later."""
    return map(calls.__getitem__, range(bisect_left(calls, when, key=itemgetter(0)), len(calls)))


class Story:
    """What the ranks of a job have done.

    Parameters
    ----------
    keep : bool
        Keep events of calls, waits, folds and updates, too, and not only the sums.
    """

    def __init__(self, keep: bool) -> None:
        self.begun = time.time()
        self._start = time.monotonic()
        self.tracks: dict[int, Track] = {}
        self.events: list[seen.Event] = []
        self.stride = 1
        """Of so many windows of time the events of one are kept."""
        self.clock: Callable[[int], tuple[float, float]] = lambda _: (0.0, 0.0)
        """By how much our clock is ahead of a rank's, and by how much this may be wrong."""
        self.unseen: list[int] = []
        """The ranks of which nothing could be read."""
        self._keep = keep

    def take(self, number: int, joined: float, records: bytes, lost: int) -> None:
        """Take events of a rank, as `seen.Ring.read` returns them."""
        track = self.tracks.setdefault(number, Track(joined))
        self._settle(track, last=False)
        events = list(seen.decoded(number, records))
        if lost:
            track.lost += lost
            track.known = events[0].begin + events[0].seconds if events else math.inf
        for event in events:
            if event.kind == "wait" and len(event.ranks) > 1:
                track.unsettled.append(event)
            else:
                self._add(track, event)

    def timeline(self) -> Callable[[int, float], float]:
        """Return what turns a time by a rank's clock into the seconds since the first rank had joined."""
        shifts = {rank: self.clock(rank)[0] for rank in self.tracks}
        zero = self._zero()
        return lambda rank, when: round(when + shifts[rank] - zero, 9)

    def setup(self) -> float:
        """Return the seconds from the start of the job until the first rank had joined."""
        return max(0.0, self._zero() - self._start)

    def _zero(self) -> float:
        joined = (track.joined + self.clock(rank)[0] for rank, track in self.tracks.items())
        return min(joined, default=self._start)

    def settle(self) -> None:
        """Settle which rank was late in each wait: no more events come."""
        for track in self.tracks.values():
            self._settle(track, last=True)

    def _settle(self, track: Track, last: bool) -> None:
        waits, track.unsettled = track.unsettled, []
        for wait in waits:
            calls = self._calls(wait, last)
            if calls is None and len(track.unsettled) < CALLS:
                track.unsettled.append(wait)
                continue
            for part in parts(wait, calls or {}):
                self._add(track, part)

    def _calls(self, wait: seen.Event, last: bool) -> dict[int, list[Span]] | None:
        """Return the calls of the ranks waited for that were about the same, by the waiter's clock; None: not yet.

        There are none where some are lost.
        """
        ours, found, when = self.clock(wait.rank)[0], {}, wait.begin + wait.seconds
        own = _since(self.tracks[wait.rank].calls, when)
        about = next((about for _, begin, about in own if begin <= wait.begin), None)
        if about is None:
            return {} if last else None
        for rank in wait.ranks:
            track, later = self.tracks.get(rank), self.clock(rank)[0] - ours
            if not last and (track is None or not track.calls or track.calls[-1][0] < when - later):
                return None
            if track is None or track.known > wait.begin - later:
                return {}
            calls = (call for call in _since(track.calls, wait.begin - later) if call[2] == about)
            spans = ((begin + later, end + later) for end, begin, _ in calls)
            found[rank] = list(takewhile(lambda span: span[0] < when, spans))
        return found

    def _add(self, track: Track, event: seen.Event) -> None:
        track.take(event)
        if self._keep and event.kind in ("call", "wait", "fold", "send") and self._in_window(event):
            self.events.append(event)
        while len(self.events) > KEPT:
            self.stride *= 2
            self.events = [event for event in self.events if self._in_window(event)]

    def _in_window(self, event: seen.Event) -> bool:
        # Spread by the golden ratio: whatever comes back in a step of the same length is in some of them.
        return int(event.begin / WINDOW) * 0x9E3779B1 % (1 << 32) * self.stride < 1 << 32


class Collector:
    """Reads the events of the ranks that this process has started, while they run.

    Parameters
    ----------
    job : Job
        Their job, before it waits for them.
    take : callable
        As `Story.take`.
    """

    def __init__(self, job: Job, take: Callable[[int, float, bytes, int], None]) -> None:
        self._take = take
        self._job = job
        self._rings: dict[int, seen.Ring] = {}
        self.unseen: list[int] = []
        """The ranks that had ended before we came."""
        job.recording = self._open

    def _open(self, rank: Rank) -> None:
        try:
            self._rings[rank.number] = seen.Ring(rank.records or 0)
        except (OSError, ValueError, KeyError):  # it has ended, or the number is not its own
            self.unseen.append(rank.number)

    def look(self) -> None:
        """Read what is new; of a rank that has ended, the rest."""
        for number, ring in list(self._rings.items()):
            records, lost = ring.read()
            if records or lost:
                self._take(number, ring.rank.joined, records, lost)
                self._job.poll()  # meanwhile others may have joined, which may end soon

    def close(self) -> None:
        """Read no more."""
        self._rings = {}
