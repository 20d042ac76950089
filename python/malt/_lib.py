"""The C library: the only file that knows cffi.

Everything else in the package calls the functions and classes below, which turn
statuses into exceptions, waits into slices, and C memory into numpy arrays.

Loading. `lib` loads the extension, and with it the Go runtime, when it is first
used. In a forked child it is replaced by something that raises: the threads of
the Go runtime do not survive a fork, so a call there would never return.

Waiting. C gets at most 50 ms at a time. The call keeps its place in the library
(see malt.h, "Timeouts"), Python handles its signals, and the same call is made
again. A wait that ends in any other way than its own return value gives its
place up with malt_cancel.

Locking. C tells a call that goes on from a new one by the object alone, so of
two threads that wait on one object the second would take over the place of the
first. `Place` therefore lets one call at a time in.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import math
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from . import _errors

__all__ = [
    "JOB",
    "Memory",
    "Object",
    "Place",
    "Update",
    "abort",
    "allgather",
    "allreduce",
    "barrier",
    "broadcast",
    "graph_measures",
    "graph_receivers",
    "graph_text",
    "init",
    "inspect",
    "new_segment",
    "new_vector",
    "seconds",
    "version",
    "warn",
    "who",
]

SLICE = 50  # milliseconds that a call may stay in C
DEFAULT_TIMEOUT = 300.0  # seconds, where neither MALT_TIMEOUT nor malt.init says otherwise
LONG_WAIT = 10.0  # seconds after which a wait says whom it is for

DTYPES = {np.dtype(np.float32): 1, np.dtype(np.float64): 2}  # MALT_FLOAT32, MALT_FLOAT64

T = TypeVar("T")

_loading = threading.Lock()
_job_timeout = DEFAULT_TIMEOUT
collective_seconds = 0.0  # spent in collective calls
_ended = False  # finalized or aborted: the exit handler has nothing to do


# ------------------------------------------------------------------- loading


class _Unloaded:
    """Stands for the library, or for cffi's view of it, until it is first used."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_load(), self._part), name)


class _Forked:
    """Stands for the library in a forked child."""

    def __getattr__(self, name: str) -> Any:
        raise _errors.StateError(
            f"malt: process {os.getpid()} was forked from one that uses malt, and malt cannot be used in it: the "
            "library's threads do not survive a fork. malt.rank() and malt.size() do work. Start helper processes "
            "with multiprocessing's 'spawn', or leave malt to the rank itself"
        )


lib: Any = _Unloaded("lib")
ffi: Any = _Unloaded("ffi")


def _load() -> ModuleType:
    global ffi, lib
    with _loading:
        from . import _malt

        if isinstance(lib, _Unloaded):
            found, expected = _malt.lib.malt_abi_version(), _malt.lib.MALT_ABI_VERSION
            if found != expected:
                raise ImportError(
                    f"malt: libmalt.so.0 has ABI {found}, the extension was built for {expected}: install malt again"
                )
            atexit.register(_at_exit)
            ffi, lib = _malt.ffi, _malt.lib
    return _malt


def _after_fork() -> None:
    """Keep the child out, also where the parent was just loading in another thread."""
    global lib
    if _loading.locked() or not isinstance(lib, _Unloaded):
        lib = _Forked()


os.register_at_fork(after_in_child=_after_fork)


def alive() -> None:
    """Raise in a forked child."""
    if isinstance(lib, _Forked):
        _ = lib.malt_rank


def _at_exit() -> None:
    """Leave the job in good order, for which waits in daemon threads have to end."""
    global _ended
    if _ended or isinstance(lib, _Forked):
        return
    _ended = True
    deadline = time.monotonic() + 20 * SLICE / 1000
    while lib.malt_finalize() == lib.MALT_EBUSY and time.monotonic() < deadline:
        time.sleep(SLICE / 10000)


# -------------------------------------------------------------------- errors


def _error(status: int) -> Exception:
    """Return the exception for a status other than 0, with the library's sentence."""
    message = _string(lib.malt_errmsg()) or f"malt: the library returned {status} without a sentence"
    message = message.removesuffix("; call malt_init again to go on waiting")  # which is C's way
    if status == lib.MALT_EPEER:
        # The C ABI has no field for the rank; its sentence always names it.
        found = re.search(r"\brank (\d+) is dead", message)
        return _errors.PeerError(message, int(found[1]) if found else None)
    return _kinds().get(status, _errors.Error)(message)


