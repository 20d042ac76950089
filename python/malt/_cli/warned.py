"""The warnings of ranks: one that several ranks give is shown once, with all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from malt._ranks.launch import Job
from malt._ranks.output import Display
from malt._ranks.rank import Outcome

MEANWHILE = 1.0
"""Seconds in which other ranks may give the same warning, before a line names them."""

MOST = 1000
"""Warnings that are remembered."""


class Warned:
    """The warnings that ranks leave to the launcher.

    The first rank that gives one has it shown at once, so that it cannot be lost; a line names the others a little
    later. One that a rank repeats is shown again. The logs of the ranks get all of them.

    Parameters
    ----------
    job : Job
        The ranks.
    display : Display
        Shows what the ranks write, and has their logs.
    note : callable
        Shows a line of the launcher's.
    name : callable
        Returns how ranks are called, such as ``ranks 0 and 2``.
    """

    def __init__(
        self, job: Job, display: Display, note: Callable[[str], None], name: Callable[[Iterable[int]], str]
    ) -> None:
        self._job, self._display, self._note, self._name = job, display, note, name
        self._ranks: dict[str, set[int]] = {}
        """The ranks that have given a warning, by what is the same on all of them."""
        self._untold: dict[tuple[str, str], set[int]] = {}
        """The ranks that are still to be named, by that and the first line."""
        job.warned = self._heard

    def _heard(self, rank: Outcome, text: str, same: str) -> None:
        lines = text.encode(errors="replace").splitlines()
        self._display(rank.number, 2, b"")  # a line that it has not ended
        self._display.log(rank.number, lines)
        known = self._ranks.get(same)
        if known is not None and rank.number not in known:
            known.add(rank.number)
            if not self._untold:
                self._job.later(MEANWHILE, self.tell)
            self._untold.setdefault((same, text.partition("\n")[0]), set()).add(rank.number)
            return
        self._ranks.pop(same, None)
        self._ranks[same] = {rank.number}
        if len(self._ranks) > MOST:
            del self._ranks[next(iter(self._ranks))]  # the oldest
        self._display.put(rank.number, 2, lines)

    def tell(self) -> None:
        """Name the ranks that have given a warning which another one has had shown."""
        for (_, line), ranks in self._untold.items():
            self._note(f"{self._name(ranks)} gave the same warning: {line}")
        self._untold = {}
