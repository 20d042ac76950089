"""``%%malt`` and ``%malt``: their options, and what they do."""

from __future__ import annotations

import argparse
import ast
import atexit
import pickle
import shlex
import sys
import uuid
from collections.abc import Iterable
from typing import Any

from malt import _machine
from malt._cli.options import Parser, UsageError, nearest, ranks
from malt._pickles import packed

from ._cell import Round, StopButton
from ._errors import CellError, Interrupted, RankDiedError
from ._outcome import interrupted, raised
from ._show import Screen
from ._status import table
from ._team import Team

CELL = """\
Runs a cell on all ranks, which are started by the first one. Variables stay from
cell to cell. What the ranks print is shown with the rank in front; an exception
on one rank interrupts the others. The stop button interrupts all ranks."""

CELL_EXAMPLES = """\
  %%malt -n 4                    on four ranks
  %%malt                         on those that are there
  %%malt -i rate data -o loss    send two variables; get a list with each rank's loss
  %%malt --show all              the figures and results of all ranks, not of rank 0 alone
"""

LINE = "Shows, restarts or ends the ranks that %%malt has started."

LINE_EXAMPLES = """\
  %malt status                   which ranks there are, their memory and time
  %malt restart                  as many new ranks; their variables are gone
  %malt restart -n 2             another number of them
  %malt stop                     no ranks, until the next %%malt -n
"""

ACTIONS = ("status", "restart", "stop")


def _cell_parser() -> Parser:
    made = Parser("", "%%%%malt [-n RANKS] [-i NAME …] [-o NAME …] [--show RANKS]", CELL, CELL_EXAMPLES)
    made.prog = "%%malt"
    made.add_argument("-n", "--ranks", type=ranks, metavar="RANKS", help="how many ranks; those that run, by default")
    names: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "NAME"}
    made.add_argument("-i", "--input", **names, help="variables of the notebook that all ranks get")
    made.add_argument("-o", "--output", **names, help="variables of the ranks that the notebook gets: lists by rank")
    made.add_argument(
        "--show", default="0", metavar="RANKS", help="whose results and figures are shown: 0 (default), 0,2 or all"
    )
    return made


def _line_parser() -> Parser:
    made = Parser("", "%%malt status | restart [-n RANKS] | stop", LINE, LINE_EXAMPLES)
    made.prog = "%malt"
    made.add_argument("action", metavar="status | restart | stop")
    made.add_argument(
        "-n", "--ranks", type=ranks, metavar="RANKS", help="how many ranks; as many as before, by default"
    )
    return made