def _kinds() -> dict[int, type[Exception]]:
    return {
        lib.MALT_EINVAL: ValueError,
        lib.MALT_EINIT: _errors.StateError,
        lib.MALT_EHANDLE: _errors.StaleError,
        lib.MALT_EBUSY: _errors.StateError,
        lib.MALT_ETIMEOUT: _errors.TimeoutError,
        lib.MALT_ELEFT: _errors.StateError,
        lib.MALT_EMISMATCH: _errors.MismatchError,
        lib.MALT_ENOMEM: _errors.OutOfMemoryError,
        lib.MALT_EUNSUPPORTED: _errors.UnsupportedError,
        lib.MALT_ESTATE: _errors.StateError,
        lib.MALT_EFORK: _errors.StateError,
        lib.MALT_ECANCELLED: _errors.StateError,
        lib.MALT_EIO: _errors.HostError,
    }


def _check(status: int) -> None:
    if status:
        raise _error(status)


def _string(text: Any) -> str:
    return str(ffi.string(text), "utf-8", "replace")


def _bytes(text: str | None) -> Any:
    """Return text for a ``const char *``; None is NULL."""
    if text is None:
        return ffi.NULL
    if "\0" in text:
        raise ValueError(f"malt: {text!r} contains a zero byte, which no name or option has")
    return text.encode("utf-8", "surrogateescape")


# ------------------------------------------------------------------- waiting


def seconds(timeout: float | None) -> float:
    """Return a timeout in seconds; None is the job's."""
    if timeout is None:
        return _job_timeout
    if isinstance(timeout, bool) or not isinstance(timeout, int | float | np.integer | np.floating):
        raise TypeError(f"malt: timeout={timeout!r}: seconds are expected, or None for the job's timeout")
    if not timeout >= 0:
        raise ValueError(f"malt: timeout={timeout!r}: 0 or more seconds are expected, or None for the job's timeout")
    return float(timeout)


class Place:
    """What a call can wait on: the job (handle 0), a vector, or a segment."""

    def __init__(self, handle: int, name: str) -> None:
        self.handle = handle
        self.name = name
        self.closed = False
        self.folding = False  # a fold of the user's is running
        self._lock = threading.Lock()

    def claim(self) -> threading.Lock:
        """Return the lock to be held during a call, for ``with``.

        Other calls are refused, also those of signal handlers and folds in this
        thread. Only ``with`` on the lock itself leaves no moment in which Ctrl-C
        could leave it locked; so a thread that comes between these two lines
        waits instead of being refused.
        """
        if self.closed or self._lock.locked():
            self.must_be_open()
            raise self._refusal()
        return self._lock

    def must_be_open(self) -> None:
        if self.closed:
            raise _errors.StaleError(
                f"malt: {self.name} has been closed: its arrays can still be used, but it can no longer be called"
            )

    def _refusal(self) -> Exception:
        alive()  # in a child the lock may be that of a thread which is not there
        if self.folding:
            return _errors.StateError(
                f"malt: {self.name} is being folded: a fold cannot call its own vector; return the new value, and "
                "scatter after the gather"
            )
        return _errors.StateError(
            f"malt: {self.name} is in a call of another thread, and serves one call at a time: use a lock, or a vector "
            "per thread"
        )

    def together(self, call: Callable[[int], int], timeout: float | None) -> None:
        """`wait`, for a collective call: its time is booked as such."""
        global collective_seconds
        start = time.monotonic()
        try:
            self.wait(call, timeout)
        finally:
            collective_seconds += time.monotonic() - start

    def wait(self, call: Callable[[int], int], timeout: float | None) -> None:
        """Make ``call(milliseconds)`` until it has an answer or ``timeout`` seconds are over.

        For the one that has claimed this place.
        """
        limit = _job_timeout if timeout is None else seconds(timeout)
        start = time.monotonic()
        status = lib.MALT_ETIMEOUT  # what keeps a place, as far as is known when Ctrl-C comes
        try:
            status = call(SLICE if limit * 1000 > SLICE else math.ceil(limit * 1000))
            if status == 0:
                return
            warned = False
            while status == lib.MALT_ETIMEOUT:
                if _ended:
                    break
                waited = time.monotonic() - start
                if waited >= limit:
                    break
                if waited >= LONG_WAIT and not warned:
                    warned = True
                    warn(f"{_error(status)} (after {waited:.0f} s; goes on for {limit - waited:.0f} s)")
                status = call(math.ceil(min((limit - waited) * 1000, SLICE)))
            if _ended and threading.current_thread() is not threading.main_thread():
                raise SystemExit  # ends this thread, a daemon, without a word
            _check(status)
        except BaseException:
            if status == lib.MALT_ETIMEOUT:
                lib.malt_cancel(self.handle)
            raise


