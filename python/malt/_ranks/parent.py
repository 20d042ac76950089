"""A process that ends with the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

# Looked up at import: between fork and exec there must be no loading of anything.
_prctl = ctypes.CDLL(None).prctl


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone.

    The setting outlives exec but not fork: it holds for this process alone. It
    is bound to the *thread* of the parent that started this process.

    Parameters
    ----------
    parent : int
        The process id of the parent, as the parent itself knows it. Where the
        parent died before this call, the kernel has nothing to wait for any
        more, so this process ends here.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
