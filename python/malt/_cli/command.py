"""The sub-commands of ``malt``, and what all of them answer.

``malt run`` must start at once, so nothing here or in ``run`` imports numpy,
cffi, or the library.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import malt
from malt._cli.options import UsageError, nearest
from malt._cli.wrap import columns, filled, folded

COMMANDS = {
    "run": "start a program on several ranks",
    "sim": "run a program on several simulated hosts",
    "top": "show what the ranks of your jobs are doing",
    "trace": "compare two runs, from the files of malt run --trace",
    "stack": "print where in its program each rank is: if it hangs",
    "graph": "print, draw and compare graphs",
    "plan": "predict which graph and consistency to take, and whether more ranks pay",
    "bench": "measure this machine: bandwidth and latency between ranks",
    "explain": "print a section of the guide, such as one that an error names",
    "doctor": "check this machine, and say how to fix problems",
    "completion": "print the completion of `malt` for bash, zsh or fish",
    "token": "print a new token, for jobs on several machines",
}

_UNWRITTEN = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

HELP = """\
usage: malt COMMAND ...

Data-parallel training of an existing Python loop.

commands:
{commands}

  malt COMMAND --help   shows the options of a command
  malt --version        prints the version

examples:
  malt run -n 4 train.py
  malt graph halton -n 16
  malt doctor
"""


def main(argv: Sequence[str] | None) -> int:
    """Run the command line, and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments.pop(0) if arguments else "--help"
    try:
        if command in ("-h", "--help", "help"):
            lines = "\n".join(f"  {name:12}{text}" for name, text in COMMANDS.items())
            print(filled(HELP.format(commands=lines), shutil.get_terminal_size().columns - 2))
            return 0
        if command in ("-V", "--version", "version"):
            print(f"malt {malt.__version__}")
            return 0
        if command not in COMMANDS:
            raise UsageError("malt", f"there is no command {command!r}", nearest(command, COMMANDS))
        code: int = import_module(f"malt._cli.{command}").main(arguments)
        if sys.stdout is not None:  # it is None where descriptor 1 was closed
            sys.stdout.flush()
        return code
    except UsageError as error:
        print(folded(str(error), columns(2, 120)), file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in _UNWRITTEN or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes at its end, too
        if error.errno == errno.EPIPE:  # such as `malt graph … | head`
            return 128 + signal.SIGPIPE
        print(f"malt {command}: standard output: {error.strerror}", file=sys.stderr)
        return 1
