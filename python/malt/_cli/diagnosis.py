"""Why an agent has not begun, as far as what ssh, a shell and Python say tells it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

# What is said; why, and what to do.
_KNOWN = (
    (
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
        "this machine does not know its key, or knows another",
        "Connect once by hand: `{by_hand}`.",
    ),
    (
        r"Permission denied \(",
        "it asks for a password, or does not know your key",
        "Give it your key: `ssh-copy-id {host}`. A key with a passphrase has to be in ssh-agent.\n"
        "`{by_hand}` must work without asking anything.",
    ),
    (r"Could not resolve hostname", "there is no host of that name", "Does `ssh {host}` find it?"),
    (
        r"Connection refused|No route to host|Network is unreachable|timed out|Connection closed|Connection reset",
        "it cannot be reached",
        "Is it on, does its sshd listen, and does a firewall let you in? `{by_hand}` must work.",
    ),
    (
        r"No module named '?malt'?(?!\.)",
        "the Python there has no MALT",
        "Install the same wheel as here, or name another Python with --python.",
    ),
    (
        r"No module named '?malt\.|Error while finding module specification",
        "the MALT there is older than this one",
        "Install the same version everywhere.",
    ),
    (
        r"(?:not found|No such file or directory|Command not found|cannot execute)",
        "it has no such Python",
        "Install it there, or name one with --python, such as --python python3.",
    ),
)


def diagnosis(host: str, command: Sequence[str], errors: str, noise: str) -> str:
    """Return the sentence for a host on which no agent has begun.

    Parameters
    ----------
    host : str
        What it is called.
    command : sequence of str
        What was to start the agent.
    errors : str
        What came on standard error.
    noise : str
        What came on standard output.

    Examples
    --------
    >>> print(diagnosis("b", ["ssh", "b", "python"], "ssh: Could not resolve hostname b: Name unknown", ""))
    host b cannot be used: there is no host of that name
    Does `ssh b` find it?
      ssh: Could not resolve hostname b: Name unknown
    """
    said = [line.strip() for line in (errors.strip() or noise.strip()).splitlines() if line.strip()]
    why = next((said for pattern, *said in _KNOWN if re.search(pattern, errors)), ["its agent has not begun"])
    by_hand = shlex.join([*command[:-1], "true"])
    lines = [
        f"host {host} cannot be used: {why[0]}",
        *(line.format(host=host, by_hand=by_hand) for line in why[1:]),
        *(f"  {line}" for line in said[-5:]),
    ]
    if not said:
        lines.append(f"  nothing came from {shlex.join(command)}")
    return "\n".join(lines)
