"""``malt token``: prints a new secret."""

from __future__ import annotations

from collections.abc import Sequence

from malt._cli.options import Parser, Refuse

DESCRIPTION = """\
Prints a new token: the secret that the ranks of a job on several machines share. Only
processes with the token can join. When `malt run` starts all ranks, it makes one itself."""

EXAMPLES = """\
  export MALT_TOKEN=$(malt token)
"""


LEAST = 16
"""The smallest number of characters of a token."""


def long_enough(token: str, where: str, refuse: Refuse) -> str:
    """Return the token that was found there, unless it is too short."""
    if len(token) < LEAST:
        refuse(f"{where} has fewer than {LEAST} characters", "it could be guessed", "Make one with `malt token`.")
    return token


def parser() -> Parser:
    """Return the parser of the sub-command."""
    return Parser("token", "malt token", DESCRIPTION, EXAMPLES)


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    import secrets  # other sub-commands need the length of a token only

    parser().parse(arguments)
    print(secrets.token_hex(16))
    return 0
