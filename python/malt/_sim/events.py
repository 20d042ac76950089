"""What can happen to hosts, and to the links between them: the words for it, and what is cut after it.

::

    cut:h1               nothing passes between h1 and all others
    cut:h0-h2            nothing passes between h0 and h2
    cut:h0->h2           what h0 sends to h2 is dropped; what h2 sends to h0 passes
    cut=reject:h0-h2     the same by a firewall that says so; `WAYS` has the others
    heal:h0-h2           what has been cut between h0 and h2 passes again
    off:h1               h1 is powered off: it is cut off without a sign, and all its processes are killed

Nothing is done here. `Network.apply` does it, and ``malt sim`` looks ahead with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import NamedTuple

from malt._sim.programs import SimError

WAYS = {"drop": "dropped", "reject": "rejected by a firewall", "blackhole": "discarded by a blackhole route"}
"""How links are cut, and what becomes of a packet."""

WHOLE = ("unplug", "address")
"""How a host is cut off from all others at once: without its cable, without its addresses."""

_FORM = re.compile(r"(cut|heal|off)(?:=([a-z]+))?:h(\d+)(?:(->?)h(\d+))?")


class Cut(NamedTuple):
    """One cut, as it is made and healed."""

    source: int
    target: int
    """The same host: it is cut off from all others."""
    way: str


class Event(NamedTuple):
    """Something that happens."""

    what: str
    way: str
    """Of a cut. That of a host that is powered off is ``unplug``."""
    hosts: tuple[int, ...]
    """One, with its links to all others; or the two ends of a link."""
    one_way: bool

    def outcome(self, cuts: Set[Cut], count: int) -> frozenset[Cut]:
        """Return what is cut after it.

        Parameters
        ----------
        cuts : set of Cut
            What is cut before.
        count : int
            How many hosts there are.

        Raises
        ------
        SimError
            It names a host that is not there.
        """
        for host in self.hosts:
            if host >= count:
                raise SimError(f"there is no host h{host}", f"the hosts are {', '.join(f'h{n}' for n in range(count))}")
        links = set(self._links(count))
        if self.what == "heal":
            return frozenset(cut for cut in cuts if (cut.source, cut.target) not in links)
        whole = self.way in WHOLE
        return frozenset(cuts) | {Cut(*link, self.way) for link in links if (link[0] == link[1]) == whole}

    def _links(self, count: int) -> Iterator[tuple[int, int]]:
        """Yield what it is about: links, and for a host also the host itself."""
        first = self.hosts[0]
        others = self.hosts[1:] or range(count)
        yield from ((first, other) for other in others)
        if not self.one_way:
            yield from ((other, first) for other in others)

    def __str__(self) -> str:
        """Return what has happened, as a sentence."""
        ends = [f"h{host}" for host in self.hosts]
        if self.what == "off":
            return f"host {ends[0]} is powered off"
        if self.way == "unplug":
            return f"the cable of host {ends[0]} is unplugged"
        if self.way == "address":
            return f"host {ends[0]} has lost its addresses"
        whose = f"from {ends[0]} to {ends[1]}" if self.one_way else f"between {' and '.join((*ends, 'all others')[:2])}"
        return f"packets {whose} {'pass again' if self.what == 'heal' else f'are {WAYS[self.way]}'}"


def parse(text: str) -> Event:
    """Return the event that a text stands for.

    Raises
    ------
    SimError
        It stands for none.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise SimError(
            f"{text!r} is not an event", "expected cut, heal or off, such as off:h1, cut:h0-h1 or 'cut:h0->h1'"
        )
    what, way, first, arrow, second = found.groups()
    ways = (*WAYS, *WHOLE)
    if way and (what != "cut" or way not in ways):
        raise SimError(f"{what}={way} is not known", f"a cut has a way: cut={', cut='.join(ways)}")
    way = {"cut": way or "drop", "off": "unplug"}.get(what, "")
    if second and way in WHOLE:
        raise SimError(f"{text!r} is not about one host", "expected a host, such as h1")
    if first == second:
        raise SimError(f"h{first}{arrow}h{second} is not a link", "expected two hosts, such as h0-h1")
    return Event(what, way, tuple(int(host) for host in (first, second) if host), arrow == "->")
