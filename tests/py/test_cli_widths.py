"""What ``malt`` prints fits narrow terminals, and is broken between words."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest
from launching import script

COMMANDS = """
--help
run --help
run
run -n two train.py
run -n 2 --tmeout 3 train.py
run -n 2 missing.py
run -H localhost
sim --help
sim --hosts 2 -n 999 train.py
sim --hosts 2 --at 2s:cut=saw:h1 -- true
sim --hosts 2 --at 3s:heal:h0->h1 -- true
graph --help
top --help
stack --help
graph halton -n 16
graph halton-paper -n 8 --allow-disconnected
graph chord -n 32
graph all -n 64
graph one-peer -n 1000
graph --compare -n 16
graph --compare -n 100
graph haltn -n 4
doctor --help
doctor
explain --help
explain
explain hangs
explain out-of-memory
explain nothing
completion --help
token --help
bench --help
plan --help
plan --bytes 4MiB
"""

ALL = f"""
from malt._cli import main
for line in {COMMANDS!r}.strip().splitlines():
    print("$ malt", line)
    try:
        main(line.split())
    except SystemExit:
        pass
"""


def shown(width: int, command: Sequence[str]) -> str:
    """Return what a command shows on a terminal that is so wide."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 40, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=env, start_new_session=True):
        os.close(terminal)
        said = b""
        try:
            while piece := os.read(screen, 1 << 16):
                said += piece
        except OSError:  # all who had it open have ended
            os.close(screen)
    return re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).replace("\r\n", "\n")


def too_long(text: str, width: int) -> list[str]:
    return [line for line in text.splitlines() if len(line) > width]


@pytest.mark.parametrize("width", [80, 60])
def test_every_line_fits(width: int) -> None:
    text = shown(width, [sys.executable, "-c", ALL])
    assert text.count("$ malt") == len(COMMANDS.strip().splitlines()), text
    assert "Traceback" not in text
    assert not too_long(text, width)
    # Nothing is lost, and no word is cut.
    words = " ".join(text.split())
    assert "(below 0: exchange models, not gradients)" in words
    assert "splits the ranks into groups that never mix" in words
    assert "hypercube needs a power of two, got 100 ranks" in words
    assert ("The drawing needs 72 columns, and this terminal has 60" in words) == (width == 60)


@pytest.mark.parametrize("width", [80, 60])
def test_what_a_job_says_fits(width: int, tmp_path: Path) -> None:
    path = script(tmp_path, "import malt; v = malt.Vector(3); time.sleep(0.02 * r); v.sync()")
    text = shown(width, [sys.executable, "-m", "malt", "run", "--summary", "-n", "5", path])
    assert not too_long(text, width)
    assert re.search(r"^malt run: 1 thread for each rank ", text, re.MULTILINE)
    table = text[text.index("  rank ") :]
    assert "collective" in table
    assert len(re.findall(r"^ +\d +\d+\.\d\d ", table, re.MULTILINE)) == 5, table
    assert re.search(r"waited for rank \d ", table)


def test_what_a_pipe_gets_is_not_broken(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "malt", "graph", "--compare", "-n", "16"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^halton-paper .* splits the ranks into groups that never mix$", text, re.MULTILINE)
