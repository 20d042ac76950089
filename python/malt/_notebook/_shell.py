"""IPython inside a rank. Its output goes to the notebook instead of a terminal.

With IPython, a cell can use on a rank what it can use in the kernel: magics,
``!commands``, top-level await, ``display``, matplotlib's inline figures, and
tracebacks with the line numbers of the notebook.
"""

# mypy: disallow-untyped-calls=False

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any

from IPython.core.async_helpers import get_asyncio_loop
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets.config import Config

from malt._frames import hidden
from malt._guide import lines


class _Publisher(DisplayPublisher):
    """Sends figures, and the objects given to ``display``, to the notebook."""

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
        """Whether it is not shown."""
        return not self.shell.shown or bool(self.semicolon_at_end_of_expression(self.shell.source))

    def write_output_prompt(self) -> None:
        """Write none: the line begins with the rank."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        """Send it to the notebook."""
        self.shell.show("display", {"data": format_dict, "metadata": md_dict, "transient": None, "update": False})

    def finish_displayhook(self) -> None:
        """Write no empty line."""
        self._is_active = False


class _Formatter(DisplayFormatter):
    """What an object looks like. Exceptions are shown, and the cell goes on; but not if Ctrl-C led to them."""

    parent: Shell

    def format(self, *arguments: Any, **more: Any) -> Any:
        """Return the object's representations, and their metadata."""
        with self.parent.heeding():
            return super().format(*arguments, **more)


class _Compiler(CachingCompiler):
    """Names the code of a cell as a notebook does, for warnings and MALT's messages."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """Return the name of the number-th cell."""
        return f"In[{number}]"


class Shell(InteractiveShell):
    """Runs the cells of one rank.

    Attributes
    ----------
    show : callable
        Called with ("display" or "clear", content) to show something.
    calm : callable
        Returns a context that holds Ctrl-C back.
    pressed : callable
        Returns how often Ctrl-C has raised in this cell.
    shown : bool
        Whether the notebook shows the results and figures of this rank.
    """

    compiler_class = _Compiler
    displayhook_class = _Result
    display_pub_class = _Publisher

    show: Callable[[str, Any], None]
    calm: Callable[[], AbstractContextManager[None]]
    pressed: Callable[[], int]
    shown = True
    source = ""

    def __init__(self, **options: Any) -> None:
        self._trace: tuple[Any, list[str]] = (None, [])
        super().__init__(**options)

    def cell(self, source: str, count: int, shown: bool) -> ExecutionResult:
        """Run a cell as the count-th one of the notebook; raise nothing but Ctrl-C between two steps."""
        self.source, self.execution_count, self.shown = source, count, shown
        formatter = self.display_formatter
        # Figures that are not shown are not drawn.
        formatter.active_types = formatter.format_types if shown else ["text/plain"]
        self._trace = (None, [])
        try:
            result: ExecutionResult = self.run_cell(source, store_history=False)
            return result
        finally:
            # IPython keeps the output of each cell.
            getattr(self.history_manager, "outputs", {}).clear()

    def init_display_formatter(self) -> None:
        """Use our own."""
        self.display_formatter: Any = _Formatter(parent=self)

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Raise Ctrl-C at the end of the context if IPython has caught it there."""
        before = self.pressed()
        try:
            yield
        finally:
            if self.pressed() != before:
                raise KeyboardInterrupt

    def system(self, cmd: str) -> None:
        """Run ``!cmd``."""
        with self.heeding():
            super().system(cmd)

    def getoutput(self, *arguments: Any, **more: Any) -> Any:
        """Run ``x = !cmd``."""
        with self.heeding():
            return super().getoutput(*arguments, **more)

    async def run_ast_nodes(self, *arguments: Any, **more: Any) -> Any:
        """Run the statements of a cell, unless Ctrl-C came while IPython called what it calls before each cell."""
        if self.pressed():
            raise KeyboardInterrupt
        return await super().run_ast_nodes(*arguments, **more)

    def trace(self, error: BaseException) -> list[str]:
        """Return the lines that IPython shows for the exception of the last cell."""
        if isinstance(error, SystemExit):
            return [
                f"SystemExit: {error}",
                "malt: this ends the cell, and not the rank: %malt stop ends the ranks",
            ]
        seen, lines = self._trace
        return lines if seen is error else traceback.format_exception(type(error), error, error.__traceback__)

    def place(self, error: BaseException) -> str:
        """Return the place in the cells where an exception was raised, such as ``line 3: v.sync()``."""
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
        """Show an exception. It has ended the cell, so Ctrl-C comes too late."""
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
        raise RuntimeError(lines("exit does not end a rank", do="Write %malt stop: it ends all ranks."))


def _run_awaiting(cell: Coroutine[Any, Any, ExecutionResult]) -> ExecutionResult:
    """Run a cell that awaits. Ctrl-C ends it at once; it does not go on in the next cell."""
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


def start(
    show: Callable[[str, Any], None],
    calm: Callable[[], AbstractContextManager[None]],
    pressed: Callable[[], int],
    colors: str,
) -> Shell:
    """Make this process's shell."""
    options = Config()
    options.HistoryManager.enabled = False  # no database, and no thread that writes it
    options.InteractiveShell.colors = colors
    Shell.show, Shell.calm, Shell.pressed = staticmethod(show), staticmethod(calm), staticmethod(pressed)
    shell = Shell.instance(config=options)
    shell.loop_runner = _run_awaiting
    warnings.filterwarnings("ignore", "To exit: use")  # how a terminal is left, upon SystemExit
    sys.modules["__main__"] = shell.user_module
    return shell
