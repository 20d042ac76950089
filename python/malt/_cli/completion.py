"""``malt completion``: prints what a shell needs to complete command lines of ``malt``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from malt._cli import command, explain, graph
from malt._cli.options import ON_DEATH, Parser, UsageError
from malt._errors import PackageError
from malt._need import need

SHELLS = ("bash", "zsh", "fish")

DESCRIPTION = """\
Prints a script with which a shell completes commands, options, graphs, formats and topics of `malt`. It is
made by shtab (pip install shtab), which is not needed afterwards."""

EXAMPLES = """\
  eval "$(malt completion bash)"          in ~/.bashrc
  malt completion zsh > ~/.zfunc/_malt    in a folder of $fpath
  malt completion fish | source           in config.fish
"""

VALUES = {"graph": graph.NAMES, "format": graph.FORMATS, "on_death": ON_DEATH, "topic": sorted(explain.topics())}
"""What stands for an argument, by its name."""

FILES = ("output", "json", "bench", "hostfile", "token_file", "trace", "report", "first", "second")

FOLDERS = ("log_dir", "chdir")


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("completion", "malt completion bash | zsh | fish", DESCRIPTION, EXAMPLES)
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    options = parser().parse(arguments)
    try:
        shtab = need("shtab", "malt completion")
    except PackageError as error:
        raise UsageError("malt completion", str(error).removeprefix("malt: ")) from None
    print(shtab.complete(_whole(shtab), options.shell))
    return 0


def _whole(shtab: Any) -> argparse.ArgumentParser:
    """Return one parser of all commands."""
    whole = argparse.ArgumentParser(prog="malt")
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers()
    for name, what in command.COMMANDS.items():
        made = import_module(f"malt._cli.{name}").parser()
        if name in ("run", "sim"):
            made.add_argument("program", nargs="?").complete = shtab.FILE
        for action in made._actions:
            action.choices = VALUES.get(action.dest, action.choices)
            if action.dest in FILES:
                action.complete = shtab.FILE
            if action.dest in FOLDERS:
                action.complete = shtab.DIRECTORY
        commands.add_parser(name, help=what, parents=[made], add_help=False)
    return whole
