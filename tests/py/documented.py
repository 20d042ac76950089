"""What the page on JSON says of the fields."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/api/json.md"


def fields(section: str, of: str) -> set[str]:
    """Return the fields of one thing, such as "a rank", below a heading."""
    _, _, text = PAGE.read_text().partition(f"## {section}\n")
    _, _, table = text.partition("\n## ")[0].partition(f"| {of} | |\n")
    return set(re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.M))
