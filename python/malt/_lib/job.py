"""The job: joining it, leaving it, and its collective calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from malt._errors import DEATHS, death

from . import place, stacks
from .convert import DTYPES, check, describe_array, encoded
from .loading import ffi, lib, mark_ended
from .waiting import JOB


def init(options: str, job_timeout: float) -> None:
    """Join, unless an init that Ctrl-C has ended just did; ``job_timeout`` is what a timeout of None means."""
    told = encoded(options or None)
    stacks.show()
    with JOB.claim():
        JOB.set_timeout(job_timeout)
        if lib.malt_size() < 0:
            JOB.wait(lambda ms: int(lib.malt_init(told, ms)), job_timeout)
    place.wanted = lib.malt_size() > 1


def witness() -> None:
    """Vote for a host without ranks, as the environment says, until no rank is left."""
    check(lib.malt_witness(ffi.NULL))


def who() -> tuple[int, int, int, int]:
    """Rank, size, local rank, generation."""
    return lib.malt_rank(), lib.malt_size(), lib.malt_local_rank(), lib.malt_generation()


def living() -> list[int]:
    """Return the ranks that take part, ascending."""
    most = lib.malt_size()
    ranks, count = ffi.new("int32_t[]", max(most, 1)), ffi.new("uint32_t *")
    check(lib.malt_alive(ranks, most, count))
    return list(ranks[0 : count[0]])


def generation() -> int:
    """Return the membership number."""
    return int(lib.malt_generation())


def confirm(timeout: float | None) -> None:
    """Return when this rank is known to take part still."""
    with JOB.claim():
        JOB.together(lib.malt_confirm, timeout)


def expel(rank: int) -> None:
    """Kill the process of a rank."""
    check(lib.malt_expel(rank))


def mark(text: str) -> None:
    """Show a text to people who watch this rank."""
    check(lib.malt_mark(encoded(text)))


def log(name: str, value: float) -> None:
    """Show them a value."""
    check(lib.malt_log(encoded(name), value))


def abort(error: BaseException) -> None:
    """Tell the other ranks that this one is about to end after an error, or after the death of another."""
    if not mark_ended():
        return
    because, peer = ffi.NULL, death(error)
    if peer is not None and peer.rank is not None and peer.kind in DEATHS:
        why = ffi.new("char[]", encoded(peer.why))
        because = ffi.new(
            "malt_error_info *",
            {"code": lib.MALT_EPEER, "rank": peer.rank, "death": DEATHS.index(peer.kind) + 1, "why": why},
        )
    lib.malt_abort(encoded(f"{type(error).__name__}: {error}"[:500].replace("\0", " ")), because)


def barrier(timeout: float | None) -> None:
    """Wait for all ranks."""
    with JOB.claim():
        JOB.together(lib.malt_barrier, timeout)


def allreduce(data: np.ndarray[Any, Any], op: str, timeout: float | None) -> None:
    """Combine a contiguous float32 or float64 array over all ranks, in place."""
    pointer, name = ffi.from_buffer(data), op.encode()
    if data.ndim == 1:
        with JOB.claim():
            JOB.together(lib.malt_allreduce, timeout, pointer, data.size, DTYPES[data.dtype], name)
        return
    array = ffi.new("malt_array *")
    keep = describe_array(array, data.shape, data.dtype)
    with JOB.claim():
        JOB.together(lib.malt_allreduce_array, timeout, pointer, array, name)
    del keep


def allgather(
    data: bytes, decode: Callable[[memoryview], Any], timeout: float | None, call: str = "", given: str = ""
) -> list[Any]:
    """Return what decode makes of every rank's data; it gets borrowed memory.

    ``call`` is what this is made for, if it is not ``malt.allgather``, and ``given`` what that is
    given: ranks that differ in either get a `MismatchError`.
    """
    with JOB.claim():
        JOB.together(lib.malt_allgather, timeout, data, len(data), encoded(call), encoded(given))
        return [_received(rank, decode) for rank in living()]


def broadcast(data: bytes, root: int, decode: Callable[[memoryview], Any], timeout: float | None) -> Any:
    """Return what decode makes of root's data; it gets borrowed memory."""
    with JOB.claim():
        JOB.together(lib.malt_broadcast, timeout, data, len(data), root)
        return _received(root, decode)


def _received(rank: int, decode: Callable[[memoryview], Any]) -> Any:
    data, count = ffi.new("const void **"), ffi.new("uint64_t *")
    check(lib.malt_received(rank, data, count))
    return decode(memoryview(ffi.buffer(data[0], count[0]) if count[0] else b""))
