"""What ``malt top`` and ``malt stack`` look at: the ranks of this machine, or with ``-H`` those of others.

There, this module runs on each machine, as of ``remote``. It is the user's own login that lets it look.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from malt._cli import hosts
from malt._cli.options import Refuse, refuse_given
from malt._cli.remote import Inquiries, answer
from malt._ranks import seen
from malt._ranks.stacks import Answer, Frame, ask

Jobs = dict[str, list[seen.Rank]]


Inquire = Callable[..., list[dict[str, Any]]]
"""As `Inquiries.inquire`."""


class Look:
    """The ranks of some machines.

    Parameters
    ----------
    inquire : callable
        Has programs do what `done` does, and returns what they say.
    programs : sequence
        One on each machine.
    job : str or None
        The job that is meant: its number, or the process of one of its ranks.
    refuse : callable
        Raises an error with the sentence that it gets.
    """

    def __init__(self, inquire: Inquire, programs: Sequence[Any], job: str | None, refuse: Refuse) -> None:
        self._inquire, self._programs, self._job, self._refuse = inquire, programs, job, refuse
        self._of: dict[seen.Key, Any] = {}

    def ranks(self) -> list[seen.Rank]:
        """Return all ranks of this user."""
        found: dict[seen.Key, seen.Rank] = {}
        for program, said in zip(self._programs, self._inquire(self._programs, do="look"), strict=True):
            for rank in (seen.Rank(*fields) for fields in said["ranks"]):
                found[rank.key], self._of[rank.key] = rank, program
        return list(found.values())

    def stacks(self, ranks: Sequence[seen.Rank]) -> dict[seen.Key, Answer]:
        """Return where in their program ranks are: each machine asks its own."""
        answers: dict[seen.Key, Answer] = {}
        for program in self._programs:
            here = [rank for rank in ranks if self._of[rank.key] is program]
            (said,) = self._inquire([program], do="ask", ranks=here)
            for rank, (stack, why) in zip(here, said["stacks"], strict=True):
                answers[rank.key] = Answer(tuple(Frame(*frame) for frame in stack), why)
        return answers

    def jobs(self) -> Jobs:
        """Return the jobs there are, or the one that is meant."""
        found = seen.jobs(self.ranks())
        if self._job is None:
            return found
        return {key: ranks for key, ranks in found.items() if self._job in (key, *(str(rank.pid) for rank in ranks))}

    def chosen(self) -> Jobs:
        """Return the same; refuse where there is none."""
        found = self.jobs()
        if not found and self._job is not None:
            others = ", ".join(seen.jobs(self.ranks())) or "none"
            self._refuse(f"there is no job {self._job!r}", f"jobs of this user here: {others}")
        if not found:
            self._refuse(
                "no ranks of this user run on this machine",
                "ranks appear when they join the job, and other users cannot see them",
                "Start a job, as with `malt run -n 4 train.py`.\n"
                "If its ranks run elsewhere, name the hosts: -H node1,node2.",
            )
        return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which ranks are meant."""
    parser.add_argument(
        "job", nargs="?", metavar="JOB", help="the number of a job, or the process id of one of its ranks"
    )
    parser.add_argument("-H", "--hosts", metavar="HOST,...", help="the ranks of these machines, by ssh")
    hosts.add_ways(parser)


@contextmanager
def at(command: str, options: argparse.Namespace, refuse: Refuse) -> Iterator[Look]:
    """Give the look at the ranks that the options of a command mean."""
    if options.hosts is None:
        refuse_given(options, ("ssh", "python"), refuse, "goes with -H, which names hosts")
        yield Look(lambda _, **asked: [done(asked)], ["here"], options.job, refuse)
        return
    named = dict.fromkeys(host.name for host in hosts.from_words(options.hosts, 1, refuse))
    with Inquiries(command, "malt._cli.looks", list(named), options) as there:
        there.begin()
        yield Look(there.inquire, there.programs, options.job, refuse)


def done(asked: dict[str, Any]) -> dict[str, Any]:
    """Look at the ranks of this machine, or ask some where they are."""
    if asked["do"] == "look":
        return {"ranks": seen.ranks()}
    ranks = [seen.Rank(*fields) for fields in asked["ranks"]]
    answers = ask(ranks)
    return {"stacks": [answers[rank.key] for rank in ranks]}


if __name__ == "__main__":
    answer(done)
