"""A real Jupyter kernel for tests, and what a notebook would show under its cells."""

from __future__ import annotations

import os
import queue
import re
import signal
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from jupyter_client.manager import KernelManager
from launching import LONG, MARK, marked, wait_for_end

PATIENT = f"%%malt\nimport malt._notebook._rank as own\nown.SETTLE = {LONG}; del own"
"""A cell after which ranks wait for each other, when one has failed, however late one is."""


class Cell:
    """What is under a cell."""

    def __init__(self) -> None:
        self.streams = {"stdout": "", "stderr": ""}
        self.displays: list[dict[str, Any]] = []
        """The content of what was displayed, by display_id where it was updated."""
        self.result: str | None = None
        """What the kernel itself shows as Out[n]."""
        self.name = ""
        """Of the exception."""
        self.error = ""
        """What a notebook shows of it."""

    @property
    def out(self) -> str:
        return self.streams["stdout"]

    @property
    def err(self) -> str:
        return self.streams["stderr"]

    @property
    def texts(self) -> list[str]:
        return [content["data"].get("text/plain", "") for content in self.displays]

    def __repr__(self) -> str:
        return f"{self.streams} {self.texts} {self.error}"


class Kernel:
    """A kernel of its own, of which nothing may be left in the end.

    Parameters
    ----------
    env : str
        Variables to be set for it.
    """

    def __init__(self, **env: str) -> None:
        self._mark = uuid.uuid4().hex
        self._folder = tempfile.TemporaryDirectory(prefix="kernel-")
        self.folder = Path(self._folder.name)
        self.tmp = self.folder / "tmp"
        for name in ("tmp", "ipython", "runtime"):
            (self.folder / name).mkdir()
        runtime = os.environ.get("JUPYTER_RUNTIME_DIR")
        os.environ["JUPYTER_RUNTIME_DIR"] = str(self.folder / "runtime")  # where the manager writes
        try:
            self._manager = KernelManager(kernel_name="python3")
            self._manager.start_kernel(
                cwd=str(self.folder),
                env={
                    **os.environ,
                    MARK: self._mark,
                    "TMPDIR": str(self.tmp),
                    "IPYTHONDIR": str(self.folder / "ipython"),
                    "OMP_NUM_THREADS": "1",
                    **env,
                },
            )
        finally:
            if runtime is None:
                del os.environ["JUPYTER_RUNTIME_DIR"]
            else:
                os.environ["JUPYTER_RUNTIME_DIR"] = runtime
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(LONG)
        self.pid: int = self._manager.provisioner.pid  # type: ignore[union-attr]

    def start(self, code: str) -> Callable[[], Cell]:
        """Begin to run a cell; the result waits for its end."""
        request = self._client.execute(code, stop_on_error=False)
        self._cell = Cell()
        return lambda: self._finish(request, None)

    def wait_for(self, pattern: str) -> None:
        """Wait until the cell that runs has printed it."""
        self._finish(None, pattern)

    def run(self, code: str) -> Cell:
        """Run a cell."""
        return self.start(code)()

    def ok(self, code: str) -> Cell:
        """Run a cell that must not fail."""
        cell = self.run(code)
        assert not cell.error, cell.error
        return cell

    def interrupt(self) -> None:
        """Press the stop button."""
        self._manager.interrupt_kernel()

    def _finish(self, request: str | None, pattern: str | None) -> Cell:
        cell, deadline = self._cell, time.monotonic() + LONG
        while pattern is None or not re.search(pattern, cell.out + cell.err, re.MULTILINE):
            try:
                message = self._client.get_iopub_msg(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"the cell has not ended, or not printed {pattern!r}: {cell}") from None
            kind, content = message["header"]["msg_type"], message["content"]
            if (
                kind == "status"
                and content["execution_state"] == "idle"
                and message["parent_header"].get("msg_id") == request
            ):
                break
            self._take(kind, content)
        return cell

    def _take(self, kind: str, content: dict[str, Any]) -> None:
        cell = self._cell
        if kind == "stream":
            cell.streams[content["name"]] += content["text"]
        elif kind == "display_data":
            cell.displays.append(content)
        elif kind == "update_display_data":
            place = content["transient"]["display_id"]
            for shown in cell.displays:
                if shown.get("transient", {}).get("display_id") == place:
                    shown["data"] = content["data"]
        elif kind == "execute_result":
            cell.result = content["data"]["text/plain"]
        elif kind == "error":
            cell.name = content["ename"]
            cell.error = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(content["traceback"]))

    def pids(self) -> list[int]:
        """Process ids of the ranks."""
        return [int(line.split()[1]) for line in self.ok("%malt status").out.splitlines()[2:]]

    def close(self, kill: bool = False) -> None:
        """End the kernel, and assert that everything ended with it."""
        if kill:
            os.kill(self.pid, signal.SIGKILL)
            assert wait_for_end(self.pid)
        else:
            self._client.shutdown()
            assert wait_for_end(self.pid), "the kernel hangs"
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        left = [pid for pid in marked(self._mark) if not wait_for_end(pid, 3.0)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        files = os.listdir(self.tmp) + [name for name in os.listdir("/dev/shm") if "malt" in name]
        self._folder.cleanup()
        assert not left, f"processes left: {left}"
        assert not files, f"files left: {files}"

    def __enter__(self) -> Kernel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(kill=kind is not None)
