"""The output under a cell: lines, results and figures of the ranks."""

from __future__ import annotations

import math
import sys
import time
import uuid
from typing import Any

from malt._ranks.output import PROGRESS, Lines

REDRAW = 0.2
"""Seconds after which progress bars are drawn again, in place."""


class Screen:
    """Shows the output of the ranks. Each line begins with the rank.

    Progress bars, that is lines rewritten with carriage returns, have a place of
    their own under the cell, one line for each rank. A terminal has no such place:
    there they are printed once a second.

    Parameters
    ----------
    shell : InteractiveShell
        The kernel's.
    size : int
        How many ranks there are.
    """

    def __init__(self, shell: Any, size: int) -> None:
        self.muted = False
        """Whether nothing is shown any more."""
        self.several = False
        """Whether results and figures of more than one rank are shown."""
        self._shell = shell
        self._width = len(str(size - 1))
        self._in_place = hasattr(shell, "kernel")
        every = math.inf if self._in_place else PROGRESS
        self._lines = {(rank, stream): Lines(every) for rank in range(size) for stream in (1, 2)}
        self._bars = ""  # what their place shows
        self._place = ""  # its name; none in this cell so far
        self._drawn = -math.inf

    def __call__(self, rank: int, stream: int, data: bytes) -> None:
        """Take output of a rank to stdout (1) or stderr (2); empty bytes are the end."""
        source = self._lines[rank, stream]
        lines = source.feed(data) if data else source.rest()
        if self.muted:
            return
        if lines:
            self._write(stream, self._tagged(rank, b"\n".join(lines).decode(errors="replace")) + "\n")
        if self._in_place and (source.rewritten or self._bars):
            self._draw()

    def display(self, rank: int, content: dict[str, Any]) -> None:
        """Show a result, a figure, or an object given to `display`."""
        if self.muted:
            return
        data = dict(content["data"])
        if "text/html" in data:
            data["text/html"] = f'<pre style="margin: 0">[{rank}]</pre>\n{data["text/html"]}'
        elif self.several and set(data) - {"text/plain"}:  # a picture has no room for its rank
            self._write(1, self._tagged(rank, "") + "\n")
        if "text/plain" in data:
            data["text/plain"] = self._tagged(rank, data["text/plain"])
        if self._in_place:
            self._shell.display_pub.publish(
                data, content["metadata"] or {}, transient=content["transient"] or {}, update=bool(content["update"])
            )
        elif "text/plain" in data:
            self._write(1, data["text/plain"] + "\n")

    def clear(self, wait: bool) -> None:
        """Clear what is under the cell."""
        self._place = self._bars = ""
        self._shell.display_pub.clear_output(wait)

    def finish(self) -> None:
        """Show lines that have not ended when the cell ends."""
        for rank, stream in self._lines:
            self(rank, stream, b"")
        if self._bars:
            self._draw(at_once=True)
        self._place = ""

    def _tagged(self, rank: int, text: str) -> str:
        tag = f"[{rank:{self._width}}] "
        return tag + text.replace("\n", "\n" + tag)

    def _write(self, stream: int, text: str) -> None:
        file = sys.stdout if stream == 1 else sys.stderr
        file.write(text)
        if not self._in_place:  # a kernel has a thread for that
            file.flush()

    def _draw(self, at_once: bool = False) -> None:
        now = time.monotonic()
        if now - self._drawn < REDRAW and not at_once:
            return
        bars = "\n".join(
            self._tagged(rank, lines.rewritten.decode(errors="replace"))
            for (rank, _), lines in self._lines.items()
            if lines.rewritten.strip()
        )
        if bars == self._bars:
            return
        new = not self._place
        self._place = self._place or uuid.uuid4().hex
        self._bars, self._drawn = bars, now
        self._shell.display_pub.publish({"text/plain": bars}, {}, transient={"display_id": self._place}, update=not new)
