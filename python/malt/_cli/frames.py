"""What a host's agent and ``malt run`` say to each other over ssh.

The agent begins with `PREAMBLE`: what comes before it was written by the login shell.
Then it sends frames, and reads lines of JSON. Nothing here is ever executed or unpickled.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

PREAMBLE = b"\0malt agent\n"

OUT, ERR, SAID = 1, 2, 3
"""Kinds of frames: what a rank wrote to its standard output or standard error, and what the agent itself says."""

_HEAD = struct.Struct("<BII")  # kind, rank, bytes that follow

_NOISE = 1 << 14
"""Bytes of a login shell that are kept, to be shown if nothing else comes."""


def frame(kind: int, rank: int, data: bytes) -> bytes:
    """Return one frame."""
    return _HEAD.pack(kind, rank, len(data)) + data


def said(message: dict[str, Any]) -> bytes:
    """Return the frame of what the agent says."""
    return frame(SAID, 0, json.dumps(message).encode())


class Frames:
    """Cuts what an agent sends into frames."""

    def __init__(self) -> None:
        self.noise = b""
        """What came before the agent began."""
        self._begun = False
        self._data = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield the frames that data completes, as kind, rank, bytes."""
        self._data += data
        if not self._begun:
            before, found, after = self._data.partition(PREAMBLE)
            if not found:
                self.noise, self._data = before[-_NOISE:], before[-_NOISE:]
                return
            self.noise, self._data, self._begun = before[-_NOISE:], after, True
        at = 0
        while len(self._data) - at >= _HEAD.size:
            kind, rank, size = _HEAD.unpack_from(self._data, at)
            end = at + _HEAD.size + size
            if len(self._data) < end:
                break
            yield kind, rank, self._data[at + _HEAD.size : end]
            at = end
        self._data = self._data[at:]
