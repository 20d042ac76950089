"""``malt --version``."""

from __future__ import annotations

import malt


def version() -> str:
    """Return the name and version of the package."""
    return f"malt {malt.__version__}"
