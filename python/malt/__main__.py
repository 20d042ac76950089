"""``python -m malt``: the same as ``malt``."""

import sys

from malt._cli import main

if __name__ == "__main__":
    sys.exit(main())
