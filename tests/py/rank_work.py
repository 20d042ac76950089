"""What the tests of ``malt.run`` have ranks do: in a module, since ranks import it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import numpy as np

import malt


def place(*words: str, **more: Any) -> tuple[Any, ...]:
    return int(os.environ["MALT_RANK"]), int(os.environ["MALT_SIZE"]), words, more


def total() -> float:
    return float(malt.allreduce(float(malt.rank()), "sum"))


def large(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x + int(os.environ["MALT_RANK"])


def shout() -> None:
    print("out", os.environ["MALT_RANK"])
    print("err", os.environ["MALT_RANK"], file=sys.stderr)


class OwnError(Exception):
    """Cannot be made again from its args, as pickle would."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"own {a} {b}")


def fail(kind: str) -> None:
    if os.environ["MALT_RANK"] != "1":
        signal.pause()
    if kind == "own":
        raise OwnError(1, 2)
    raise KeyError("the reason")


def collective_after_failure() -> None:
    malt.barrier()
    if malt.rank() == 2:
        raise ValueError("the cause")
    malt.barrier()


def die(how: str) -> None:
    if os.environ["MALT_RANK"] == "1":
        print("last words", file=sys.stderr, flush=True)
        if how == "signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        sys.exit(int(how))
    if how != "0":
        signal.pause()


def wait() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()


def unsendable() -> Any:
    return threading.Lock()


def wrong_option() -> None:
    """Fail in the same way on each rank."""
    malt.Vector(3, start="some")  # type: ignore[call-overload]
