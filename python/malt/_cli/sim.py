"""``malt sim``: runs a program on each of several hosts of a simulated network."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from malt import _sim
from malt._cli import target
from malt._cli.options import (
    TIMES,
    Parser,
    Refuse,
    UsageError,
    counts,
    delay,
    quantity,
    rate,
    see_on_death,
    see_room,
    see_voters,
    unfit,
    whole,
)
from malt._cli.supervise import Kind, here, keep_standard_descriptors, supervise
from malt._cli.terminal import Terminal
from malt._ranks.launch import Job, meeting, numbered, program_environment
from malt._ranks.room import MOST
from malt._sim import events, programs
from malt._sim import network as networks
from malt._sim.host import variables

HOSTS = Kind("malt sim", "host", "h")

RANKS = Kind("malt sim", "rank")

PARTS = {"%": 0.01}

USAGE = (
    "malt sim --hosts HOSTS [-n RANKS] [--rate RATE] [--delay TIME] [--loss PART] [--at TIME:EVENT] "
    "SCRIPT.py | -- PROGRAM  [arguments]"
)

PORT = 29500
"""At which the ranks of a script meet: in a network that is new, any is free."""

DESCRIPTION = """\
Simulates a network of hosts on this machine, with the rate, delay and loss that you
give. Runs a script as the ranks of one job there, as `malt run -H` does, or, after --,
any program once on each host. The hosts are called h0, h1, ... Each has its own
addresses, host name and shared memory, and finds the others by their names. They share
the files, users and processors of this machine, and cannot reach other networks.

These variables tell the program where it runs: MALT_SIM_HOST (0, 1, ...),
MALT_SIM_HOSTS (the number of hosts), MALT_SIM_NAMES (h0,h1,...) and MALT_SIM_ADDRESSES
(10.0.0.1,10.0.1.1,...; the hosts have IPv6 addresses, too).

--at TIME:EVENT lets something happen so long after the start of the programs. off:h1 powers
host h1 off: no packet enters or leaves it any more, its processes are killed, and that
counts as no failure. cut:h0-h1 drops all packets between two hosts, cut:h0->h1 (in quotes)
those from h0 to h1 only, and cut:h1 those between h1 and all others. cut=reject,
cut=blackhole, cut=unplug and cut=address cut by a firewall that says so, by a route, by
the host's cable and by the loss of its address. heal:h0-h1 makes whole what was cut.

Output is shown with the rank, or the host, in front of each line. If one fails, all are
stopped, and its exit code is returned. Nothing of the network or the programs remains,
even if this command is killed. Needs Linux and iproute2, and root only if ordinary users
may not create namespaces."""

EXAMPLES = """\
  malt sim --hosts 4 --rate 1Gbit --delay 5ms train.py
  malt sim --hosts 2 -n 4 train.py         four ranks on each
  malt sim --hosts 2 -- hostname
  malt sim --hosts 4 --rate 1Gbit -- sh -c 'torchrun --nnodes 4 \\
      --node-rank $MALT_SIM_HOST --master-addr h0 train.py'
  malt sim --hosts 2 --loss 1% -- python measure.py
  malt sim --hosts 3 --at 2s:off:h1 train.py
  malt sim --hosts 3 --at '2s:cut:h0->h2' --at '3s:heal:h0->h2' train.py
