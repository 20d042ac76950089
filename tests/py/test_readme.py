"""What the README names is there. Its program is run by test_first_program.py."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_commands_exist():
    """Every `make` target that the documents name is in the Makefile, with help."""
    targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", (ROOT / page).read_text(), re.MULTILINE))
        assert named, page
        assert named <= targets | {"test-py"}


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        assert "://" in target or (ROOT / target).exists(), target