def warn(message: str) -> None:
    """Warn at the line of the user's that called malt."""
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, RuntimeWarning, stacklevel=level)


# ------------------------------------------------------------------- the job

JOB = Place(0, "the job")


def init(options: str, job_timeout: float) -> None:
    """Join; ``job_timeout`` is what a timeout of None means from then on."""
    global _job_timeout
    text = _bytes(options or None)
    with JOB.claim():
        JOB.wait(lambda ms: lib.malt_init(text, ms), job_timeout)
    _job_timeout = job_timeout


def who() -> tuple[int, int, int, int]:
    """Rank, size, local rank, generation."""
    return lib.malt_rank(), lib.malt_size(), lib.malt_local_rank(), lib.malt_generation()


def abort(reason: str) -> None:
    """Tell the other ranks that this one is about to end after an error."""
    global _ended
    if not _ended and not isinstance(lib, _Forked):
        _ended = True
        lib.malt_abort(_bytes(reason.replace("\0", " ")))


def version() -> str:
    return _string(lib.malt_version())


def barrier(timeout: float | None) -> None:
    with JOB.claim():
        JOB.together(lambda ms: lib.malt_barrier(ms), timeout)


def allreduce(data: np.ndarray[Any, Any], op: str, timeout: float | None) -> None:
    """Combine a contiguous float32 or float64 array over all ranks, in place."""
    pointer, count, dtype, name = ffi.from_buffer(data), data.size, DTYPES[data.dtype], op.encode()
    with JOB.claim():
        JOB.together(lambda ms: lib.malt_allreduce(pointer, count, dtype, name, ms), timeout)


def allgather(data: bytes, decode: Callable[[memoryview], Any], timeout: float | None) -> list[Any]:
    """Return what decode makes of every rank's data; it gets borrowed memory."""
    with JOB.claim():
        JOB.together(lambda ms: lib.malt_allgather(data, len(data), ms), timeout)
        return [_received(rank, decode) for rank in range(lib.malt_size())]


def broadcast(data: bytes, root: int, decode: Callable[[memoryview], Any], timeout: float | None) -> Any:
    """Return what decode makes of root's data; it gets borrowed memory."""
    with JOB.claim():
        JOB.together(lambda ms: lib.malt_broadcast(data, len(data), root, ms), timeout)
        return _received(root, decode)


def _received(rank: int, decode: Callable[[memoryview], Any]) -> Any:
    data, count = ffi.new("const void **"), ffi.new("uint64_t *")
    _check(lib.malt_received(rank, data, count))
    return decode(memoryview(ffi.buffer(data[0], count[0]) if count[0] else b""))


# ------------------------------------------------------ vectors and segments


Counters: TypeAlias = tuple[dict[str, Any], list[dict[str, Any]]]

bookkeeper: Callable[[Counters], None] | None = None
_memories: weakref.WeakSet[Memory] = weakref.WeakSet()


def book_all() -> None:
    """Book the objects that are still open: the process is about to end."""
    for memory in list(_memories):
        memory.book()


