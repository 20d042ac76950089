"""The failures of ranks: one that several ranks see is shown once, with all of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from malt._ranks.output import Display
from malt._ranks.rank import Outcome


class Failures:
    """The tracebacks that ranks leave to the launcher (`Outcome.words`).

    The first rank with a failure has its traceback shown at once, so that it cannot be lost. A
    `PeerError` waits for the end, because its cause is the failure of another rank: where that rank
    has had its own traceback shown, a line says which ranks it brought down, and where they were. The
    logs of the ranks get all tracebacks.

    Parameters
    ----------
    display : Display
        Shows what the ranks write, and has their logs.
    """

    def __init__(self, display: Display) -> None:
        self.display = display
        self._groups: dict[str, list[Outcome]] = {}

    def heard(self, rank: Outcome) -> None:
        """Take the traceback of a rank."""
        if rank.words is None:
            return
        lines = _lines(rank)
        self.display(rank.number, 2, b"")  # a line that it has not ended
        self.display.log(rank.number, lines)
        if rank.late:
            return  # nothing is wrong, and a line says so
        group = self._groups.setdefault(rank.words["same"] or rank.words["text"], [])
        group.append(rank)
        if len(group) == 1 and rank.words["dead"] is None:
            self.display.put(rank.number, 2, lines)

    def alike(self, rank: Outcome) -> list[Outcome]:
        """Return the ranks that failed as this one did; the first is the one whose traceback is shown."""
        return next((group for group in self._groups.values() if rank in group), [rank])

    def words(self, rank: Outcome) -> bytes:
        """Return the last words of a rank, as they are to be shown; empty if they were shown last anyway."""
        first = self.alike(rank)[0]
        if first.words is None or first.words["dead"] is None:
            return self.display.last_words(first.number)
        return self.display.prefixed(first.number, 2, _lines(first))

    def others(
        self, cause: Outcome, name: Callable[[Iterable[int]], str], stopped: Container[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """Yield a sentence for each failure but the first, and what is still to be shown of it.

        ``name`` returns how ranks are called, such as ``ranks 0 and 2``. That the launcher has ``stopped`` a rank
        is what another one may have failed over, and nothing to be told.
        """
        told = {rank.number for group in self._groups.values() for rank in group}
        for group in self._groups.values():
            first = group[0].words
            assert first is not None
            kind, dead = first["type"], first["dead"]
            if cause in group:
                for place, numbers in _places(group, first["place"]):
                    yield f"{name(numbers)} saw it at {place}", b""
            elif dead in stopped and dead not in told:
                continue
            elif dead in told or (dead == cause.number and cause.needed):
                for place, numbers in _places(group):
                    yield f"{name(numbers)} failed because {name([dead])} was gone ({kind}), at {place}", b""
            elif dead is not None:
                yield f"{name(r.number for r in group)} failed with {kind}:", self.words(group[0])
            elif len(group) > 1:
                yield f"{name(r.number for r in group)} failed with {kind}", b""


def _lines(rank: Outcome) -> list[bytes]:
    return [] if rank.words is None else rank.words["text"].encode(errors="replace").splitlines()


def _places(group: Iterable[Outcome], but: str = "") -> list[tuple[str, list[int]]]:
    """Return the ranks of a group at each place in the program, but for one place."""
    places: dict[str, list[int]] = {}
    for rank in group:
        if rank.words is not None and rank.words["place"] != but:
            places.setdefault(rank.words["place"], []).append(rank.number)
    return list(places.items())
