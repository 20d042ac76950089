"""The options of ``%%malt`` and ``%malt``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from typing import Any

from malt._cli.options import Parser, UsageError, nearest, on_death, ranks, unfit
from malt._ranks.run import ELSEWHERE, HERE

from ._errors import CellError

CELL = """\
Runs a cell on all ranks; the first cell starts them. Variables stay from cell to
cell. Each line that a rank prints begins with its number. An exception on one
rank interrupts the others. The stop button interrupts all ranks. If a rank dies, all
are ended, unless they were started with --on-death continue."""

CELL_EXAMPLES = """\
  %%malt -n 4                    on four ranks
  %%malt                         on the ranks that run, or else on one for each core
  %%malt -i rate data -o loss    send two variables; get a list of the ranks' losses
  %%malt --show all              figures and results of all ranks, not only of rank 0
  %%malt -n 4 --report           a page about the cell, with its times and waits
  %%malt -n 4 --on-death continue    if a rank dies, the cell and later ones go on without it
"""

LINE = "Shows, restarts or ends the ranks that %%malt has started."

LINE_EXAMPLES = """\
  %malt status                   the ranks, their memory and time
  %malt restart                  end all ranks and start as many new ones, without variables
  %malt restart -n 2             start another number of them
  %malt stop                     no ranks, until the next %%malt
"""

ACTIONS = ("status", "restart", "stop")


def _cell_parser() -> Parser:
    usage = "%%%%malt [-n RANKS] [-i NAME …] [-o NAME …] [--show RANKS] [--on-death WHAT] [--report]"
    made = Parser("", usage, CELL, CELL_EXAMPLES)
    made.prog = "%%malt"
    made.add_argument(
        "-n",
        "--ranks",
        type=ranks,
        metavar="RANKS",
        help="how many ranks; default: the ranks that run, or else one for each core",
    )
    names: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "NAME"}
    made.add_argument("-i", "--input", **names, help="variables of the notebook to send to all ranks")
    made.add_argument("-o", "--output", **names, help="variables of the ranks to send to the notebook: a list, by rank")
    made.add_argument(
        "--show",
        metavar="RANKS",
        help="ranks whose results and figures are shown, such as 0,2 or all; default: the lowest",
    )
    _add_on_death(made)
    made.add_argument(
        "--report",
        action="store_true",
        help="show below the cell where its time went, waits, bytes, ages and loss; it is for ranks that it starts",
    )
    return made


def _line_parser() -> Parser:
    made = Parser("", "%%malt status | restart [-n RANKS] [--on-death WHAT] | stop", LINE, LINE_EXAMPLES)
    made.prog = "%malt"
    made.add_argument("action", metavar="status | restart | stop")
    made.add_argument(
        "-n", "--ranks", type=ranks, metavar="RANKS", help="how many ranks; as many as before, by default"
    )
    _add_on_death(made)
    return made


def _add_on_death(parser: Parser) -> None:
    parser.add_argument(
        "--on-death",
        type=_on_death,
        metavar="WHAT",
        help="effect of a rank's death: stop ends all, with continue the others go on; default: as before, or stop",
    )


def _on_death(text: str) -> str:
    """Return what a rank's death is to do."""
    if text == "replace":
        what, where = ELSEWHERE
        raise unfit(f"{text!r} {what}", where, "Pass --on-death continue, or use malt run with a script.")
    return on_death(text, HERE)


def cell_options(line: str) -> argparse.Namespace | None:
    """Return the options of ``%%malt``; None if the help was shown."""
    options = _parse(_cell_parser(), line)
    if options is not None:
        options.input, options.output = _names("-i", options.input), _names("-o", options.output)
    return options


def line_options(line: str) -> argparse.Namespace | None:
    """Return the options of ``%malt``; None if the help was shown."""
    options = _parse(_line_parser(), line or "--help")
    if options is None:
        return None
    if options.action not in ACTIONS:
        raise CellError(f"%malt: {options.action!r} is not known", nearest(options.action, ACTIONS))
    if options.ranks is not None and options.action != "restart":
        raise CellError(f"%malt: -n {options.ranks} goes with restart, not with {options.action}")
    if options.on_death is not None and options.action != "restart":
        raise CellError(f"%malt: --on-death {options.on_death} goes with restart, not with {options.action}")
    return options


def _parse(parser: Parser, line: str) -> argparse.Namespace | None:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CellError(f"{parser.prog}: {error}", f"in {line!r}") from None
    try:
        return parser.parse(words)
    except UsageError as error:
        raise CellError(str(error)) from None
    except SystemExit:
        return None


def _names(option: str, words: Iterable[str]) -> list[str]:
    """Return each name once; commas may separate them."""
    names = list(dict.fromkeys(name for word in words for name in word.split(",") if name))
    for name in names:
        if not name.isidentifier():
            raise CellError(f"%%malt: {option} {name}", f"expected the name of a variable, such as {option} loss")
    return names


def shown(text: str | None, size: int, first: int) -> list[int]:
    """Return the ranks that ``--show`` names; by default the first that there is."""
    if text is None:
        return [first]
    if text == "all":
        return list(range(size))
    try:
        chosen = [int(word) for word in text.split(",")]
    except ValueError:
        chosen = [-1]
    if not all(0 <= rank < size for rank in chosen):
        raise CellError(f"%%malt: --show {text}", f"expected ranks from 0 to {size - 1}, such as 0, or 0,1, or all")
    return chosen
