"""A rank that syncs on and on, and notes when it first has after another one was killed."""

from __future__ import annotations

import argparse
import mmap
import time
import warnings

import numpy as np

import malt

from .mortal_page import ALIVE, DONE, END, KILLS, READY, TIME, words


def hold(size: int) -> mmap.mmap | None:
    """Return memory in pages of 4 KB, which the kernel gives back one by one."""
    if not size:
        return None
    held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    np.frombuffer(held, np.uint8)[:: mmap.PAGESIZE] = 1
    return held


def main() -> None:
    """Go on until the driver says that it is enough, or kills this rank."""
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--size", type=int)
    parser.add_argument("--hold", type=int)
    parser.add_argument("--consistency")
    options = parser.parse_args()
    warnings.simplefilter("ignore", malt.DeathWarning)
    page, own = words(options.page, malt.size())
    mine = own[malt.rank()]
    held = hold(options.hold)
    v = malt.Vector(np.ones(max(1, options.size // 4), np.float32), consistency=options.consistency)
    v.sync()
    mine[READY] = 1
    while not page[END]:
        kills = page[KILLS]
        v.sync()
        if mine[DONE] < kills:  # the sync has begun after the kill
            mine[TIME] = time.monotonic_ns()
            mine[DONE] = kills
        mine[ALIVE] = len(malt.alive())
    del held


if __name__ == "__main__":
    main()
