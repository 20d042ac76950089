"""What ``malt run -H`` is to do, from its options."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from malt._cli.hosts import HERE, Host, named
from malt._cli.options import see_room, settings
from malt._cli.token import LEAST, SHORT
from malt._identity import INSIDE, RANK_VARIABLES
from malt._room import MOST

# A question would wait for ever; a host that is gone is to be noticed, within 20 s: when it has left
# three questions, 5 s apart, without an answer for as long.
_SETTINGS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3")
_SSH = ("-T", *(word for setting in _SETTINGS for word in ("-o", setting)))


class Plan(NamedTuple):
    """What is to run where."""

    hosts: Sequence[Host]
    reach: Callable[[Host], Sequence[str]]
    """The command that starts an agent on a host."""
    program: Sequence[str]
    folder: str
    env: Mapping[str, str]
    """Variables that all ranks get."""
    token: str

    @property
    def size(self) -> int:
        """How many ranks there are in all."""
        return sum(host.ranks for host in self.hosts)


def made(options: argparse.Namespace, program: Sequence[str], refuse: Callable[[str], NoReturn]) -> Plan:
    """Return what ``malt run -H`` is to do."""
    for name in ("nodes", "node_rank", "store", "token_file"):
        if getattr(options, name) is not None:
            refuse(f"--{name.replace('_', '-')} is for jobs without ssh: -H and --hostfile do without")
    if not program:
        refuse("nothing to run: name a script, -m MODULE, or -- PROGRAM, such as `malt run -H a:4,b:4 train.py`")
    token = os.environ.get("MALT_TOKEN") or os.urandom(16).hex()
    if len(token) < LEAST:
        refuse(f"MALT_TOKEN {SHORT}")
    ssh, reach = reached_by(options, "malt._cli.agent")
    hosts = named(options, refuse)
    size = sum(host.ranks for host in hosts)
    if size > MOST:
        refuse(f"{size} ranks are too many: a job has at most {MOST}")
    see_room("malt run", ssh, len(hosts), more=1)
    return Plan(
        hosts=hosts,
        reach=reach,
        program=program,
        folder=options.chdir or os.getcwd(),
        env=_environment(options, refuse),
        token=token,
    )


def reached_by(options: argparse.Namespace, module: str) -> tuple[Sequence[str], Callable[[Host], list[str]]]:
    """Return the ssh command, and the command that starts a module on a host, by --ssh and --python."""
    ssh = shlex.split(options.ssh or "ssh")
    if os.path.basename(ssh[0]) == "ssh":
        ssh += _SSH
    agent = f"exec {options.python or shlex.quote(sys.executable)} -m {module}"
    return ssh, lambda host: ["sh", "-c", agent] if host.name in HERE else [*ssh, host.name, agent]


def _environment(options: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> dict[str, str]:
    ours = (*RANK_VARIABLES, INSIDE, "MALT_REPORT")
    env = {name: value for name, value in os.environ.items() if name.startswith("MALT_") and name not in ours}
    env.update(settings(options))
    for word in options.env or ():
        name, given, value = word.partition("=")
        if not name:
            refuse(f"-x {word!r} names no variable: NAME or NAME=VALUE is expected")
        if not given and name not in os.environ:
            refuse(f"-x {name}: there is no such variable here; -x {name}=VALUE sets one")
        env[name] = value if given else os.environ[name]
    return env