class Memory:
    """The mapped memory of a vector or segment, kept by every array that views it.

    When the last of them is gone the object is closed, if it was not before, and
    the memory is given back.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_handle", "_kind", "_open", "_pointer")

    def __init__(self, pointer: Any, nbytes: int, kind: str, handle: int) -> None:
        self.__array_interface__: dict[str, Any] = {
            "data": (int(ffi.cast("uintptr_t", pointer)), False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }
        self._pointer, self._kind, self._handle, self._open = pointer, kind, handle, True
        _memories.add(self)

    @property
    def address(self) -> int:
        address: int = self.__array_interface__["data"][0]
        return address

    @property
    def nbytes(self) -> int:
        nbytes: int = self.__array_interface__["shape"][0]
        return nbytes

    def close(self) -> int:
        """Leave the object, once; the memory stays. Returns a status."""
        if not self._open:
            return 0
        self.book()
        status: int = getattr(lib, f"malt_{self._kind}_close")(self._handle)
        self._open = status == lib.MALT_EBUSY
        return status

    def book(self) -> None:
        """Hand the counters to whoever wants them before they are gone."""
        if self._open and bookkeeper is not None:
            with contextlib.suppress(_errors.Error):  # busy in another thread
                bookkeeper(_stats(self._kind, self._handle))

    def __del__(self) -> None:
        # At the end of the process the kernel does this, and in a forked child
        # the memory is still the parent's.
        if not sys.is_finalizing() and not isinstance(lib, _Forked):
            self.close()
            lib.malt_unmap(self._pointer)


class _Lent:
    """The memory of one update during a fold; every array that views it keeps it.

    It also keeps the vector's memory, and thereby the vector: an array kept
    longer than allowed sees the next updates, but never unmapped memory.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_memory")

    def __init__(self, update: Any, memory: Memory) -> None:
        self.__array_interface__ = {
            "data": (int(ffi.cast("uintptr_t", update.data)), True),
            "shape": (update.bytes,),
            "typestr": "|u1",
            "version": 3,
        }
        self._memory = memory


class Update(NamedTuple):
    """One received update as the library describes it; data is read-only bytes."""

    data: np.ndarray[Any, Any]
    rank: int
    clock: int
    age: int
    weight: float


class Object(Place):
    """A vector or segment of the library."""

    def __init__(self, kind: str, handle: int, name: str) -> None:
        super().__init__(handle, name)
        self.kind = kind
        self.memory: Memory
        self.told = False  # that a fold keeps what it was lent
        self._lent: weakref.WeakSet[_Lent] = weakref.WeakSet()
        self._count = ffi.new("uint32_t *")
        self._long = ffi.new("uint64_t *")

    def _f(self, name: str) -> Any:
        return getattr(lib, f"malt_{self.kind}_{name}")

    # What goes over the graph. The two that training loops call most are written out.

    def sync(self, weight: float, timeout: float | None) -> int:
        handle, count = self.handle, self._count
        with self.claim():
            self.wait(lambda ms: lib.malt_vector_sync(handle, weight, ms, count), timeout)
            return int(count[0])

    def gather(self, fold: str | None, timeout: float | None) -> int:
        handle, count, name = self.handle, self._count, _bytes(fold)
        with self.claim():
            self.wait(lambda ms: lib.malt_vector_gather(handle, name, ms, count), timeout)
            return int(count[0])

    def scatter(self, to: Sequence[int] | None, timeout: float | None, *, weight: float = 1.0, nbytes: int = 0) -> int:
        ranks, n = (ffi.NULL, 0) if to is None else (ffi.new("int32_t[]", to), len(to))
        handle, sent = self.handle, self._long
        with self.claim():
            if self.kind == "vector":
                self.wait(lambda ms: lib.malt_vector_scatter(handle, ranks, n, weight, ms, sent), timeout)
            else:
                self.wait(lambda ms: lib.malt_segment_scatter(handle, nbytes, ranks, n, ms, sent), timeout)
            return int(sent[0])

    def gather_native(self, address: int, timeout: float | None) -> int:
        """Fold with a C function of type malt_fold."""
        handle, fold, count = self.handle, ffi.cast("malt_fold", address), self._count
        with self.claim():
            self.wait(lambda ms: lib.malt_vector_gather_with(handle, fold, ffi.NULL, ms, count), timeout)
            return int(count[0])

    def gather_with(self, fold: Callable[[list[Update]], object], timeout: float | None) -> int:
        """Call fold with the updates, if there are any; what it raises leaves them unfolded."""
        handle, count = self.handle, self._count
        begin, end = self._f("gather_begin"), self._f("gather_end")
        done = 0
        with self.claim():
            try:
                self.wait(lambda ms: begin(handle, ms, count), timeout)
                n = int(count[0])
                if n:
                    self.folding = True
                    fold([self._update(i) for i in range(n)])
                done = 1
                _check(end(handle, 1))
            except BaseException:
                # Wherever Ctrl-C came: an end without a begin does nothing.
                end(handle, done)
                raise
            finally:
                self.folding = False
        return n

    def _update(self, i: int) -> Update:
        u = ffi.new("malt_update *")
        _check(self._f("gather_update")(self.handle, i, u))
        lent = _Lent(u, self.memory)
        self._lent.add(lent)
        return Update(np.asarray(lent), u.rank, u.clock, u.age, u.weight)

    def lent(self) -> bool:
        """Tell whether arrays over updates of earlier gathers are still in use."""
        if self._lent:
            gc.collect()  # a reference cycle is no use of them
        return len(self._lent) > 0

    # Collective calls: it is on the job that they wait.

    def allreduce(self, op: str, timeout: float | None) -> None:
        with self.claim(), JOB.claim():
            JOB.together(lambda ms: lib.malt_vector_allreduce(self.handle, op.encode(), ms), timeout)

    def broadcast(self, root: int, timeout: float | None) -> None:
        with self.claim(), JOB.claim():
            JOB.together(lambda ms: lib.malt_vector_broadcast(self.handle, root, ms), timeout)

    def configure(self, options: str, timeout: float | None) -> None:
        text = _bytes(options)
        with self.claim(), JOB.claim():
            if self.lent():
                raise _errors.StateError(
                    f"malt: {self.name} cannot be configured while arrays of updates that a fold was lent are "
                    "referenced, because it unmaps them: keep copies instead"
                )
            JOB.together(lambda ms: lib.malt_vector_configure(self.handle, text, ms), timeout)

    # Looking, and leaving.

    def clock(self) -> int:
        self.must_be_open()
        clock = ffi.new("uint64_t *")
        _check(self._f("clock")(self.handle, clock))
        return int(clock[0])

    def describe(self) -> str:
        self.must_be_open()
        return _text(lambda *out: self._f("describe")(self.handle, *out))

    def ranks(self, which: str) -> list[int]:
        """Return the "receivers" or the "senders"."""
        self.must_be_open()
        return _ranks(lambda *out: self._f(which)(self.handle, *out))

    def stats(self) -> Counters:
        """Return the totals and the edges, as dicts by the field names of malt.h."""
        self.must_be_open()
        return _stats(self.kind, self.handle)

    def close(self) -> None:
        """Leave the object; other ranks no longer wait for this one in it.

        While arrays over updates are still referenced, leaving is left to the
        last of them, because it unmaps what they view.
        """
        if self.closed:
            return
        with self.claim():
            if not self.lent():
                _check(self.memory.close())
            self.closed = True


