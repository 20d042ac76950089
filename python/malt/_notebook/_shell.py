"""IPython inside a rank: what it shows goes to the notebook instead of a terminal.

With IPython in the rank, cells have there what they have in the kernel: magics,
``!commands``, top-level await, ``display``, matplotlib's inline figures, and
tracebacks that number lines as the notebook does.
"""

# mypy: disallow-untyped-calls=False

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from IPython.core.async_helpers import get_asyncio_loop
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets.config import Config

from malt._frames import hidden


class _Publisher(DisplayPublisher):
    """What ``display`` shows, and figures."""

    shell: Shell

    def publish(self, data: dict[str, Any], metadata: dict[str, Any] | None = None, *_: Any, **more: Any) -> None:
        """Send it to the notebook."""
        shown = {"data": data, "metadata": metadata, "transient": more.get("transient"), "update": more.get("update")}
        self.shell.show("display", shown)

    def clear_output(self, wait: bool = False) -> None:
        """Clear what is under the cell."""
        self.shell.show("clear", wait)


class _Result(DisplayHook):
    """The value of the last expression."""

    shell: Shell

    def quiet(self) -> bool:
        """Whether nobody is to see it."""
        return not self.shell.shown or bool(self.semicolon_at_end_of_expression(self.shell.source))

    def write_output_prompt(self) -> None:
        """Write none: the rank in front is enough."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        """Send it to the notebook."""
        self.shell.show("display", {"data": format_dict, "metadata": md_dict, "transient": None, "update": False})

    def finish_displayhook(self) -> None:
        """Write no empty line."""
        self._is_active = False


class _Compiler(CachingCompiler):
    """Names the code of a cell as a notebook does, for warnings and for malt's own messages."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """Return the name of the number-th cell."""
        return f"In[{number}]"


class Shell(InteractiveShell):
    """Runs the cells of one rank.

    Attributes
    ----------
    show : callable
        Called with what is to be shown: ("display" or "clear", content).
    calm : callable
        Returns a context in which there is no Ctrl-C.
    shown : bool
        Whether the notebook shows the results and figures of this rank.
    """

    compiler_class = _Compiler
    displayhook_class = _Result
    display_pub_class = _Publisher

    show: Callable[[str, Any], None]
    calm: Callable[[], AbstractContextManager[None]]
    shown = True
    source = ""

    def __init__(self, **options: Any) -> None:
        self._trace: tuple[Any, list[str]] = (None, [])
        super().__init__(**options)

    def cell(self, source: str, count: int, shown: bool) -> ExecutionResult:
        """Run a cell as the count-th one of the notebook; nothing is raised but Ctrl-C between two steps."""
        self.source, self.execution_count, self.shown = source, count, shown
        formatter: Any = self.display_formatter
        # Figures that nobody will see are not drawn.
        formatter.active_types = formatter.format_types if shown else ["text/plain"]
        self._trace = (None, [])
        try:
            result: ExecutionResult = self.run_cell(source, store_history=False)
            return result
        finally:
            # IPython keeps what each cell has printed.
            getattr(self.history_manager, "outputs", {}).clear()

    def trace(self, error: BaseException) -> list[str]:
        """Return the lines that IPython shows for what the last cell raised."""
        if isinstance(error, SystemExit):
            return [
                f"SystemExit: {error}",
                "malt: the cell has ended there, the rank has not: %malt stop ends the ranks",
            ]
        seen, lines = self._trace
        return lines if seen is error else traceback.format_exception(type(error), error, error.__traceback__)

    def place(self, error: BaseException) -> str:
        """Return where in the cells an exception was raised, such as ``line 3: v.sync()``."""
        import linecache

        found, trace = "", error.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            if frame.f_globals is self.user_ns:
                line = linecache.getline(frame.f_code.co_filename, trace.tb_lineno).strip()
                found = f"line {trace.tb_lineno}: {line}"
            trace = trace.tb_next
        return found

    def showtraceback(self, *arguments: Any, **more: Any) -> None:
        """Show an exception; it has ended the cell, so it is too late for Ctrl-C."""
        with self.calm(), hidden(sys.exc_info()[1] or Exception()):
            super().showtraceback(*arguments, **more)

    def _get_exc_info(self, exc_tuple: Any = None) -> tuple[type[BaseException], BaseException, TracebackType | None]:
        """Return the traceback that the exception has now: without MALT's frames while it is shown."""
        kind, error, _ = super()._get_exc_info(exc_tuple)
        return kind, error, error.__traceback__

    def _showtraceback(self, etype: type[BaseException], evalue: BaseException, stb: list[str]) -> None:
        if self._trace[0] is None:
            self._trace = (evalue, stb)
        else:  # of what runs after the cell
            print(self.InteractiveTB.stb2text(stb), file=sys.stderr)

    def ask_exit(self) -> None:
        """Refuse ``exit`` and ``quit``."""
        raise RuntimeError("malt: a rank is ended by %malt stop, all together")


def _run_awaiting(cell: Coroutine[Any, Any, ExecutionResult]) -> ExecutionResult:
    """Run a cell that awaits; Ctrl-C ends it where it is, instead of leaving it to the next one."""
    loop = get_asyncio_loop()
    task = loop.create_task(cell)
    try:
        ended: ExecutionResult = loop.run_until_complete(task)
    except KeyboardInterrupt as error:
        task.cancel()
        ended = loop.run_until_complete(task)
        if ended.error_in_exec is not None:  # where it was cancelled
            ended.error_in_exec = error.with_traceback(ended.error_in_exec.__traceback__)
    return ended


def start(show: Callable[[str, Any], None], calm: Callable[[], AbstractContextManager[None]], colors: str) -> Shell:
    """Make this process's shell."""
    options = Config()
    options.HistoryManager.enabled = False  # no database, and no thread that writes it
    options.InteractiveShell.colors = colors
    Shell.show, Shell.calm = staticmethod(show), staticmethod(calm)
    shell = Shell.instance(config=options)
    shell.loop_runner = _run_awaiting
    warnings.filterwarnings("ignore", "To exit: use")  # how a terminal is left, upon SystemExit
    sys.modules["__main__"] = shell.user_module
    return shell
