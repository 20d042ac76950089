"""Vectors and segments of the library."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from malt._errors import Error, StateError
from malt._guide import lines

from . import place
from .convert import check, describe_array, encoded, rank_list, text
from .loading import caught, ffi, lib
from .memory import Counters, Lent, Memory, counters
from .waiting import JOB, Place, milliseconds, seconds

T = TypeVar("T")
Array: TypeAlias = "np.ndarray[Any, Any]"
Parts: TypeAlias = "tuple[Array, ...]"


class Update(NamedTuple):
    """One received update as the library describes it; data is read-only bytes.

    Of a sparse vector data is a copy of the values of rows, one behind the other. Parts are
    what the caller of `Object.gather_with` cuts it into.
    """

    data: np.ndarray[Any, Any]
    parts: Parts
    rank: int
    clock: int
    age: int
    weight: float
    rows: np.ndarray[Any, Any] | None


_objects: weakref.WeakSet[Object] = weakref.WeakSet()


def drop_unfinished(timeout: float) -> None:
    """Do without the gathers that a failure has left undone in lock-step, and drop their updates.

    Without them the next scatter would be refused. For when all ranks have met
    after it; an object that another thread is using is left as it is.
    """
    for unfinished in list(_objects):
        with contextlib.suppress(Error):  # most of all: it has nothing to gather
            if unfinished.lockstep():
                if "-changes" in unfinished.describe():
                    unfinished.gather(timeout)  # it takes no function, and changes are not dropped
                else:
                    unfinished.gather_with(lambda _: None, timeout)


class Object(Place):
    """A vector or segment of the library."""

    def __init__(self, kind: str, handle: int, name: str) -> None:
        super().__init__(handle, name)
        self.kind = kind
        self.memory: Memory
        self.row = 0  # bytes of a row of a sparse vector
        self.told = False  # that a fold keeps what it was lent
        self.folds = 0  # gathers with a fold in Python
        self.saved: list[np.ndarray[Any, Any]] = []  # the values before a fold in Python
        self._lent: weakref.WeakSet[Lent] = weakref.WeakSet()
        self._views: dict[tuple[Any, int], tuple[np.ndarray[Any, Any], Parts]] = {}  # of slots, by where they lie
        self._count = ffi.new("uint32_t *")
        self._long = ffi.new("uint64_t *")
        self._described = ffi.new("malt_update *")
        _objects.add(self)

    # What goes over the graph.

    # The first three are written out: training loops call them most, and they seldom wait. A sync is
    # seldom of Python at all: see `quicken`.

    def sync(self, weight: float, timeout: float | None) -> int:
        place.tell(3)
        return self.sync_untold(weight, timeout)

    def sync_untold(self, weight: float, timeout: float | None) -> int:
        """Sync in whatever thread, for a call of the user's that has told its place."""
        status = lib.malt_python_sync_as(self.handle, weight, milliseconds(seconds(timeout)))
        return self.answer(status, timeout) if status < 0 or caught else status

    def gather(self, timeout: float | None) -> int:
        place.tell(3)
        if timeout is None:
            status = lib.malt_python_gather(self.handle)
        else:
            status = lib.malt_python_gather_as(self.handle, milliseconds(seconds(timeout)))
        return self.answer(status, timeout) if status < 0 or caught else status

    def await_update(self, wait: float) -> None:
        """Wait for an update that the next gather can fold."""
        place.tell(3)
        status = lib.malt_object_await(self.handle, milliseconds(seconds(wait, "wait", "for no wait")))
        if status < 0 or caught:
            self.answer(status, wait)

    def scatter_all(self, weight: float, timeout: float | None) -> int:
        """Scatter a vector as a whole, or what has changed of it, to all receivers."""
        place.tell(3)
        if timeout is None and weight == 1:
            status = lib.malt_python_scatter(self.handle)
        else:
            status = lib.malt_python_scatter_as(self.handle, weight, milliseconds(seconds(timeout)))
        return self.answer(status, timeout) if status < 0 or caught else status

    def _call(self, function: Callable[..., int], args: tuple[Any, ...], timeout: float | None, out: Any) -> int:
        """Make a call that stores its result in ``out``."""
        place.tell(4)
        self.must_be_open()
        self.wait(lambda ms: function(*args, ms, out), timeout)
        return int(out[0])

    def sync_rows(self, rows: np.ndarray[Any, Any], weight: float, timeout: float | None) -> int:
        """Sync, sending these rows: a contiguous array of int64."""
        return self._call(lib.malt_vector_sync_rows, (self.handle, *_borrowed(rows), weight), timeout, self._count)

    def sync_slack(self, slack: int, weight: float, timeout: float | None) -> int:
        return self._call(lib.malt_vector_sync_slack, (self.handle, slack, weight), timeout, self._count)

    def gather_by(self, fold: str, timeout: float | None) -> int:
        return self._call(lib.malt_vector_gather, (self.handle, encoded(fold)), timeout, self._count)

    def scatter(
        self,
        to: Sequence[int] | None,
        timeout: float | None,
        *,
        rows: np.ndarray[Any, Any] | None = None,
        weight: float = 1.0,
        nbytes: int = 0,
    ) -> int:
        ranks = (ffi.NULL, 0) if to is None else (ffi.new("int32_t[]", to), len(to))
        if rows is not None:
            named = _borrowed(rows)
            return self._call(lib.malt_vector_scatter_rows, (self.handle, *named, *ranks, weight), timeout, self._long)
        if self.kind == "vector":
            return self._call(lib.malt_vector_scatter, (self.handle, *ranks, weight), timeout, self._long)
        return self._call(lib.malt_segment_scatter, (self.handle, nbytes, *ranks), timeout, self._long)

    def gather_native(self, address: int, timeout: float | None) -> int:
        """Fold with a C function of type malt_fold."""
        fold = ffi.cast("malt_fold", address)
        return self._call(lib.malt_vector_gather_with, (self.handle, fold, ffi.NULL), timeout, self._count)

    def gather_with(
        self,
        fold: Callable[[list[Update]], object],
        timeout: float | None,
        split: Callable[[np.ndarray[Any, Any]], Parts] | None = None,
        depth: int = 4,
    ) -> int:
        """Call fold with the updates, if there are any; what it raises leaves them unfolded.

        ``split`` cuts the bytes of an update. It is called once for each slot that a sender
        uses: making arrays takes longer than folding small ones. ``depth`` is that of
        `Place.claim`.
        """
        handle, count, begin, end = self.handle, self._count, lib.malt_object_gather_begin, lib.malt_object_gather_end
        done = 0
        with self.claim(depth):
            try:
                self.wait(lambda ms: begin(handle, ms, count), timeout)
                n = int(count[0])
                if n:
                    self.folding = True
                    fold([self._update(i, split) for i in range(n)])
                done = 1
                check(end(handle, 1))
            except BaseException:
                # Wherever Ctrl-C came: an end without a begin does nothing.
                end(handle, done)
                raise
            finally:
                self.folding = False
        return n

    def _update(self, i: int, split: Callable[[np.ndarray[Any, Any]], Parts] | None) -> Update:
        u = self._described
        if self.row:
            return self._update_rows(i, u)
        if (status := lib.malt_object_gather_update(self.handle, i, u)) < 0:
            check(status)
        data, nbytes = u.data, u.bytes
        views = self._views.get((data, nbytes))
        if views is None:
            lent = Lent(u, self.memory)
            self._lent.add(lent)
            raw = np.asarray(lent)
            if split is None:
                views = raw, ()
            else:
                views = self._views[data, nbytes] = raw, split(raw)
        raw, parts = views
        # New ones: a fold may give them another shape.
        return Update(raw.view(), tuple(part.view() for part in parts), u.rank, u.clock, u.age, u.weight, None)

    def _update_rows(self, i: int, u: Any) -> Update:
        count = self._long
        check(lib.malt_vector_gather_rows(self.handle, i, u, ffi.NULL, ffi.NULL, 0, count))
        rows, values = np.empty(int(count[0]), np.uint32), np.empty(int(count[0]) * self.row, np.uint8)
        if len(rows):
            to = ffi.from_buffer("uint32_t[]", rows), ffi.from_buffer(values)
            check(lib.malt_vector_gather_rows(self.handle, i, u, *to, len(rows), count))
        return Update(values, (), u.rank, u.clock, u.age, u.weight, rows)

    def lent(self) -> bool:
        """Tell whether arrays over updates of earlier gathers are still in use, other than here."""
        self._views.clear()
        if self._lent:
            gc.collect()  # a reference cycle is no use of them
        return len(self._lent) > 0

    # Collective calls: it is on the job that they wait.

    def allreduce(self, op: str, timeout: float | None, weight: float = 1.0) -> None:
        place.tell(3)
        if self.closed or self._lock.locked() or JOB.closed or JOB.begun or JOB._lock.locked():
            self.must_be_free()
            JOB.must_be_free()
        JOB.together(lib.malt_vector_allreduce_weight, timeout, self.handle, op.encode(), weight)

    def broadcast(self, root: int, timeout: float | None) -> None:
        with self.claim(), JOB.claim():
            JOB.together(lib.malt_vector_broadcast, timeout, self.handle, root)

    def configure(self, options: str, timeout: float | None) -> None:
        told = encoded(options)
        with self.claim(), JOB.claim():
            if self.lent():
                raise StateError(
                    lines(
                        f"{self.name} cannot be configured while a fold's arrays of updates are referenced",
                        "configure unmaps them",
                        "Keep copies of them instead.",
                    )
                )
            JOB.together(lib.malt_object_configure, timeout, self.handle, told)

    def configure_rows(
        self, ids: Array, wants: Array | None, dtype: np.dtype[Any], timeout: float | None
    ) -> tuple[Array, Array, Array]:
        """Give the vector other rows; returns what `rows` does."""
        named, wanted = _borrowed(ids, "uint64_t"), _borrowed(wants, "uint64_t")
        with self.claim(), JOB.claim():
            JOB.together(lib.malt_vector_configure_rows, timeout, self.handle, *named, *wanted)
            self.memory.outlive()
            return self.rows(dtype)

    def rows(self, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
        """Return the array of a vector with ids, the wanted rows, and which of these are missing, all flat."""
        pointers, count = [ffi.new("void **"), ffi.new("void **"), ffi.new("uint8_t **")], ffi.new("uint64_t *")
        check(lib.malt_object_data(self.handle, 0, pointers[0], count))
        own = int(count[0])
        check(lib.malt_vector_wanted(self.handle, pointers[1], pointers[2], count))
        first, wanted, missing = (int(ffi.cast("uintptr_t", p[0])) for p in pointers)
        marks = int(count[0]) if missing else 0
        end = wanted + int(count[0]) * self.row
        self.memory = Memory(pointers[0][0], max(first + own, end, missing + marks) - first, self.handle)
        raw = np.asarray(self.memory)
        parts = [raw[at - first :][:n] for at, n in ((first, own), (wanted, end - wanted), (missing or end, marks))]
        return parts[0].view(dtype), parts[1].view(dtype), parts[2].view(np.bool_)

    # Looking, and leaving.

    def clock(self) -> int:
        clock = lib.malt_python_clock(self.handle)
        return self.answer(clock, None) if clock < 0 else clock

    def age(self) -> int:
        self.must_be_open()
        age = ffi.new("uint64_t *")
        check(lib.malt_vector_age(self.handle, age))
        return int(age[0])

    def describe(self) -> str:
        self.must_be_open()
        return text(lambda *out: lib.malt_object_describe(self.handle, *out))

    def lockstep(self) -> bool:
        """Tell whether each gather folds what was sent with this rank's last scatter."""
        yes = ffi.new("int32_t *")
        check(lib.malt_object_lockstep(self.handle, yes))
        return bool(yes[0])

    def ranks(self, which: str) -> list[int]:
        """Return the "receivers" or the "senders"."""
        self.must_be_open()
        return rank_list(lambda *out: getattr(lib, f"malt_object_{which}")(self.handle, *out))

    def stats(self) -> Counters:
        """Return the totals and the edges, as dicts by the field names of malt.h."""
        self.must_be_open()
        return counters(self.handle)

    def close(self) -> None:
        """Leave the object; other ranks no longer wait for this one in it.

        While arrays over updates are still referenced, leaving is left to the
        last of them, because it unmaps what they view.
        """
        if self.closed:
            return
        with self.claim():
            if not self.lent():
                check(self.memory.close())
            self.closed = True


def _borrowed(numbers: Array | None, of: str = "int64_t") -> tuple[Any, int]:
    """Return an array of such numbers as C wants it, where NULL means that there is none, and not that it is empty."""
    if numbers is None:
        return ffi.NULL, 0
    return ffi.from_buffer(f"{of}[]", numbers) if len(numbers) else ffi.new(f"{of}[1]"), len(numbers)


def check_vector(name: str | None, options: str) -> None:
    """Raise what `new_vector` would raise for a name and options. Not collective."""
    check(lib.malt_vector_check(encoded(name), encoded(options)))


def new_vector(
    arrays: Sequence[tuple[tuple[int, ...], np.dtype[Any], np.ndarray[Any, Any] | None]],
    name: str | None,
    options: str,
    timeout: float | None,
    *,
    row: int = 0,
    ids: Array | None = None,
    wants: Array | None = None,
) -> tuple[Object, list[np.ndarray[Any, Any]]]:
    """Make a vector of arrays, each a shape, a dtype and contiguous first values or None for zeros.

    A sparse one, and one with ids, has an array with rows of so many elements. Returns it with one
    flat view per array, or with ids what `Object.rows` does.
    """
    spec = ffi.new("malt_array[]", len(arrays))
    keep = []  # what is pointed at has to outlive the call
    for a, (shape, dtype, init) in zip(spec, arrays, strict=True):
        keep.append(describe_array(a, shape, dtype))
        a.row = row
        if init is not None and a.count:
            keep.append(ffi.from_buffer(init))
            a.init = keep[-1]
        if ids is not None:
            for name_of, numbers in (("ids", ids), ("wants", wants)):
                pointer, count = _borrowed(numbers, "uint64_t")
                keep.append(pointer)
                setattr(a, name_of, pointer)
            a.nwants = count
    called, told = encoded(name), encoded(options)

    def views(vector: Object) -> list[Array]:
        vector.row = row * arrays[0][1].itemsize
        return _views(vector, [dtype for _, dtype, _ in arrays]) if ids is None else list(vector.rows(arrays[0][1]))

    with JOB.claim():
        return _opened(
            "vector",
            lambda ms, out: lib.malt_vector_new(spec, len(arrays), called, told, ms, out),
            timeout,
            views,
        )


def quicken(owner: type, sync: Callable[..., Any], listeners: list[Any]) -> None:
    """Have C make the calls of ``owner.sync``, this function, that need no Python; see ``quick.c``.

    They are those of an owner whose ``_quick`` is a handle, its `Object` and `Calls.last`, and not None; and those with
    every= that are not due, where ``_counted`` is `Calls.last`, and not None.
    """
    if vars(owner)["sync"] is not sync:
        return
    import inspect  # not with the package

    bare = [p.replace(annotation=p.empty) for p in inspect.signature(sync).parameters.values()]
    head = str(inspect.Signature(bare)).replace("self", "$self", 1)  # as C functions have it
    doc = f"sync{head}\n--\n\n{inspect.getdoc(sync)}"
    names = "wanted", "_code", "_instruction", "_texts", "_quick", "_counted", "f_code", "f_lasti", "answer"
    kept = owner, sync, doc, vars(place), listeners, caught, *names, "every", "weight"
    lib.malt_python_quicken(id(kept))


def _opened(
    kind: str, call: Callable[[int, Any], int], timeout: float | None, views: Callable[[Object], T]
) -> tuple[Object, T]:
    """Return the object that a collective ``call`` makes, and its views; Ctrl-C does not leave it without an owner."""
    out = ffi.new("malt_handle *")
    try:
        JOB.together(lambda ms: call(ms, out), timeout)
        made = Object(kind, int(out[0]), "")
        return made, views(made)
    except BaseException:
        if out[0]:
            lib.malt_object_close(out[0])
        raise


def _views(made: Object, dtypes: Sequence[np.dtype[Any]]) -> list[np.ndarray[Any, Any]]:
    pointer, nbytes = ffi.new("void **"), ffi.new("uint64_t *")
    places = []  # address and length of each array
    for i in range(len(dtypes)):
        check(lib.malt_object_data(made.handle, i, pointer, nbytes))
        if i == 0:
            first = pointer[0]
        places.append((int(ffi.cast("uintptr_t", pointer[0])), int(nbytes[0])))
    base = places[0][0]
    made.memory = Memory(first, max(at + n for at, n in places) - base, made.handle)
    raw = np.asarray(made.memory)
    return [raw[at - base :][:n].view(dtype) for (at, n), dtype in zip(places, dtypes, strict=True)]


def new_segment(
    nbytes: int, name: str | None, options: str, timeout: float | None
) -> tuple[Object, np.ndarray[Any, Any]]:
    """Make a segment; returns it with its bytes."""
    called, told = encoded(name), encoded(options)
    with JOB.claim():
        return _opened(
            "segment",
            lambda ms, out: lib.malt_segment_new(nbytes, called, told, ms, out),
            timeout,
            lambda segment: _views(segment, [np.dtype(np.uint8)])[0],
        )
