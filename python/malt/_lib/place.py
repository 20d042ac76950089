"""Where in the user's program a call is, told to the other ranks.

They show it when a wait of theirs gets long, or when the ranks are found in different
calls. So every call tells it beforehand, and that has to cost next to nothing: a
call from the same instruction as the one before, as in a loop, tells nothing.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from malt import _frames

from .loading import lib

wanted = False
"""Whether there is another rank to read it."""

LONGEST = 160  # bytes that malt_at takes
KEPT = 256  # places

_code: CodeType | None = None  # of the place told last
_instruction = -1
_texts: dict[tuple[int, int], tuple[CodeType, bytes]] = {}  # holds the code, so that its id is its own


def tell(depth: int = 4) -> None:
    """Tell the line of the user's that is calling malt; for `Place.claim`.

    ``depth`` is how far up that line is, but for longer ways: by default above tell, claim, a
    function of this folder, and one of the package.
    """
    if wanted:
        try:
            frame = sys._getframe(depth)
        except ValueError:
            return
        if frame.f_lasti != _instruction or frame.f_code is not _code:
            _tell(frame)


def _tell(frame: FrameType | None) -> None:
    """Tell the line of the user's from which ``frame`` was called, unless it is known."""
    global _code, _instruction
    while frame is not None and not (frame.f_code is _code and frame.f_lasti == _instruction):
        key = id(frame.f_code), frame.f_lasti
        if key in _texts or not _frames.ours(frame):
            break
        frame = frame.f_back
    else:
        return
    _code, _instruction = frame.f_code, frame.f_lasti
    if key not in _texts:
        if len(_texts) >= KEPT:
            _texts.clear()
        _texts[key] = _code, _text(frame)
    lib.malt_at(_texts[key][1])


def _text(frame: FrameType) -> bytes:
    """Return file, line and what stands there."""
    place = _frames.place(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    return place.replace("\0", " ").encode("utf-8", "replace")[:LONGEST]