"""


def parser() -> Parser:
    """Return the parser of the options that come before the program."""
    made = Parser("sim", USAGE, DESCRIPTION, EXAMPLES)
    made.add_argument("--hosts", type=_hosts, metavar="HOSTS", help="number of hosts")
    made.add_argument(
        "-n",
        "--ranks",
        type=counts,
        metavar="RANKS",
        help="ranks of the script on each host, or a number for each: 2,2,0; 0: it only votes; default: 1",
    )
    made.add_argument(
        "--rate", type=rate, metavar="RATE", help="speed of each host's cable in each direction, such as 1Gbit"
    )
    made.add_argument(
        "--delay", type=delay, default=0.0, metavar="TIME", help="time from any host to any other, such as 5ms"
    )
    made.add_argument(
        "--loss", type=_loss, default=0.0, metavar="PART", help="share of the packets that are lost, such as 1%%"
    )
    made.add_argument(
        "--at",
        type=_moment,
        action="append",
        default=[],
        metavar="TIME:EVENT",
        help="what happens while the programs run, such as 2s:off:h1; can be given several times",
    )
    return made


class _Moment(NamedTuple):
    """An event of the command line."""

    seconds: float
    """After the start of the programs."""
    event: events.Event
    text: str


def _moment(text: str) -> _Moment:
    after, _, event = text.partition(":")
    seconds = quantity(after, TIMES, "time", "us, ms or s", "2s:off:h1", 0, 1e6)
    try:
        return _Moment(seconds, events.parse(event or text), text)
    except _sim.SimError as error:
        raise unfit(str(error)) from None


def _plan(moments: Iterable[_Moment], hosts: int, refuse: Refuse) -> list[_Moment]:
    """Return events in their order, or refuse one that cannot happen after the others."""
    plan = sorted(moments, key=lambda moment: moment.seconds)
    cuts: frozenset[events.Cut] = frozenset()
    off: set[int] = set()
    for _, event, text in plan:
        try:
            after = event.outcome(cuts, hosts)
        except _sim.SimError as error:
            refuse(f"--at {text}: {error}")
        gone = off.intersection(event.hosts)
        if gone:
            refuse(f"--at {text}: host h{gone.pop()} is off at that time", "it stays off once it is")
        if event.what == "off":
            off.update(event.hosts)
        elif after == cuts:
            refuse(f"--at {text}: that changes nothing", f"there is nothing left to {event.what} at that time")
        cuts = after
    return plan


def _hosts(text: str) -> int:
    return whole(text, 1, networks.MOST, "number of hosts", "--hosts 4")


def _loss(text: str) -> float:
    return quantity(text, PARTS, "part", "a percentage", "0.1% or 5%", 0, 1)


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    own, program = target.split(arguments, parse.options())
    options = parse.parse(own)
    as_ranks = bool(program) and arguments[len(own)] != "--"
    if as_ranks and not program[0].endswith(target.PYTHON):
        parse.error(
            f"{program[0]!r} is not a script",
            "put a program that does not use MALT after --",
            f"Write `malt sim --hosts 4 -- {' '.join(program)}`.",
        )
    if options.ranks is not None and not as_ranks:
        parse.error(
            "-n is for a script",
            "a program after -- runs once on each host",
            "Write `malt sim --hosts 4 -n 2 train.py`.",
        )
    argv = target.command(program, parse.error, "malt sim --hosts 4")
    if options.hosts is None:
        parse.error("the number of hosts is missing", do="Pass --hosts 4.")
    each = options.ranks or [1]
    if len(each) == 1:
        each *= options.hosts
    if len(each) != options.hosts:
        parse.error(f"-n {','.join(map(str, each))} is for {len(each)} hosts", f"--hosts says {options.hosts}")
    if as_ranks and sum(each) > MOST:
        parse.error(f"{sum(each)} ranks are too many", f"a job has at most {MOST}")
    see_on_death(os.environ, parse.error)
    see_voters(each, os.environ, parse.error)
    plan = _plan(options.at, options.hosts, parse.error)
    places = numbered(each)
    see_room("malt sim", argv, sum(map(len, places)))
    keep_standard_descriptors()
    try:
        if any(moment.event.way == "reject" for moment in plan):
            programs.found("nft")
        _sim.isolate()
        network = _sim.Network(options.hosts, rate=options.rate, loss=options.loss, delay=options.delay)
    except _sim.SimError as error:
        raise UsageError("malt sim", str(error)) from None
    # The network is not taken down here: that comes with the end of this process.
    return _run(network, argv, places, sum(each) if as_ranks else 0, plan)


def _run(
    network: _sim.Network, argv: Sequence[str], places: Sequence[range], size: int, plan: Sequence[_Moment]
) -> int:
    """Run a script as the ranks of a job, with these numbers on each host, or, with size 0, a program once on each."""
    hosts = network.hosts
    count = sum(map(len, places))
    env = program_environment(count)
    if size:
        first = next(number for number, there in enumerate(places) if 0 in there)
        env |= meeting(size, f"h{first}:{PORT}", os.urandom(16).hex(), witnesses=count - size)

    def start(job: Job, _: Terminal) -> None:
        for host, numbers in zip(hosts, places, strict=True):
            for number in numbers:
                own = {**variables(hosts, host.number), **({"MALT_RANK": str(number)} if size else {})}
                job.start(argv, {**env, **own}, enter=host.enter, number=number, size=size or count)

    kind = RANKS._replace(size=size) if size else HOSTS
    return supervise(kind, argv[0], count, here, start, attend=partial(_attend, network, places, plan, kind))


def _attend(
    network: _sim.Network, places: Sequence[range], plan: Sequence[_Moment], kind: Kind, job: Job, terminal: Terminal
) -> None:
    """Let the events happen at their times, as long as programs run."""
    begun = time.monotonic()
    for number, (seconds, event, text) in enumerate(plan):
        if job.wait(begun + seconds) or job.stopped is not None:
            if job.first_failure() is None:
                late = ", ".join(moment.text for moment in plan[number:])
                terminal.note(f"the programs ended after {time.monotonic() - begun:.1f} s, before {late}")
            return
        said = str(event)
        if event.what == "off":
            there = [rank for rank in job.ranks if rank.number in places[event.hosts[0]]]
            job.lose(there)
            if kind is not HOSTS:
                said += f", with {kind.name(rank.number for rank in there)}"
        try:
            network.apply(event)
        except _sim.SimError as error:
            raise UsageError("malt sim", f"--at {text} failed", str(error)) from None
        terminal.note(f"after {time.monotonic() - begun:.1f} s: {said}")