def _stats(kind: str, handle: int) -> Counters:
    counters = getattr(lib, f"malt_{kind}_stats")
    totals, n = ffi.new("malt_vector_totals *"), ffi.new("uint32_t *")
    _check(counters(handle, totals, ffi.NULL, 0, n))
    edges = ffi.new("malt_edge[]", n[0])
    _check(counters(handle, totals, edges, len(edges), n))
    return _fields(totals[0]), [_fields(edge) for edge in edges]


def _text(fill: Callable[..., int]) -> str:
    """Return the text of a function with the arguments (char *text, cap, *need)."""
    cap, need = 256, ffi.new("uint64_t *")
    while True:
        text = ffi.new("char[]", cap)
        _check(fill(text, cap, need))
        if need[0] <= cap:
            return _string(text)
        cap = need[0]


def _ranks(fill: Callable[..., int]) -> list[int]:
    """Return the ranks of a function with the arguments (int32_t *ranks, cap, *n)."""
    cap, n = 64, ffi.new("uint32_t *")
    while True:
        ranks = ffi.new("int32_t[]", cap)
        _check(fill(ranks, cap, n))
        if n[0] <= cap:
            return list(ranks[0 : n[0]])
        cap = n[0]


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in dir(struct) if name != "reserved"}


def new_vector(
    arrays: Sequence[tuple[int, np.dtype[Any], np.ndarray[Any, Any] | None]],
    name: str | None,
    options: str,
    timeout: float | None,
) -> tuple[Object, list[np.ndarray[Any, Any]]]:
    """Make a vector of arrays, each a count, a dtype and contiguous first values or None for zeros.

    Returns it with one flat view per array.
    """
    spec = ffi.new("malt_array[]", len(arrays))
    keep = []  # what from_buffer borrows has to outlive the call
    for a, (count, dtype, init) in zip(spec, arrays, strict=True):
        a.count, a.dtype = count, DTYPES[dtype]
        if init is not None and count:
            keep.append(ffi.from_buffer(init))
            a.init = keep[-1]
    out = ffi.new("malt_handle *")
    called, text = _bytes(name), _bytes(options)
    with JOB.claim():
        JOB.together(lambda ms: lib.malt_vector_new(spec, len(arrays), called, text, ms, out), timeout)
        return _opened("vector", out[0], lambda vector: _vector_views(vector, [dtype for _, dtype, _ in arrays]))


