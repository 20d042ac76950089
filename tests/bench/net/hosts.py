"""The hosts on which the ranks run, whose cables are made to suit each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from malt._sim import Network

from ..rows import Link


@dataclass(frozen=True)
class Hosts:
    """Hosts of a network."""

    network: Network

    @property
    def enter(self) -> Sequence[Callable[[], None]]:
        """What moves a new process into each host."""
        return [host.enter for host in self.network.hosts]

    @property
    def addresses(self) -> Sequence[str]:
        """Their addresses."""
        return [host.address for host in self.network.hosts]

    def suit(self, link: Link) -> None:
        """Make all cables like this one."""
        for host in self.network.hosts:
            want: dict[str, Any] = {"rate": link.rate, "delay": link.delay}
            for name, value in want.items():
                if getattr(host.cable, name) != value:
                    setattr(host.cable, name, value)


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """Make hosts; for a process that has called `malt._sim.isolate`."""
    with Network(count) as network:
        yield Hosts(network)