class Magics:
    """The commands of one notebook, and its ranks.

    Parameters
    ----------
    shell : InteractiveShell
        The kernel's.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._team: Team | None = None
        self._size: int | None = None  # of the last team
        self._lost = ""  # why the last one is gone, until that has been said

    # ------------------------------------------------------------------- commands

    def cell(self, line: str, cell: str | None = None) -> None:
        """Run a cell on several ranks; ``%%malt --help`` tells the options."""
        options = _parse(_cell_parser(), line)
        if options is None:
            return
        self._check_syntax(cell or "")
        with StopButton() as button:
            values = self._values(_names("-i", options.input))
            wanted = _names("-o", options.output)
            team = self._running(options.ranks, button)
            show = _shown(options.show, team.size)
            request = {
                "source": cell if (cell or "").startswith("%%") else f"# %%malt {line}\n{cell}",  # lines as in the cell
                "count": self._count(),
                "values": values,
                "wanted": wanted,
                "show": show,
            }
            team.screen.several = len(show) > 1
            self._run(team, request, button)

    def line(self, line: str) -> None:
        """Show, restart or end the ranks of ``%%malt``; ``%malt --help`` tells more."""
        options = _parse(_line_parser(), line or "--help")
        if options is None:
            return
        if options.action not in ACTIONS:
            raise CellError(f"%malt: {options.action!r}: {nearest(options.action, ACTIONS)}")
        if options.ranks is not None and options.action != "restart":
            raise CellError(f"%malt: -n {options.ranks} goes with restart, not with {options.action}")
        with StopButton() as button:
            if options.action == "status":
                self._status()
                return
            before = self._team
            if before is None and options.action == "stop":
                print("malt: there are no ranks")
                return
            self.close()
            if options.action == "stop":
                print(f"malt: {_ranks(self._size)} ended")
                return
            self._lost = ""
            team = self._start(options.ranks or self._chosen(None), button)
            print(f"malt: {_ranks(team.size, 'new ')}" + ("; their variables are gone" if before else ""))

    def close(self, mute: bool = False) -> None:
        """End the ranks, if there are any."""
        team, self._team = self._team, None
        if team is not None:
            team.screen.muted = mute
            team.close()

    # ------------------------------------------------------------------ the ranks

    def _running(self, size: int | None, button: StopButton) -> Team:
        """Return the ranks, started if need be."""
        team = self._team
        if team is None:
            team = self._start(self._chosen(size), button)
            if self._lost:
                print(f"malt: {_ranks(team.size, 'new ')}, without variables: {self._lost}", file=sys.stderr)
                self._lost = ""
        elif size not in (None, team.size):
            raise CellError(
                f"%%malt: -n {size}, but {_ranks(team.size)} are running: leave -n out to use them, or start anew with "
                f"%malt restart -n {size}, which loses their variables"
            )
        elif team.look():
            raise self._died(team, "since the last cell; this cell has not been run")
        return team

    def _chosen(self, size: int | None) -> int:
        found = size or self._size
        if found is None:
            cores = _machine.cores()
            raise CellError(f"%%malt: say how many ranks to start, such as -n {cores} (one for each core)")
        return found

    def _start(self, size: int, button: StopButton) -> Team:
        try:
            team = Team(size, Screen(self._shell, size))
        except OSError as error:
            raise CellError(
                f"%%malt: {_ranks(size)} could not be started: {error}: start fewer, or raise ulimit -n or -u"
            ) from None
        try:
            started = Round(team, button)
            colors = getattr(self._shell, "colors", "nocolor")
            started.run("start", {"path": list(sys.path), "argv": list(sys.argv), "colors": colors})
            if started.stopped:
                raise Interrupted("the ranks had not started yet, and have been ended")
        except BaseException:
            team.close(kill=True)
            raise
        self._size = size
        if team.broken:
            raise self._died(team, "while the ranks were started")
        self._team = team
        return team

    def _died(self, team: Team, when: str) -> RankDiedError:
        """End the ranks because one has ended, and return the error that says so."""
        self._team = None
        rank, sentence = team.bury()
        self._lost = sentence
        others = f"; the other {_ranks(team.size - 1)} were ended" if team.size > 1 else ""
        return RankDiedError(
            f"malt: {sentence} {when}{others}. Their variables are gone: the next %%malt starts "
            f"{_ranks(team.size, 'new ')}",
            rank.number,
        )

    def _run(self, team: Team, request: dict[str, Any], button: StopButton) -> None:
        """Run a cell, and raise what it ended with."""
        team.cells += 1
        ran = Round(team, button)
        try:
            ran.run("cell", request)
        except BaseException:  # the kernel could not show something, and the ranks are somewhere in the cell
            self._team, self._lost = None, "the notebook failed while it showed what those before did"
            team.close(kill=True)
            raise
        if ran.killed:
            self._team = None
            self._lost = "those before did not react to the stop button"
            team.close(kill=True)
            raise Interrupted(
                f"the ranks did not react and have been ended, with their variables: the next %%malt starts "
                f"{_ranks(team.size, 'new ')}"
            )
        if team.broken:
            raise self._died(team, "in this cell")
        failed = {rank: answer["error"] for rank, answer in ran.answers.items() if answer["error"]}
        if failed or ran.stopped:
            self._settle(team, ran, button)
        if ran.stopped:
            raise interrupted(ran.answers)
        if failed:
            raise raised(failed, team.size)
        values = [ran.answers[rank]["values"] for rank in range(team.size)]
        for name in request["wanted"]:
            self._shell.user_ns[name] = [_load(name, rank, value[name]) for rank, value in enumerate(values)]

    def _settle(self, team: Team, ran: Round, button: StopButton) -> None:
        """Bring ranks that a failed cell left at different places in step again."""
        if team.size == 1 or not all(answer["joined"] for answer in ran.answers.values()):
            return
        settle = Round(team, button)
        settle.run("settle", uuid.uuid4().hex)
        if team.broken:
            raise self._died(team, "after this cell")
        if not all(settle.answers.values()):
            print("malt: the ranks could not be brought in step again: %malt restart", file=sys.stderr)

    def _status(self) -> None:
        team = self._team
        if team is not None and team.look():
            raise self._died(team, "since the last cell")
        print("malt: there are no ranks: %%malt -n 4 starts four" if team is None else table(team))

    # --------------------------------------------------------------- the notebook

    def _check_syntax(self, cell: str) -> None:
        """Raise what is wrong with a cell before any rank gets it, once."""
        if cell.startswith("%%"):
            return  # it is another command's
        try:
            source = self._shell.transform_cell(f"#\n{cell}")
            flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            compile(source, f"Cell In[{self._count()}]", "exec", flags)
        except SyntaxError as error:
            raise CellSyntaxError(self._shell, error) from None

    def _count(self) -> int:
        return max(1, int(self._shell.execution_count) - 1)  # of the cell that is running

    def _values(self, names: Iterable[str]) -> dict[str, bytes]:
        values = {}
        for name in names:
            if name not in self._shell.user_ns:
                raise CellError(f"%%malt: -i {name}: the notebook has no variable of that name")
            value = self._shell.user_ns[name]
            try:
                values[name], names_main = packed(value)
            except TypeError as error:
                kind = type(value).__qualname__
                raise CellError(f"%%malt: -i {name}: a {kind} cannot be sent to the ranks: {error}") from None
            if names_main:
                raise CellError(
                    f"%%malt: -i {name}: what is defined in the notebook cannot be sent to the ranks without "
                    "cloudpickle: pip install cloudpickle, or define it in a %%malt cell"
                )
        return values


class CellSyntaxError(CellError):
    """The cell is not Python."""

    def __init__(self, shell: Any, error: SyntaxError) -> None:
        super().__init__(str(error))
        self._lines = shell.SyntaxTB.structured_traceback(type(error), error, [])

    def _render_traceback_(self) -> list[str]:
        lines: list[str] = self._lines
        return lines


def _load(name: str, rank: int, data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except Exception as error:
        raise CellError(
            f"%%malt: -o {name} of rank {rank} cannot be received: {type(error).__name__}: {error}"
        ) from None


def _parse(parser: Parser, line: str) -> argparse.Namespace | None:
    """Return the options; None if the help has been shown instead."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CellError(f"{parser.prog}: {error} in {line!r}") from None
    try:
        return parser.parse(words)
    except UsageError as error:
        raise CellError(str(error)) from None
    except SystemExit:
        return None


