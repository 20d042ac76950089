"""Why an agent has not begun, as far as what ssh, a shell and Python say tells it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

# What is said, and the sentence for it.
_KNOWN = (
    (
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
        "this machine does not know its key, or knows another: connect once by hand, with `{by_hand}`",
    ),
    (
        r"Permission denied \(",
        "it wants a password, or does not know your key: `ssh-copy-id {host}` gives it your key, and a key with a "
        "passphrase has to be in ssh-agent; `{by_hand}` has to work without a question",
    ),
    (r"Could not resolve hostname", "there is no host of that name"),
    (
        r"Connection refused|No route to host|Network is unreachable|timed out|Connection closed|Connection reset",
        "it is not reached: is it on, does its sshd listen, and does a firewall let you in? `{by_hand}` has to work",
    ),
    (
        r"No module named '?malt'?(?!\.)",
        "the Python there has no MALT: install the same wheel as here for it, or name another with --python",
    ),
    (
        r"No module named '?malt\.|Error while finding module specification",
        "the MALT there is older than this one: install the same version everywhere",
    ),
    (
        r"(?:not found|No such file or directory|Command not found|cannot execute)",
        "it has no such Python: install it there, or name one with --python, such as --python python3",
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
      ssh: Could not resolve hostname b: Name unknown
    """
    said = [line.strip() for line in (errors.strip() or noise.strip()).splitlines() if line.strip()]
    why = next((text for pattern, text in _KNOWN if re.search(pattern, errors)), "its agent has not begun")
    by_hand = shlex.join([*command[:-1], "true"])
    lines = [
        f"host {host} cannot be used: {why.format(host=host, by_hand=by_hand)}",
        *(f"  {line}" for line in said[-5:]),
    ]
    if not said:
        lines.append(f"  nothing came from {shlex.join(command)}")
    return "\n".join(lines)
