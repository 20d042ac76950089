"""What ``malt run`` or ``malt sim`` is to start: a Python script, a module, or any program."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from malt._cli.options import Refuse

PYTHON = (".py", ".pyw", ".pyz", ".pyc")


def split(arguments: Sequence[str], options: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """Split the arguments of ``malt run`` into its own and the program's.

    Parameters
    ----------
    arguments : sequence of str
        All of them.
    options : mapping
        The options of ``malt run``, and whether each takes a value.

    Returns
    -------
    own, program : list of str
        The program starts at ``-m``, after ``--``, or at the first word that is
        neither an option nor the value of one.
    """
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            return list(arguments[:at]), list(arguments[at + 1 :])
        if word == "-m" or not word.startswith("-") or word == "-":
            break
        at += 2 if options.get(word, False) else 1
    at = min(at, len(arguments))
    return list(arguments[:at]), list(arguments[at:])


def command(program: Sequence[str], refuse: Refuse, like: str = "malt run -n 4") -> list[str]:
    """Return what to execute.

    Parameters
    ----------
    program : sequence of str
        The program and its arguments, as `split` gives them.
    refuse : callable
        Raises an error with the sentence that it gets.
    like : str
        A command line that lacks only the program, for the sentences.
    """
    if not program:
        refuse("nothing to run", "expected a script, -m MODULE, or -- PROGRAM", f"Write `{like} train.py`.")
    name = program[0]
    if name == "-m":
        if len(program) < 2:
            refuse("-m needs the name of a module", do=f"Write `{like} -m package.train`.")
        return [sys.executable, *program]
    if name.startswith("-"):
        refuse(f"{name!r} is not a program", f"options of {' '.join(like.split()[:2])} come before --")
    if name.endswith(PYTHON) or os.path.isfile(os.path.join(name, "__main__.py")):
        if not os.path.exists(name):
            refuse(f"there is no script {name!r}", f"the working directory is {os.getcwd()}")
        return [sys.executable, *program]
    return [_executable(name, refuse), *program[1:]]


def _executable(name: str, refuse: Refuse) -> str:
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    if os.path.isdir(name):
        refuse(f"{name!r} is a folder without a __main__.py", do="Name a script in it.")
    if not os.path.exists(name):
        refuse(
            f"there is no program {name!r}", "" if "/" in name else "it is neither in PATH nor a script in this folder"
        )
    if os.access(name, os.X_OK):
        refuse(f"there is no program {name!r} in PATH", do=f"Write ./{name} for the one in this folder.")
    return refuse(f"{name!r} cannot be executed", do="Make it executable, or end its name in .py if it is Python.")
