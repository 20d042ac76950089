"""``malt token``: prints a new secret."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from malt._cli.options import Parser

DESCRIPTION = """\
Prints a new token: the secret that the ranks of a job on several machines share. Only
processes with the token can join. When `malt run` starts all ranks, it makes one itself."""

EXAMPLES = """\
  export MALT_TOKEN=$(malt token)
"""


LEAST = 16
"""The smallest number of characters of a token."""

SHORT = f"has fewer than {LEAST} characters, so that it could be guessed: `malt token` prints a secret"


def parser() -> Parser:
    """Return the parser of the sub-command."""
    return Parser("token", "malt token", DESCRIPTION, EXAMPLES)


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parser().parse(arguments)
    print(secrets.token_hex(16))
    return 0
