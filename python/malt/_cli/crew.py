"""The ranks that ``malt run`` looks after, on this machine or on several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from malt._rank import Outcome


class Crew(Protocol):
    """What a launcher can do with its ranks: see `malt._launch.Job`, whose methods these are."""

    asked: bool

    @property
    def ranks(self) -> Sequence[Outcome]:
        """The ranks that have been started."""

    def watch(self, fd: int, call: Callable[[], None], write: bool = False) -> None:
        """Call whenever fd can be read, or written, until `forget`."""

    def forget(self, fd: int) -> None:
        """Stop watching fd."""

    def pause(self, paused: bool) -> None:
        """Leave what the ranks write where it is, so that they wait for us."""

    def wait(self) -> bool:
        """Serve until all ranks have ended."""

    def signal(self, number: int, group: bool = True) -> None:
        """Send a signal to the ranks, and (group) to their children as well."""

    def stop(self) -> None:
        """Ask all ranks to end, and kill them soon."""

    def kill(self) -> None:
        """Kill all ranks."""

    def first_failure(self) -> Outcome | None:
        """Return the rank that failed first, if any did."""

    def close(self) -> list[int]:
        """End what still runs; returns the ranks whose children had outlived them."""

    def __enter__(self) -> Crew: ...

    def __exit__(self, error: object, *_: object) -> None: ...
