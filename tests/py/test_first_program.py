"""The first program is the same in the README, the documentation and help(malt), and does what its comments say.

A line of it ends in ``# new``, or in ``# was:`` and the line that it replaces; so the serial program
can be made of it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from launching import LONG

import malt

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

PAGES = {page: (ROOT / page).read_text() for page in ("README.md", "docs/index.md", "docs/guide/first-loop.md")}
README = BLOCK.findall(PAGES["README.md"])[0]
HELP = str(malt.__doc__)


def serial(program: str) -> str:
    """Return what the comments say that the program was."""
    return re.sub(r"^( *).*  # was: (.*)$", r"\1\2", re.sub(r"^.*  # new.*\n", "", program, flags=re.M), flags=re.M)


def execute(folder: Path, program: str, *launcher: str) -> list[str]:
    """Run a program that also saves its model, and return the lines that it prints."""
    (folder / "train.py").write_text(program + "\nimport os\nnp.save(f'w{os.getpid()}.npy', w)\n")
    command = [sys.executable, *launcher, "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def models(folder: Path) -> set[bytes]:
    return {np.load(path).tobytes() for path in folder.glob("w*.npy")}


def test_it_is_the_same_everywhere() -> None:
    assert BLOCK.findall(PAGES["docs/index.md"])[0] == README
    assert BLOCK.findall(PAGES["docs/guide/first-loop.md"])[:2] == [serial(README), README]
    assert textwrap.indent(README, "    ") in HELP


def test_it_uses_the_defaults() -> None:
    assert re.findall(r"malt\.Vector\((.*?)\)", README) == ["10"]


@pytest.mark.parametrize("page", [*PAGES, "help(malt)"])
def test_the_number_of_lines_is_that_of_the_diff(page: str, tmp_path: Path) -> None:
    (tmp_path / "serial.py").write_text(serial(README))
    (tmp_path / "train.py").write_text(README)
    command = ["git", "diff", "--no-index", "--numstat", "serial.py", "train.py"]
    added, _ = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout.split()[:2]
    text = HELP if page == "help(malt)" else PAGES[page]
    said = re.search(r"(\w+)\s+lines\s+(of\s+this\s+program\s+)?differ", text)
    assert said, f"{page} does not say how many lines differ"
    assert WORDS.index(said[1].lower()) == int(added)


def test_four_ranks_agree(tmp_path: Path) -> None:
    said = execute(tmp_path, README, "-m", "malt", "run", "-n", "4")
    errors = {line.split("] ")[1] for line in said}
    assert len(said) == 4
    assert len(errors) == len(models(tmp_path)) == 1
    assert float(errors.pop().removeprefix("error ")) < 1e-6


def test_alone_it_is_the_serial_program(tmp_path: Path) -> None:
    """G1: bit for bit the program that stands in the comments."""
    assert execute(tmp_path, README) == execute(tmp_path, serial(README))
    assert len(list(tmp_path.glob("w*.npy"))) == 2
    assert len(models(tmp_path)) == 1
