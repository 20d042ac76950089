"""Vectors: the model, or the gradient, of one rank in memory that others can see."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeAlias, TypedDict, cast, get_args

import numpy as np
import numpy.typing as npt

from . import _fold, _lib, _world
from ._arguments import check_every, number, row_elements
from ._arrays import Array, Spec, assign, specs
from ._every import Calls
from ._exchange import Exchange, options, receivers_of
from ._fold import Fold
from ._graph import GraphLike
from ._guide import lines
from ._idle import Idle
from ._options import choose, misspelt, spelled
from ._rows import Named, RowsLike, index, representation
from .typing import Consistency, Op, Sparse, Start, Uneven

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Element = TypeVar("Element", bound=np.float32 | np.float64, default=Any)
else:
    Element = typing.TypeVar("Element")  # defaults come with Python 3.13

__all__ = ["Vector"]

Whole: TypeAlias = "npt.NDArray[np.integer[Any] | np.bool_]"
Data: TypeAlias = "int | npt.NDArray[Element] | Whole | Sequence[int | npt.NDArray[Element] | Whole]"
"""What a vector can be made of; one `Sequence`, because type checkers infer nothing from two."""


class Options(TypedDict, total=False):
    """What is said of a vector besides its arrays."""

    graph: GraphLike
    consistency: Consistency
    fold: Fold
    sparse: Literal[False] | Sparse
    uneven: Uneven | None
    start: Start
    name: str | None


class Vector(Exchange, Generic[Element]):
    """A model or a gradient that other ranks receive and combine with their own.

    Making a vector is collective: every rank makes the same ones in the same
    order.

    Parameters
    ----------
    data : int, tuple of int, ndarray, or list of ndarray
        A length or a shape, for zeros; an array, whose values are copied; or
        several arrays that travel as one, each keeping its dtype. Arrays have to
        be C-contiguous, writable, float32 or float64.
    graph : str, Graph, list of lists of int, or networkx graph
        Which rank sends to which: see `Graph`.
    consistency : {"bsp", "async", "ssp:S", "notify-ack", "notify-ack:D"}
        How far ranks may drift apart. ``bsp``: all in lock-step. ``async``:
        no rank waits, older updates are overwritten. ``ssp:S``: no rank is more
        than S scatters ahead of its senders. ``notify-ack:D``: a rank waits for
        the next update of each of its senders, and is at most D ahead.
    fold : {"mean", "mean-received", "sum", "min", "max", "replace"} or callable
        How a rank combines updates with its own values. ``mean`` is weighted by
        the ``weight=`` of the scatters. Where updates are overwritten, ``sum`` loses them.
        A function gets ``(own, updates)`` and returns the new value; changing
        ``own`` in place and returning it will do. ``own`` is `array`, or
        `arrays` as a tuple; for ``updates`` see `Update`. It runs in
        the calling thread, is never called without updates, and cannot call its
        own vector. If it raises, the vector keeps its value. A numba ``cfunc`` of
        type ``malt_fold`` runs without Python and restores the value itself.
    sparse : {False, "model", "gradient"}
        For a vector of one array: let some rows travel instead of all. A row is
        the part at one index of the first axis; of an array of one axis, one element.
        ``"model"``: a row travels when it differs from what this rank sent last (at
        first: started with), whether the loop or a fold changed it; each receiver
        gets it once in each of its values, also where updates are overwritten.
        Row by row, a fold combines the rank's own values with those of the updates that
        mention the row; rows that no update mentions keep their value.
        ``"gradient"``: rows travel that are not zero, and a missing row counts as zero:
        the result is that of dense gradients. Where so many rows travel that all of
        them are cheaper, all are sent.
    uneven : {"ok", "error"}, optional
        Whether `sync` and `gather` go on without a rank that they would wait for, where it
        makes fewer steps: is in a collective call, has ended, or has closed the vector.
        Models are brought together again by later averages; ranks that step by gradients of
        fewer ranks drift apart for good. By default "error" with ``sparse="gradient"``,
        and else "ok". In ``async`` no rank is waited for, and none is missed.
    start : {"same", "own"}
        Whether every rank starts with rank 0's values, or with its own.
    dtype : float32 or float64, optional
        Converts the arrays; of the zeros, by default float64.
    name : str, optional
        Letters, digits and ``._-/``; a number by default. For messages.

    Raises
    ------
    ValueError, TypeError
        A wrong argument; the message says what was expected.
    MismatchError
        The ranks make different vectors; the message shows both.
    OutOfMemoryError
        The machine, or the control group, has not got the memory.
    TimeoutError, PeerError
        A rank does not make it, or is dead.

    Notes
    -----
    One call at a time: a second thread is refused with a `StateError`. Reading
    or writing the arrays while another thread is in `gather`, `sync`,
    `allreduce` or `broadcast` gives mixed values.

    What travels should be models. Gradients that are exchanged over a graph whose
    `Graph.smallest_real_part` is negative, such as ``halton`` with 4 or 8 ranks,
    let the ranks drift apart; over ``all`` they do not.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3 (vectors, scatter
    and gather); ``ssp`` is stale synchronous parallel (Ho et al., NIPS
    2013); ``notify-ack`` is MALT-2's.

    Examples
    --------
    >>> v = malt.Vector(np.zeros(3, np.float32), name="model")
    >>> w = v.array
    >>> w += 1                                  # the training loop
    >>> v.sync()                                # alone, there is nothing to fold
    0
    >>> v
    Vector('model', 3 x float32, graph='all', consistency='bsp', fold='mean', clock=1)
    >>> v.close()
    """

    _instead = "v.array"

    @spelled
    def __init__(
        self,
        data: Data[Element],
        *,
        graph: GraphLike = "all",
        consistency: Consistency = "bsp",
        fold: Fold = "mean",
        sparse: Literal[False] | Sparse = False,
        uneven: Uneven | None = None,
        start: Start = "same",
        dtype: type[Element] | np.dtype[Element] | type[float] | str | None = None,
        name: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise misspelt(unknown, Vector)
        self._sparse = representation(sparse)
        self._specs, self._is_list = specs(data, dtype)
        row = 0 if self._sparse is None else row_elements(self._specs)
        choose("start", start, get_args(Start))
        if uneven is None:
            uneven = "error" if self._sparse == "gradient" else "ok"
        choose("uneven", uneven, get_args(Uneven))
        _fold.check(fold)
        _world.init()
        text = options(graph, consistency, fold=_built_in(fold), uneven=uneven, start=start, sparse=self._sparse)
        made, flat = _lib.new_vector([(s.shape, s.dtype, s.init) for s in self._specs], name, text, None, row=row)
        self._specs = [Spec(s.shape, s.dtype, None) for s in self._specs]  # lets go of the first values
        self._arrays = tuple(a.reshape(s.shape) for a, s in zip(flat, self._specs, strict=True))
        self._cuts = tuple(_cut(a, made.memory.address) for a in self._arrays)
        self._own_fold = None if isinstance(fold, str) else fold
        self._calls = Calls()  # of sync with every=
        self._named = None if self._sparse is None else Named()  # rows of calls that were skipped
        super().__init__(made)
        self._idle = Idle(self._arrays, data) if made.memory.nbytes <= Idle.LARGEST else None
        self._simplify()

    # ---------------------------------------------------------------- memory

    @property
    def array(self) -> npt.NDArray[Element]:
        """The values, of a vector of one array: a writable view without a copy.

        It stays valid for as long as it is referenced, also after `close`.
        Assigning copies into it. With the graph ``all`` in ``bsp`` other ranks
        write into it during `sync` and `allreduce`. A forked child reads the values
        of the fork, or later ones of its parent; what it writes stays its own.
        """
        if len(self._arrays) != 1:
            raise TypeError(f"malt: {self._object.name} has {len(self._arrays)} arrays: use .arrays, or .flat")
        return self._arrays[0]

    @array.setter
    def array(self, value: npt.ArrayLike) -> None:
        if value is not self.array:  # v.array += x assigns what it has changed already
            assign(self.array, value, f"the array of {self._object.name}")

    @property
    def arrays(self) -> tuple[npt.NDArray[Element], ...]:
        """The arrays, in the order in which they were given; see `array`."""
        return self._arrays

    @arrays.setter
    def arrays(self, values: Sequence[npt.ArrayLike]) -> None:
        values = list(values)
        if len(values) != len(self._arrays):
            raise ValueError(f"malt: {self._object.name} has {len(self._arrays)} arrays, {len(values)} are assigned")
        for i, (a, value) in enumerate(zip(self._arrays, values, strict=True)):
            assign(a, value, f"array {i} of {self._object.name}")

    @property
    def flat(self) -> npt.NDArray[Element]:
        """All values as one array of one dimension: a writable view without a copy.

        For arrays of one dtype. Assigning copies into it.
        """
        dtypes = {s.dtype for s in self._specs}
        if len(dtypes) != 1:
            raise TypeError(
                lines(
                    f"{self._object.name} has arrays of {' and '.join(sorted(map(str, dtypes)))}",
                    ".flat is one array, of one dtype",
                    "Use .arrays, or make the vector with dtype=.",
                )
            )
        values: npt.NDArray[Element] = np.asarray(self._object.memory).view(dtypes.pop())
        return values

    @flat.setter
    def flat(self, value: npt.ArrayLike) -> None:
        assign(self.flat, value, f"the flat array of {self._object.name}")

    # --------------------------------------------------------- over the graph

    def scatter(
        self,
        rows: RowsLike | None = None,
        *,
        to: Sequence[int] | None = None,
        weight: float = 1.0,
        timeout: float | None = None,
    ) -> int:
        """Send the present values, which is not what MPI calls scatter.

        The clock goes up by one. Only ``notify-ack`` waits.

        Parameters
        ----------
        rows : array of int, mask, or scipy.sparse matrix, optional
            Of a sparse vector: the rows to send, changed or not, as indices along the
            first axis in any order, as a mask over it, or as a sparse matrix with a
            column per row, of which those columns count that have entries: the
            examples that the loop has just learned from. None looks at all rows. With
            ``sparse="model"``, rows that a fold changed do not travel on unless they are
            named: with the graph ``all``, where everyone hears of each change at first
            hand, they need not.
        to : sequence of int, optional
            Some of the receivers; all by default.
        weight : float
            What these values count in a ``mean``, for example the number of
            examples behind them.
        timeout : float, optional
            Seconds; None is the job's.

        Returns
        -------
        int
            Payload bytes sent: those of the vector, or of its rows and their indices,
            times the receivers.

        Raises
        ------
        ValueError
            ``to`` names a rank that is not a receiver, ``rows`` names a row that is not
            there, or the vector is not sparse.
        StateError
            In ``bsp`` a second scatter, in ``notify-ack:D`` one after D, without
            a gather between.
        TimeoutError, PeerError
            In ``notify-ack``.
        """
        if type(weight) is not float:
            weight = number(weight)
        if rows is None and to is None:
            if self._mirrored:
                self._take()
            if self._idle is not None:
                self._look_for_changes()
            return self._object.scatter_all(weight, timeout)
        named = None if rows is None else self._rows(rows)
        self._take()
        return self._object.scatter(receivers_of(to), timeout, rows=named, weight=weight)

    def gather(self, fold: Fold | None = None, *, timeout: float | None = None) -> int:
        """Fold what has arrived into the values, waiting as the consistency says.

        Parameters
        ----------
        fold : str or callable, optional
            Instead of the vector's own, this once.
        timeout : float, optional
            Seconds; None is the job's.

        Returns
        -------
        int
            The number of updates folded.

        Raises
        ------
        StateError
            In ``bsp``, nothing was scattered since the last gather.
        TimeoutError, PeerError
            The ranks waited for are named.
        """
        if fold is None and self._plain_gather:
            return self._object.gather(timeout)
        if fold is not None:
            _fold.check(fold, number="timeout")
        self._take()
        count = self._object.gather(timeout) if fold is None and self._own_fold is None else self._gather(fold, timeout)
        if count:
            self._give()
        return count

    def _gather(self, fold: Fold | None, timeout: float | None) -> int:
        if fold is None:
            fold = self._own_fold
        if isinstance(fold, str):
            return self._object.gather_by(fold, timeout)
        if (address := _fold.compiled(fold)) is not None:
            return self._object.gather_native(address, timeout)
        function = cast("Callable[..., Any]", fold)  # the text: what it means would be made in every call
        return _fold.apply(self._object, self._arrays, not self._is_list, function, self._split, timeout, self._sparse)

    @spelled
    def sync(
        self,
        fold: Fold | None = None,
        *,
        every: int = 1,
        rows: RowsLike | None = None,
        weight: float = 1.0,
        timeout: float | None = None,
        **unknown: NoReturn,
    ) -> int | None:
        """Scatter, then gather; at each ``every``-th call.

        Parameters
        ----------
        fold, weight, timeout
            As for `gather` and `scatter`.
        every : int
            Do nothing but count in the calls between. (MALT-2's ``cb_size``.) Each call in
            your source counts by itself.
        rows : array of int, mask, or scipy.sparse matrix, optional
            As for `scatter`. Those of skipped calls are sent along; if one of them
            named none, all rows are looked at.

        Returns
        -------
        int or None
            The number of updates folded; None where the call was skipped.

        Raises
        ------
        StateError, TimeoutError, PeerError
            As `gather` and `scatter`. After a timeout, or Ctrl-C in its wait, the values have
            been sent: `gather` is what goes on from there. (In ``bsp`` its `StateError` says
            that Ctrl-C came when all was done.)

        Notes
        -----
        With the graph ``all`` in ``bsp``, and the folds ``"mean"``, ``"sum"``,
        ``"min"`` and ``"max"``, the ranks make the result in each other's arrays:
        to the same bits, with fewer bytes moved. So leave the values alone from
        this call until it has returned, or after a timeout or Ctrl-C until `gather`
        has: threads and forked children see old and new parts mixed meanwhile, and
        what threads write may be folded, or lost. After a `PeerError` the values may
        hold parts of the result.
        """
        # All arguments are looked at before anything is sent, and in every call.
        if unknown:
            raise misspelt(unknown, self.sync)
        if type(every) is not int or every < 1:
            check_every(every)
        if self._plain_sync and every == 1 and fold is None and rows is None:
            return self._object.sync(weight if type(weight) is float else number(weight), timeout)
        if fold is not None:
            _fold.check(fold, number="every")
        if type(weight) is not float:
            weight = number(weight)
        if rows is not None or self._named is not None:
            self._name(rows)
        if every != 1 and not self._calls.due(every):
            return None
        self._take()
        if self._idle is not None:
            self._look_for_changes(synced=True)
        named = None if self._named is None else self._named.take()
        if fold is None and self._own_fold is None:
            if named is None:
                count = self._object.sync(weight, timeout)
            else:
                count = self._object.sync_rows(named, weight, timeout)
        else:
            if named is None:
                self._object.scatter_all(weight, timeout)
            else:
                self._object.scatter(None, timeout, rows=named, weight=weight)
            count = self._gather(fold, timeout)
        if count:
            self._give()
        if self._idle is not None:
            self._idle.after_sync(self._arrays)
        return count

    def _name(self, rows: RowsLike | None) -> None:
        """Keep what ``rows=`` of a sync names until one communicates."""
        named = None if rows is None else self._rows(rows)
        if self._named is not None:
            self._named.add(named)

    def _rows(self, rows: RowsLike) -> Array:
        """Return what ``rows=`` names."""
        if self._sparse is None:
            raise ValueError(
                lines(
                    f"rows= of {self._object.name}, which is sent as a whole",
                    do="Make the vector with sparse='model' or sparse='gradient'.",
                )
            )
        return index(rows, self._specs[0].shape[0], self._object.name)

    def _look_for_changes(self, synced: bool = False) -> None:
        """Warn, in the first exchanges, if the loop does not change the values."""
        if self._idle is not None and self._idle.look(self, self._arrays, self._object.name, synced):
            self._idle = None
            self._simplify()

    # What the adapters to other libraries' models override.

    def _take(self) -> None:
        """Bring what is kept elsewhere into the arrays; before each exchange."""

    def _give(self) -> None:
        """Bring the arrays to where they are kept; after each exchange that may have changed them."""

    def _split(self, raw: Array) -> tuple[Array, ...]:
        """Cut the bytes of an update as the vector's own memory is cut."""
        return tuple(raw[at:end].view(dtype).reshape(shape) for at, end, dtype, shape in self._cuts)

    # -------------------------------------------------------------- together

    def allreduce(self, op: Op = "mean", *, timeout: float | None = None) -> None:
        """Combine all ranks' values, in place, to the same bits on every rank. Collective.

        Whatever graph and consistency; what was unseen counts as seen. If it raises,
        parts of the values may be combined already.

        Parameters
        ----------
        op : {"mean", "sum", "min", "max"}
        timeout : float, optional
            Seconds; None is the job's.

        Raises
        ------
        ValueError
            No such op.
        TimeoutError, PeerError, StateError
            The time is up; a rank is dead; a rank has ended.

        Examples
        --------
        >>> with malt.Vector(np.arange(3.0)) as v:
        ...     v.allreduce("sum")
        ...     v.array
        array([0., 1., 2.])
        """
        if op not in _world.OPS:
            choose("op", op, _world.OPS)
        if self._mirrored:
            self._take()
        if self._idle is not None:
            self._look_for_changes()
        self._object.allreduce(op, timeout)
        if self._mirrored:
            self._give()

    def broadcast(self, root: int = 0, *, timeout: float | None = None) -> None:
        """Give every rank root's values, in place. Collective.

        Parameters
        ----------
        root : int
            The rank whose values count.
        timeout : float, optional
            Seconds; None is the job's.

        Raises
        ------
        ValueError, TypeError
            ``root`` is not a rank.
        TimeoutError, PeerError, StateError
            As `allreduce`.
        """
        source = _world.checked_rank("root", root)
        self._take()
        self._object.broadcast(source, timeout)
        self._give()

    def configure(
        self,
        *,
        graph: GraphLike | None = None,
        consistency: Consistency | None = None,
        fold: Fold | None = None,
        timeout: float | None = None,
    ) -> None:
        """Change the mode from here on. Collective; what was unseen counts as seen.

        Parameters
        ----------
        graph, consistency, fold
            As for the constructor; None keeps what is.
        timeout : float, optional
            Seconds; None is the job's.

        Raises
        ------
        ValueError, TypeError, MismatchError, TimeoutError, PeerError
            As the constructor; the vector is as it was.

        Examples
        --------
        >>> with malt.Vector(3) as v:
        ...     v.configure(graph="ring", consistency="async")
        ...     v.graph, v.consistency
        (Graph('ring', size=1), 'async')
        """
        if fold is not None:
            _fold.check(fold)
        self._object.configure(options(graph, consistency, fold=_built_in(fold)), timeout)
        self._describe()
        if fold is not None:
            self._own_fold = None if isinstance(fold, str) else fold
            self._simplify()

    def _simplify(self) -> None:
        """Find out which calls are nothing but the library's own, and need not look for more."""
        self._mirrored = type(self)._take is not Vector._take or type(self)._give is not Vector._give
        self._plain_gather = self._own_fold is None and not self._mirrored
        self._plain_sync = self._plain_gather and self._idle is None and self._named is None

    @property
    def sparse(self) -> Literal[False] | Sparse:
        """What travels: "model" or "gradient" rows, or False: everything."""
        return self._sparse or False

    @property
    def fold(self) -> Fold:
        """The vector's own fold: a name, or the function that was given."""
        return cast("Fold", self._described["fold"]) if self._own_fold is None else self._own_fold

    def __repr__(self) -> str:
        what = " + ".join(f"{'x'.join(map(str, s.shape)) or '1'} x {s.dtype}" for s in self._specs)
        more = {"sparse": self._sparse} if self._sparse else {}
        return self._repr(what, fold=self.fold, **more)


def _built_in(fold: Fold | None) -> str | None:
    """Return what the library is told: it knows the built-in folds alone."""
    return fold if isinstance(fold, str) else None


def _cut(a: Array, base: int) -> tuple[int, int, np.dtype[Any], tuple[int, ...]]:
    """Return where an array lies in the vector's bytes, and what it is."""
    at = a.__array_interface__["data"][0] - base if a.size else 0
    return at, at + a.nbytes, a.dtype, a.shape