def _names(option: str, words: Iterable[str]) -> list[str]:
    """Return names that may be separated by commas, each once."""
    names = list(dict.fromkeys(name for word in words for name in word.split(",") if name))
    for name in names:
        if not name.isidentifier():
            raise CellError(f"%%malt: {option} {name}: the name of a variable is expected, such as {option} loss")
    return names


def _shown(text: str, size: int) -> list[int]:
    """Return the ranks that ``--show`` names."""
    if text == "all":
        return list(range(size))
    try:
        chosen = [int(word) for word in text.split(",")]
    except ValueError:
        chosen = [-1]
    if not all(0 <= rank < size for rank in chosen):
        raise CellError(f"%%malt: --show {text}: ranks from 0 to {size - 1} are expected, such as 0, or 0,1, or all")
    return chosen


def _ranks(size: int | None, kind: str = "") -> str:
    return f"{size} {kind}rank{'s'[: size != 1]}"


_registered: dict[int, Magics] = {}


def register(shell: Any) -> None:
    """Add the commands to IPython, once."""
    if id(shell) in _registered:
        return
    magics = _registered[id(shell)] = Magics(shell)
    shell.register_magic_function(magics.cell, "cell", "malt")
    shell.register_magic_function(magics.line, "line", "malt")
    atexit.register(magics.close, mute=True)


def unregister(shell: Any) -> None:
    """End the ranks and take the commands away."""
    magics = _registered.pop(id(shell), None)
    if magics is None:
        return
    magics.close()
    atexit.unregister(magics.close)
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop("malt", None)
