"""The program that votes for a host without ranks: ``malt run -H a:4,b:4,c:0`` starts it there."""

from __future__ import annotations

import signal
import sys

from malt import _lib
from malt._errors import Error


def main() -> int:
    """Vote until no rank is left. Ctrl-C lets the ranks finish, and needs their votes meanwhile."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _lib.witness()
    except (Error, ValueError, OSError) as error:  # as the library says them
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