def _opened(kind: str, handle: Any, views: Callable[[Object], T]) -> tuple[Object, T]:
    """Return a new object and its views; Ctrl-C does not leave it open without an owner."""
    try:
        made = Object(kind, int(handle), "")
        return made, views(made)
    except BaseException:
        getattr(lib, f"malt_{kind}_close")(handle)
        raise


def _vector_views(vector: Object, dtypes: Sequence[np.dtype[Any]]) -> list[np.ndarray[Any, Any]]:
    pointer, nbytes = ffi.new("void **"), ffi.new("uint64_t *")
    places = []  # address and length of each array
    for i in range(len(dtypes)):
        _check(lib.malt_vector_data(vector.handle, i, pointer, nbytes))
        if i == 0:
            first = pointer[0]
        places.append((int(ffi.cast("uintptr_t", pointer[0])), int(nbytes[0])))
    base = places[0][0]
    vector.memory = Memory(first, max(at + n for at, n in places) - base, "vector", vector.handle)
    raw = np.asarray(vector.memory)
    return [raw[at - base :][:n].view(dtype) for (at, n), dtype in zip(places, dtypes, strict=True)]


def new_segment(
    nbytes: int, name: str | None, options: str, timeout: float | None
) -> tuple[Object, np.ndarray[Any, Any]]:
    """Make a segment; returns it with its bytes."""
    out = ffi.new("malt_handle *")
    called, text = _bytes(name), _bytes(options)
    with JOB.claim():
        JOB.together(lambda ms: lib.malt_segment_new(nbytes, called, text, ms, out), timeout)
        return _opened("segment", out[0], _segment_view)


def _segment_view(segment: Object) -> np.ndarray[Any, Any]:
    pointer, size = ffi.new("void **"), ffi.new("uint64_t *")
    _check(lib.malt_segment_data(segment.handle, pointer, size))
    segment.memory = Memory(pointer[0], int(size[0]), "segment", segment.handle)
    return np.asarray(segment.memory)


# -------------------------------------------------------------------- graphs


def _graph(spec: str, size: int, allow_disconnected: bool, use: Callable[[int], T]) -> T:
    out = ffi.new("malt_handle *")
    _check(lib.malt_graph_new(_bytes(spec), size, allow_disconnected, out))
    try:
        return use(int(out[0]))
    finally:
        lib.malt_graph_close(out[0])


def graph_receivers(
    spec: str, size: int, allow_disconnected: bool, clock: int, ranks: Iterable[int]
) -> list[list[int]]:
    """Return whom each of ranks sends to at its clock-th scatter."""
    return _graph(
        spec,
        size,
        allow_disconnected,
        lambda g: [
            _ranks(lambda *out: lib.malt_graph_receivers(g, rank, clock, *out))  # noqa: B023 (called at once)
            for rank in ranks
        ],
    )


def graph_measures(spec: str, size: int, allow_disconnected: bool) -> dict[str, Any]:
    """Return malt_graph_measures by field name."""

    def measure(g: int) -> dict[str, Any]:
        m = ffi.new("malt_graph_measures *")
        _check(lib.malt_graph_measure(g, m))
        return _fields(m[0])

    return _graph(spec, size, allow_disconnected, measure)


def graph_text(spec: str, size: int, allow_disconnected: bool, form: str) -> str:
    """Return the graph as "spec", "text", "dot" or "svg"."""
    return _graph(
        spec,
        size,
        allow_disconnected,
        lambda g: _text(lambda *out: lib.malt_graph_render(g, form.encode(), *out)),
    )


# -------------------------------------------------------------- this machine


def inspect(what: str) -> str:
    """Return malt_inspect's JSON."""
    return _text(lambda *out: lib.malt_inspect(what.encode(), *out))
