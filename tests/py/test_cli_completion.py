"""``malt completion`` in real shells, and help texts at the width of the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from malt._cli import completion, explain, graph, main, options
from malt._cli.command import COMMANDS
from malt._cli.wrap import filled

pytest.importorskip("shtab", reason="needs shtab: pip install shtab")

COMPLETED = [
    ("", set(COMMANDS)),
    ("gr", {"graph"}),
    ("run --ti", {"--timeout"}),
    ("graph ha", {"halton", "halton-paper"}),
    ("graph --format ", set(graph.FORMATS)),
    ("run --on-death ", set(options.ON_DEATH)),
    ("completion ", set(completion.SHELLS)),
    ("explain ", set(explain.topics())),
]


@pytest.fixture(name="scripts", scope="module")
def _scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a script for each shell."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in completion.SHELLS:
        done = subprocess.run(
            [sys.executable, "-m", "malt", "completion", shell], capture_output=True, text=True, check=True
        )
        (folder / shell).write_text(done.stdout)
    return folder


def said(shell: str, code: str, *arguments: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}: apt install {shell}")
    done = subprocess.run([program, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_bash(scripts: Path, line: str, words: set[str]) -> None:
    code = (
        'source "$0"; read -ra COMP_WORDS <<< "malt $1"; [[ "$1" == *" " || -z "$1" ]] && COMP_WORDS+=("")\n'
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); f=$(complete -p malt | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        '"$f" malt "${COMP_WORDS[COMP_CWORD]}" ""; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    found = {word.strip() for word in said("bash", code, str(scripts / "bash"), line).splitlines()}
    assert {word for word in found if not word.startswith("-") or line.endswith("--ti")} == words


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_fish(scripts: Path, line: str, words: set[str]) -> None:
    out = said("fish", f"source {scripts / 'fish'}; complete -C 'malt {line}'")
    assert words <= {word.partition("\t")[0] for word in out.splitlines()}


def test_zsh(scripts: Path, tmp_path: Path) -> None:
    shutil.copy(scripts / "zsh", tmp_path / "_malt")
    code = f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -D -u; print $_comps[malt]"
    assert said("zsh", code) == "_malt\n"
    said("zsh", f"setopt noexec; source {tmp_path / '_malt'}")  # it can be read
    text = (scripts / "zsh").read_text()
    assert all(re.search(rf"^ *{name}\)", text, re.MULTILINE) for name in COMMANDS)
    plain = text.replace("'", "").replace("\\", "").replace('"', "")
    assert f"({' '.join(graph.NAMES)})" in plain
    assert f"({' '.join(sorted(explain.topics()))})" in plain


def test_without_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install shtab" in capsys.readouterr().err


# ------------------------------------------------------------------ help texts


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with suppress(SystemExit):
        main([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert out.startswith("usage: malt")
    assert not [line for line in out.splitlines() if len(line) > columns]


def test_help_fits_a_terminal_of_40_columns() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 40, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    subprocess.run([sys.executable, "-m", "malt", "token", "--help"], stdin=theirs, stdout=theirs, env=env, check=True)
    os.close(theirs)
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    lines = text.split("\r\n")
    assert max(map(len, lines)) <= 40 < max(len(f"{a} {b}") for a, b in pairwise(lines))


def test_commands_are_broken_as_a_shell_reads_them() -> None:
    command = "  malt run -n 4 --nodes 2 --node-rank 0 --store node0:29500 train.py"
    broken = filled(f"{command}    without ssh", 40)
    *lines, comment = broken.splitlines()
    assert comment == "      without ssh"
    assert re.sub(r"\s*\\\s+", " ", "\n".join(lines)) == command
