"""The commands ``%%malt`` and ``%malt``."""

from __future__ import annotations

import ast
import atexit
import os
import sys
import uuid
from html import escape
from typing import Any

from malt._cli import report, trace
from malt._cli.facts import facts
from malt._errors import UnsupportedError
from malt._ranks import machine
from malt._ranks.run import check_on_death, death
from malt._ranks.story import Story

from ._cell import Round, StopButton
from ._errors import CellError, CellSyntaxError, Interrupted, RankDiedError
from ._options import cell_options, line_options, shown
from ._outcome import interrupted, raised
from ._show import Screen
from ._status import table
from ._team import Team
from ._values import load, pack


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
        self._on_death: str | None = None  # of the last team
        self._records = False  # whether the last team does
        self._lost = ""  # why the last one is gone, until that has been said

    # ------------------------------------------------------------------- commands

    def cell(self, line: str, cell: str | None = None) -> None:
        """Run a cell on several ranks; ``%%malt --help`` shows the options."""
        options = cell_options(line)
        if options is None:
            return
        self._check_syntax(cell or "")
        with StopButton() as button:
            values = pack(self._shell.user_ns, options.input)
            team = self._running(options.ranks, options.on_death, button, options.report)
            show = shown(options.show, team.size, min(team.present))
            request = {
                "source": cell if (cell or "").startswith("%%") else f"# %%malt {line}\n{cell}",  # lines as in the cell
                "count": self._count(),
                "values": values,
                "wanted": options.output,
                "show": show,
            }
            team.screen.several = len(show) > 1
            if options.report:
                team.collector.look()  # what was before the cell
                team.story = Story(keep=False)
            try:
                self._run(team, request, button)
            finally:
                if team.story is not None:
                    self._report(team, team.story, line)
                    team.story = None

    def _report(self, team: Team, story: Story, line: str) -> None:
        """Show what the ranks have done."""
        team.collector.look()
        found = facts(team.job.ranks, story, ["%%malt", *line.split()], os.environ)
        plain = "\n".join(found["verdict"]) or "malt: the ranks have called nothing of MALT in this cell"
        if not hasattr(self._shell, "kernel"):
            print(plain)
            return
        page = escape(report.page(found, trace.left_out(story)))
        frame = f'<iframe title="Report" srcdoc="{page}" style="width: 100%; height: 40rem; border: 0"></iframe>'
        self._shell.display_pub.publish({"text/html": frame, "text/plain": plain}, {})

    def line(self, line: str) -> None:
        """Show, restart or end the ranks of ``%%malt``; ``%malt --help`` shows the options."""
        options = line_options(line)
        if options is None:
            return
        with StopButton() as button:
            if options.action == "status":
                self._status()
                return
            before = self._team
            if before is None and options.action == "stop":
                print("malt: no ranks are running")
                return
            self.close()
            if options.action == "stop":
                print(f"malt: {_ranks(self._size)} ended")
                return
            self._lost = ""
            team = self._start(options.ranks or self._chosen(None), options.on_death, button)
            print(f"malt: {_ranks(team.size, 'new ')}" + ("; their variables are gone" if before else ""))

    def close(self, mute: bool = False) -> None:
        """End the ranks, if there are any."""
        team, self._team = self._team, None
        if team is not None:
            team.screen.muted = mute
            team.close()

    # ------------------------------------------------------------------ the ranks

    def _running(self, size: int | None, on_death: str | None, button: StopButton, records: bool) -> Team:
        """Return the ranks; start them if there are none."""
        team = self._team
        if team is None:
            team = self._start(self._chosen(size), on_death, button, records)
            if self._lost:
                print(f"malt: {_ranks(team.size, 'new ')}, without variables: {self._lost}", file=sys.stderr)
                self._lost = ""
        elif size not in (None, team.size):
            raise CellError(
                f"%%malt: -n {size}, but {_ranks(team.size)} are running",
                do=f"Leave -n out to use them. %malt restart -n {size} starts others.",
            )
        elif on_death not in (None, (running := team.on_death or os.environ.get("MALT_ON_DEATH") or "stop")):
            raise CellError(
                f"%%malt: --on-death {on_death}, but {_ranks(team.size)} run with --on-death {running}",
                do=f"Leave it out to use them. %malt restart --on-death {on_death} starts others.",
            )
        elif records and not team.records:
            raise CellError(
                f"%%malt: --report, but {_ranks(team.size)} are running that were started without it",
                do="%malt stop ends them; then %%malt --report starts others.",
            )
        elif team.look():
            raise self._died(team, "since the last cell; this cell has not been run")
        return team

    def _chosen(self, size: int | None) -> int:
        """Return how many ranks to start: as asked for, else as many as last time, else one for each core."""
        found = size or self._size
        if found is None:
            found = machine.cores()
            print(f"malt: {_ranks(found)}, one for each core of this machine; -n sets another number")
        return found

    def _start(self, size: int, on_death: str | None, button: StopButton, records: bool = False) -> Team:
        on_death, records = on_death or self._on_death, records or self._records
        try:
            check_on_death(on_death)
        except (ValueError, UnsupportedError) as error:  # of MALT_ON_DEATH
            raise CellError(str(error)) from None
        try:
            team = Team(size, Screen(self._shell, size), on_death, records)
        except OSError as error:
            raise CellError(
                f"%%malt: {_ranks(size)} could not be started", str(error), "Start fewer, or raise ulimit -n or -u."
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
        if team.broken:
            raise self._died(team, "while the ranks were started")
        if size != self._size:
            for note in machine.crowding(size, {}):
                print(f"malt: {note}", file=sys.stderr)
        self._size, self._on_death, self._records = size, on_death, records
        self._team = team
        return team

    def _died(self, team: Team, when: str) -> RankDiedError:
        """End the ranks because one has ended; return the error for it."""
        self._team = None
        rank, sentence = team.bury()
        self._lost = sentence
        rest = len(team.present) - 1  # others have died before
        others = f"; the other {f'{rest} ranks were' if rest > 1 else 'rank was'} ended" if rest else ""
        return RankDiedError(
            f"malt: {sentence} {when}{others}. The variables are gone: the next %%malt starts "
            f"{_ranks(team.size, 'new ')}",
            rank.number,
        )

    def _run(self, team: Team, request: dict[str, Any], button: StopButton) -> None:
        """Run a cell, and raise the exception that it ended with."""
        team.cells += 1
        ran = Round(team, button)
        try:
            ran.run("cell", request)
        except BaseException:  # the kernel could not show something, and the ranks are somewhere in the cell
            self._team, self._lost = None, "the notebook failed while it showed the output of the last ones"
            team.close(kill=True)
            raise
        if ran.killed:
            self._team = None
            self._lost = "the last ones did not react to the stop button"
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
        for name in request["wanted"]:
            self._shell.user_ns[name] = [
                load(name, rank.number, ran.answers[rank.number]["values"][name])
                if rank.number in ran.answers
                else death(rank)
                for rank in team.job.ranks
            ]

    def _settle(self, team: Team, ran: Round, button: StopButton) -> None:
        """Bring ranks that a failed cell left at different places in step again."""
        if team.size == 1 or not all(answer["joined"] for answer in ran.answers.values()):
            return
        settle = Round(team, button)
        settle.run("settle", uuid.uuid4().hex)
        if team.broken:
            raise self._died(team, "after this cell")
        if not all(settle.answers.values()):
            print("malt: the ranks could not be brought in step again: run %malt restart", file=sys.stderr)

    def _status(self) -> None:
        team = self._team
        if team is not None and team.look():
            raise self._died(team, "since the last cell")
        print(
            "malt: no ranks are running: %%malt starts one for each core, %%malt -n 4 starts four"
            if team is None
            else table(team)
        )

    # --------------------------------------------------------------- the notebook

    def _check_syntax(self, cell: str) -> None:
        """Raise the syntax error of a cell once, before any rank gets the cell."""
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
    """End the ranks and remove the commands."""
    magics = _registered.pop(id(shell), None)
    if magics is None:
        return
    magics.close()
    atexit.unregister(magics.close)
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop("malt", None)
