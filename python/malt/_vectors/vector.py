"""Vectors: the model, or the gradient, of one rank in memory that others can see."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeAlias, TypedDict, cast, get_args

import numpy as np
import numpy.typing as npt

from .. import _lib
from .._errors import UnsupportedError
from .._guide import lines
from .._job import world
from .._options import choose, misspelt, spelled
from ..typing import ChangesName, Consistency, Op, Sparse, Start, Uneven, Wire
from . import folds
from .arguments import check_every, number
from .arrays import Array, Spec, assign, specs
from .distance import distance
from .every import Calls
from .exchange import Exchange, options, receivers_of
from .folds import Fold
from .graph import GraphLike
from .idle import Idle
from .ids import numbers, row_of
from .listeners import Marks, listeners, marks
from .pending import Pending
from .rows import Named, RowsLike, index, representation

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Element = TypeVar("Element", bound=np.float32 | np.float64, default=Any)
else:
    Element = typing.TypeVar("Element")  # defaults come with Python 3.13

Whole: TypeAlias = "npt.NDArray[np.integer[Any] | np.bool_]"
Data: TypeAlias = "int | npt.NDArray[Element] | Whole | Sequence[int | npt.NDArray[Element] | Whole]"
"""What a vector can be made of; one `Sequence`, because type checkers infer nothing from two."""


class Options(TypedDict, total=False):
    """The description of a vector, without its arrays."""

    graph: GraphLike
    consistency: Consistency
    fold: Fold
    sparse: Literal[False] | Sparse
    filter: str | None
    wire: Wire
    uneven: Uneven | None
    start: Start
    name: str | None


class Vector(Exchange, Generic[Element]):
    """A model or a gradient that other ranks receive and combine with their own.

    Making a vector is collective: every rank makes the same vectors in the same order.

    Parameters
    ----------
    data : int, tuple of int, ndarray, or list of ndarray
        A length or a shape, for zeros; an array, whose values are copied; or a list of
        arrays that are sent together and keep their dtypes. Arrays must be C-contiguous,
        writable, float32 or float64.
    graph : str, Graph, list of lists of int, or networkx graph
        Which ranks send to which: see `Graph`.
    consistency : {"bsp", "async", "ssp:S", "notify-ack", "notify-ack:D"}
        How far ranks may drift apart. ``bsp``: all ranks are in step. ``async``:
        no rank waits, and newer updates overwrite older ones. ``ssp:S``: no rank is more
        than S scatters ahead of its senders. ``notify-ack:D``: a rank waits for
        the next update of each of its senders, and is at most D ahead.
    fold : {"mean", "mean-received", "sum", "min", "max", "replace", "sum-changes", "mean-changes"} or callable
        How a rank combines updates with its own values. ``mean`` is weighted by
        the ``weight=`` of the scatters. ``sum`` lacks the updates that were overwritten.
        ``mean-changes`` and ``sum-changes`` are for ``all`` in ``bsp``, ``ssp`` and
        ``async``, and for ``butterfly`` and ``shards`` in ``ssp`` and ``async``. They lose nothing: after
        a sync the array is the start values plus what each rank has changed, times the
        ``weight=`` of its sync; see `age`. A model's loop takes
        ``mean-changes``, which divides by the number of ranks, at the learning rate of
        ``mean``. ``sum-changes`` adds the steps of all ranks up: it is for changes that
        seldom meet, such as rows of a matrix factorisation.
        A function gets ``(own, updates)`` and returns the new value; it may change
        ``own`` in place and return it. ``own`` is `array`, or `arrays` as a tuple;
        ``updates`` is a list of `Update`. The function runs in the calling thread, only if
        there are updates, and cannot call its own vector. If it raises an exception, the
        vector keeps its value. A numba ``cfunc`` of type ``malt_fold`` runs without Python;
        if it fails, it must restore the value itself.
    sparse : {False, "model", "gradient"}
        For a vector of one array: send some rows instead of all. A row is the part at one
        index of the first axis; in an array of one axis, it is one element.
        ``"model"``: send the rows that differ from the values that this rank sent last (or
        started with), whether the loop or a fold changed them. Each receiver gets each
        value of a row once, even if updates are overwritten. A fold combines, row by row,
        the rank's own values with those of the updates that contain the row; other rows
        keep their values. On ``shards``: push the rows that have changed, and publish the
        rows that one of the readers lacks.
        ``"gradient"``: send the rows that are not zero. A missing row counts as zero, so the
        result is the same as with dense gradients. If sending all rows takes fewer bytes,
        all are sent.
    filter : {"dvf:D", "dvf:D:U", "dvf-l2:D", "top:P%"}, optional
        With ``sparse="model"``: hold rows back that have changed little, until they have
        changed more. At clock t, ``dvf:D`` sends the rows of which an element is more than
        D/√t away from what was sent last; ``dvf:D:U`` takes U instead of D while a receiver
        has not folded the last update. ``dvf-l2:D`` sends the fewest rows such that what is
        held back of all d elements has a length of at most D·√(d/t). ``top:P%`` sends the
        P % of the rows that are farthest away. NaN and the rows that ``rows=`` names are
        always sent, and `allreduce` sends all. With D = 0 nothing is held back.
    wire : {"exact", "bf16", "f16", "int8"}
        How the floats of a large vector travel between machines, on ``all`` in ``bsp`` with
        ``fold="mean"`` or ``"sum"``: in 16 bits (bfloat16, or float16 with a scale for each 256
        values) or in 8 (with such a scale) instead of 32 or 64. Of a mean, what travels is how far each
        value is from the last result; what rounding loses travels with the next sync. All ranks get
        the same bits. On one machine, and for small vectors, nothing is rounded.
    uneven : {"ok", "error"}, optional
        If a rank makes fewer steps, and is in a collective call, has ended or has closed
        the vector: whether `sync` and `gather` continue without it or raise a `StateError`.
        Later averages bring models together again; gradients of fewer ranks make the models
        drift apart for good. By default "error" with ``sparse="gradient"``, otherwise "ok".
        "error" is not possible in ``async``, which waits for no rank.
    start : {"same", "own"}, optional
        Whether every rank starts with rank 0's values, the default, or with its own, as always with ``ids``.
    ids : array of int, optional
        For a vector of one array: each rank holds other rows, and these are their ids, any
        numbers from 0 to 2**64 - 1, one for each index of the first axis. `sync` is then a
        collective call that combines the rows with equal ids of all ranks: with ``fold="sum"``,
        ``"mean"``, ``"min"`` or ``"max"``, on ``all`` or ``butterfly``, in ``bsp``. An id that a
        rank names twice counts twice. Only these rows travel, and each rank starts with its own.
    wants : array of int, optional
        The ids of the rows that `sync` brings into `wanted`, in this order. By default the result
        goes into the array.
    dtype : float32 or float64, optional
        Converts the arrays. Zeros are float64 by default.
    name : str, optional
        The name in messages: letters, digits and ``._-/``. By default a number.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong; the message says what was expected.
    MismatchError
        The ranks make different vectors; the message shows both.
    OutOfMemoryError
        The machine, or the control group, does not have enough memory.
    TimeoutError, PeerError
        A rank does not make the vector in time, or is dead.

    Notes
    -----
    A vector serves one call at a time: a call from a second thread raises a `StateError`.
    A thread that reads or writes the arrays while another thread is in `gather`, `sync`,
    `allreduce` or `broadcast` sees old and new values mixed.

    A vector should hold a model. If ranks exchange gradients over a graph whose
    `Graph.smallest_real_part` is negative, such as ``halton`` with 4 or 8 ranks, their
    models drift apart. Over ``all`` they do not.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3 (vectors, scatter
    and gather); ``ssp`` is stale synchronous parallel (Ho et al., NIPS
    2013); ``notify-ack`` comes from MALT-2; rows with ids are the sparse allreduce of Zhao and
    Canny (2013); ``dvf`` is the filter of Parameter Flow, ``dvf-l2`` solves the problem that its
    paper poses; ``wire`` keeps what rounding loses by error feedback (Karimireddy et al., ICML 2019).

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

    _instead = "v.array, and make a malt.Vector"

    @spelled
    def __init__(
        self,
        data: Data[Element],
        *,
        graph: GraphLike = "all",
        consistency: Consistency = "bsp",
        fold: Fold = "mean",
        sparse: Literal[False] | Sparse = False,
        filter: str | None = None,
        wire: Wire = "exact",
        uneven: Uneven | None = None,
        start: Start | None = None,
        ids: npt.ArrayLike | None = None,
        wants: npt.ArrayLike | None = None,
        dtype: type[Element] | np.dtype[Element] | type[float] | str | None = None,
        name: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise misspelt(unknown, Vector)
        self._sparse = representation(sparse)
        self._specs, self._is_list = specs(data, dtype)
        self._ids, self._wants = numbers("ids", ids), numbers("wants", wants)
        row = row_of(self._specs, self._sparse, fold, self._ids, self._wants)
        if start == "same" and ids is not None:
            why = "each rank holds other rows, and starts with its own"
            raise ValueError(lines("start='same' with ids=", why, "Leave start out."))
        start = start or "same"
        choose("start", start, get_args(Start))
        if uneven is None:
            uneven = "error" if self._sparse == "gradient" else "ok"
        elif uneven == "error" and consistency == "async":
            raise ValueError(
                lines(
                    "uneven='error' with consistency='async'",
                    "async waits for no rank, so it cannot miss one that makes fewer steps",
                    "Use bsp, ssp:N or notify-ack, or leave uneven out.",
                    topic="uneven",
                )
            )
        choose("uneven", uneven, get_args(Uneven))
        folds.check(fold)
        choose("wire", wire, get_args(Wire))
        if wire != "exact" and not isinstance(fold, str):
            raise ValueError(
                lines(
                    f"wire={wire!r} with a function as fold",
                    "a function gets the values of each rank as they are",
                    "Use fold='mean' or 'sum', or leave wire out.",
                )
            )
        world.init()
        sent = {"sparse": self._sparse, "filter": filter, "wire": wire}
        text = options(graph, consistency, fold=_built_in(fold), uneven=uneven, start=start, **sent)
        parts = [(s.shape, s.dtype, s.init) for s in self._specs]
        _lib.quicken(Vector, _sync, listeners)
        made, flat = _lib.new_vector(parts, name, text, None, row=row, ids=self._ids, wants=self._wants)
        del parts
        self._specs = [Spec(s.shape, s.dtype, None) for s in self._specs]  # lets go of the first values
        if self._ids is not None:
            flat = self._take_rows(flat)
        self._arrays = tuple(a.reshape(s.shape) for a, s in zip(flat, self._specs, strict=True))
        self._cuts = tuple(_cut(a, made.memory.address) for a in self._arrays)
        self._own_fold = None if isinstance(fold, str) else fold
        self._calls = Calls()  # of sync with every=
        self._sent: Marks = []  # where listeners were at a scatter whose gather is due
        # Rows of calls that were skipped; of changes none can be named.
        self._named = None if self._sparse is None or fold in get_args(ChangesName) else Named()
        self._counted = self._calls.last if self._named is None else None
        super().__init__(made)
        watched = self._ids is None and made.memory.nbytes <= Idle.LARGEST
        self._idle = Idle(self._arrays, data) if watched else None
        self._simplify()

    # ---------------------------------------------------------------- memory

    @property
    def array(self) -> npt.NDArray[Element]:
        """The values of a vector of one array, as a writable view without a copy.

        The view stays valid as long as it is referenced, even after `close`. An assignment
        to this attribute copies into it. With the graph ``all`` in ``bsp``, other ranks
        write into it during `sync` and `allreduce`. A forked child sees the values at the
        fork, or later values of its parent; its own writes stay private.
        """
        if len(self._arrays) != 1:
            raise TypeError(lines(f"{self._object.name} has {len(self._arrays)} arrays", do="Use .arrays, or .flat."))
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
            raise ValueError(
                lines(f"{len(values)} arrays are assigned to {self._object.name}", f"it has {len(self._arrays)}")
            )
        for i, (a, value) in enumerate(zip(self._arrays, values, strict=True)):
            assign(a, value, f"array {i} of {self._object.name}")

    @property
    def flat(self) -> npt.NDArray[Element]:
        """All values as a one-dimensional array: a writable view without a copy.

        All arrays must have the same dtype. An assignment copies into it.
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

    @property
    def wanted(self) -> npt.NDArray[Element]:
        """The rows with the ids in ``wants``, in their order, as the last `sync` brought them.

        A row that no rank holds is 0: see `missing`. Without ``wants`` this is `array`. The view
        stays valid as long as it is referenced; `configure` makes another one.
        """
        return self._rows_with_ids()[0]

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """For each row of `wanted`, whether no rank holds it."""
        return self._rows_with_ids()[1]

    def _rows_with_ids(self) -> tuple[Array, Array]:
        if self._ids is None:
            raise ValueError(lines(f"{self._object.name} has no ids", do="Make the vector with ids= and wants=."))
        return self._wanted, self._missing

    def _take_rows(self, flat: Sequence[Array]) -> list[Array]:
        """Keep what comes with the array of a vector with ids, which is returned, flat."""
        array, wanted, missing = flat
        self._wanted = wanted.reshape((-1 if wanted.size else len(missing), *self._specs[0].shape[1:]))
        self._missing = missing if self._wants is not None else np.zeros(len(self._wanted), np.bool_)
        return [array]

    # --------------------------------------------------------- over the graph

    def scatter(
        self,
        rows: RowsLike | None = None,
        *,
        to: Sequence[int] | None = None,
        weight: float = 1.0,
        timeout: float | None = None,
    ) -> int:
        """Send the whole array to each receiver, unlike MPI's scatter.

        The clock goes up by one. Only ``notify-ack`` waits.

        Parameters
        ----------
        rows : array of int, mask, or scipy.sparse matrix, optional
            For a sparse vector, the rows to send, changed or not: indices along the first
            axis in any order; a mask of shape (rows,); or a matrix with a column for each
            row of the vector, such as the examples that the loop has just learnt from,
            whose columns with entries are the rows. By default all rows are searched for
            changes. If you pass rows, include rows that a fold changed, or they are not sent
            on; over ``all`` this is not needed, as each rank gets each change directly.
        to : sequence of int, optional
            Some of the receivers; all by default.
        weight : float
            The weight of these values in a ``mean``, for example the number of examples
            that they were learnt from. With a fold of changes, what the changes are multiplied by;
            in a job of one rank, which sends none, they count whole.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Returns
        -------
        int
            Payload in bytes, of the vector or of its rows and their indices, times the
            number of receivers.

        Raises
        ------
        ValueError, TypeError
            ``to`` contains a rank that is not a receiver, ``rows`` contains a row that does
            not exist, or the vector is not sparse.
        StateError
            A second scatter without a gather in ``bsp``; more than D in ``notify-ack:D``.
        TimeoutError, PeerError
            In ``notify-ack``.
        """
        if type(weight) is not float:
            weight = number(weight)
        self._calls.weight = weight
        if rows is None and to is None:
            if self._mirrored:
                self._take()
            if self._idle is not None:
                self._look_for_changes()
            sent = self._object.scatter_all(weight, timeout)
        else:
            named = None if rows is None else self._rows(rows)
            self._take()
            sent = self._object.scatter(receivers_of(to), timeout, rows=named, weight=weight)
        if listeners and (sent or to is None):
            self._sent = marks()
        return sent

    def gather(self, fold: Fold | None = None, *, wait: float | None = None, timeout: float | None = None) -> int:
        """Fold the updates that have arrived into the values. May wait: see ``consistency``.

        Parameters
        ----------
        fold : str or callable, optional
            For this call, instead of the vector's fold.
        wait : float, optional
            In ``async`` and ``ssp``: wait so many seconds for an update that no gather has folded
            yet, if there is none. The wait ends when no rank can send one: all senders have ended,
            or are in a collective call. Not for ``ids=``, nor for changes on ``butterfly`` and
            ``shards``. A replay waits as the recorded run says.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Returns
        -------
        int
            The number of updates folded; with a fold of changes, from how many other ranks
            there are new changes in the values.

        Raises
        ------
        StateError
            In ``bsp``, there was no scatter since the last gather. With ``uneven="error"``,
            a rank makes fewer steps.
        TimeoutError, PeerError
            The message names the ranks that it waited for, or the dead rank.
        """
        if fold is not None:
            folds.check(fold, number="timeout")
        if wait is not None:
            self._object.await_update(wait)
        if fold is None and self._plain_gather:
            count = self._object.gather(timeout)
        else:
            self._take()
            own = fold is not None or self._own_fold is not None
            count = self._gather(fold, timeout) if own else self._object.gather(timeout)
            if count or self._cumulative:
                self._give()
        if self._sent:
            sent, self._sent = self._sent, []
            self._exchanged(count, sent)
        return count

    def _gather(self, fold: Fold | None, timeout: float | None) -> int:
        if fold is None:
            fold = self._own_fold
        if isinstance(fold, str):
            return self._object.gather_by(fold, timeout)
        if (address := folds.compiled(fold)) is not None:
            return self._object.gather_native(address, timeout)
        function = cast("Callable[..., Any]", fold)  # the text: what it means would be made in every call
        return folds.apply(self._object, self._arrays, not self._is_list, function, self._split, timeout, self._sparse)

    @spelled
    def sync(
        self,
        fold: Fold | None = None,
        *,
        every: int = 1,
        rows: RowsLike | None = None,
        weight: float = 1.0,
        slack: int | None = None,
        timeout: float | None = None,
        **unknown: NoReturn,
    ) -> int | None:
        """Scatter, then gather; at each ``every``-th call.

        Parameters
        ----------
        fold, weight, timeout
            As for `gather` and `scatter`.
        every : int
            Exchange at every so many calls; the calls in between only count. Each place in
            your source that calls `sync` has its own count. (``cb_size`` in MALT-2.)
        rows : array of int, mask, or scipy.sparse matrix, optional
            As for `scatter`. The rows of skipped calls are sent, too; if one of these calls
            had no ``rows``, all rows are searched for changes.
        slack : int, optional
            In ``ssp`` and ``async``: how many syncs the senders may be behind in this one. By
            default, as the consistency says.

        Returns
        -------
        int or None
            As of `gather`; None if the call was skipped.

        Raises
        ------
        ValueError, TypeError, StateError, TimeoutError, PeerError
            As for `gather` and `scatter`. After a timeout or Ctrl-C during the wait, the
            values have been sent: call `gather` to continue. (In ``bsp``, `gather` raises a
            `StateError` if Ctrl-C came after the exchange was complete.)

        Notes
        -----
        With the graph ``all`` in ``bsp``, and the folds ``"mean"``, ``"sum"``, ``"min"`` and
        ``"max"``, each rank computes a part of the result in the arrays of all ranks. This
        gives the same bits and moves fewer bytes. So do not touch the values until this
        call has returned, or, after a timeout or Ctrl-C, until `gather` has: threads and
        forked children would see old and new parts mixed, and what a thread writes may be
        folded or lost. After a `PeerError` the values may hold parts of the result.
        """
        # All arguments are looked at before anything is sent, and in every call.
        if unknown:
            raise misspelt(unknown, self.sync)
        if type(every) is not int or every < 1:
            check_every(every)
        if slack is not None:
            self._check_slack(slack, fold)
        if fold is not None:
            folds.check(fold, number="weight" if isinstance(fold, float) else "every")
            self._check_fold(fold)
        if type(weight) is not float:
            weight = number(weight)
        self._calls.weight = weight
        if rows is not None or self._named is not None:
            self._name(rows)
        if every != 1 and not self._calls.due(every):
            return None
        self._take()
        first = self._idle is not None
        if first:
            self._look_for_changes(synced=True)
        named = None if self._named is None else self._named.take()
        if slack is not None:
            count = self._object.sync_slack(slack, weight, timeout)
        elif fold is None and self._own_fold is None:
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
        if count or self._cumulative or self._ids is not None:
            self._give()
        if listeners:
            self._exchanged(count, marks())
        if self._idle is not None:
            self._idle.after_sync(self._arrays)
        if first and not count and self.consistency == "bsp" and self.senders:
            _lib.warn(
                lines(
                    f"no other rank took part in the first sync of {self._object.name}",
                    "they have ended, or are in a collective call such as allreduce",
                    "Call sync on every rank. Is it under `if rank == 0`, or has a rank no data?",
                    topic="different-calls",
                )
            )
        return count

    def sync_begin(self, *, weight: float = 1.0, timeout: float | None = None) -> Pending:
        """Begin a sync that goes on while the program computes, on a thread of its own.

        Between machines an exchange needs the network and hardly a processor, so it can hide
        behind the computation of something else, such as the next gradient::

            exchanged = v.sync_begin()
            ...                         # must not touch v.array
            exchanged.wait()

        A collective call waits for it first.

        Parameters
        ----------
        weight, timeout
            As for `sync`.

        Returns
        -------
        Pending
            Call its `Pending.wait` before you use the values.

        Raises
        ------
        UnsupportedError
            The fold is a function of your own, or the vector is sparse.

        See Also
        --------
        malt.torch.Gradients : averages gradients while the backward pass goes on.

        Examples
        --------
        >>> with malt.Vector(3) as v:
        ...     exchanged = v.sync_begin()
        ...     exchanged.wait()
        0
        """
        if self._own_fold is not None or self._named is not None:
            raise UnsupportedError(
                lines(
                    f"sync_begin of {self._object.name}, which is sparse or has a function as fold=",
                    do="Use sync, or a built-in fold of the whole.",
                )
            )
        self._object.must_be_open()
        self._calls.weight = weight = number(weight)
        _lib.seconds(timeout)  # a wrong one raises here
        _lib.tell(2)
        self._take()
        sent = marks()

        def finish(count: int) -> None:
            if count or self._cumulative:
                self._give()
            self._exchanged(count, sent)

        return Pending(lambda: self._object.sync_untold(weight, timeout), finish, self._object.name)

    def _check_fold(self, fold: Fold) -> None:
        """Raise unless a sync can have this fold."""
        changes = fold != self.fold and (self._cumulative or fold in get_args(ChangesName))
        if changes or self._ids is not None:
            raise ValueError(
                lines(
                    f"fold={getattr(fold, '__name__', fold)} of one sync of {self._object.name}",
                    f"{'a fold of changes' if changes else 'the fold of rows with ids'} is that of all syncs",
                    "Leave fold= out.",
                )
            )

    def _check_slack(self, slack: int, fold: Fold | None) -> None:
        """Raise unless a sync can have this slack."""
        if type(slack) is not int or not 0 <= slack < 1 << 63:
            raise ValueError(lines(f"slack={slack!r}", "expected a whole number from 0 to 65536"))
        if fold is not None or self._own_fold is not None or self._named is not None:
            raise ValueError(
                lines(
                    f"slack={slack} with a function as fold=, with fold= of one sync, or with sparse=",
                    do="Leave slack= out, and make the vector with consistency='ssp:N'.",
                )
            )

    def _name(self, rows: RowsLike | None) -> None:
        """Keep what ``rows=`` of a sync names until one communicates."""
        named = None if rows is None else self._rows(rows)
        if self._named is not None:
            self._named.add(named)

    def _rows(self, rows: RowsLike) -> Array:
        """Return what ``rows=`` names."""
        if self._cumulative or self._ids is not None:
            raise ValueError(
                lines(
                    f"rows= of {self._object.name}, which has {f'fold={self.fold}' if self._cumulative else 'ids='}",
                    "what has to be sent is found without",
                    "Leave rows= out.",
                )
            )
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

    def _exchanged(self, count: int, sent: Marks) -> None:
        """Tell the listeners of an exchange that folded ``count`` updates, if what was sent will be folded in turn.

        In `async` and `ssp` it lies there until it is. Where ranks are in step it is folded
        in the same step, or never: a rank that is away (in a collective call) misses it. So it counts only if no
        rank was missing.
        """
        mode = self.consistency
        if mode != "async" and not mode.startswith("ssp") and count < world.size() - 1 and count < len(self.senders):
            return
        for listener, mark in sent:
            listener.exchanged(mark)

    # What the adapters to other libraries' models override.

    def _take(self) -> None:
        """Bring what is kept elsewhere into the arrays; before each exchange."""

    def _give(self) -> None:
        """Bring the arrays to where they are kept; after each exchange that may have changed them."""

    def _split(self, raw: Array) -> tuple[Array, ...]:
        """Cut the bytes of an update as the vector's own memory is cut."""
        return tuple(raw[at:end].view(dtype).reshape(shape) for at, end, dtype, shape in self._cuts)

    # -------------------------------------------------------------- together

    def allreduce(self, op: Op | ChangesName | None = None, *, timeout: float | None = None) -> None:
        """Combine the values of all ranks in place; every rank gets the same bits. Collective.

        Graph and consistency do not matter. Updates that were not gathered yet count as seen.
        After an error, parts of the values may already be combined.

        Parameters
        ----------
        op : {"mean", "sum", "min", "max"}, optional
            How to combine, element by element: by default "mean". With the fold
            ``sum-changes`` or ``mean-changes`` it is by default that fold: the start values plus
            all changes of all ranks; changes that this rank has not sent have the ``weight=`` of its last
            `sync`. After any of them, changes count from the new values on.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Raises
        ------
        ValueError
            There is no such op.
        TimeoutError, PeerError, StateError, MismatchError
            The time is up; a rank is dead; a rank has ended; a rank makes another
            collective call.

        Examples
        --------
        >>> with malt.Vector(np.arange(3.0)) as v:
        ...     v.allreduce("sum")
        ...     v.array
        array([0., 1., 2.])
        """
        if op is None:
            op = cast("ChangesName", self.fold) if self._cumulative else "mean"
        elif op not in world.OPS and not (self._cumulative and op == self.fold):
            choose("op", op, world.OPS)
        if self._mirrored:
            self._take()
        if self._idle is not None:
            self._look_for_changes()
        self._object.allreduce(op, timeout, self._calls.weight)
        if self._mirrored:
            self._give()
        for listener, mark in marks():
            listener.exchanged(mark)

    def broadcast(self, root: int = 0, *, timeout: float | None = None) -> None:
        """Copy root's values to every rank, in place. Collective.

        Parameters
        ----------
        root : int
            The rank whose values are copied.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Raises
        ------
        ValueError, TypeError
            ``root`` is not a rank.
        TimeoutError, PeerError, StateError, MismatchError
            As for `allreduce`.
        """
        source = world.checked_rank("root", root)
        self._take()
        self._object.broadcast(source, timeout)
        self._give()

    def distance(self, *, timeout: float | None = None) -> float:
        """Return how far apart the ranks' values are. Collective; changes nothing.

        The larger it is, the more the next average throws away: sync more often, or use a
        graph with more edges. It moves as much as an `allreduce`, so ask now and then.

        Parameters
        ----------
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Returns
        -------
        float
            The root mean square of the ranks' distances from their mean, relative to the
            length of the mean (both Euclidean, over all elements): 0.0 if all ranks have the
            same values, .01 if they are 1 % off, inf if the mean is 0. The same on all
            ranks; nan if a value is.

        Raises
        ------
        TimeoutError, PeerError, StateError, MismatchError
            As for `allreduce`.

        Examples
        --------
        >>> with malt.Vector(np.array([3.0, 4.0])) as v:
        ...     v.distance()
        0.0
        """
        if self._ids is not None:
            raise UnsupportedError(lines(f"{self._object.name} has other rows on each rank", "it has no distance"))
        self._take()
        return distance(self.arrays, timeout)

    def configure(
        self,
        *,
        graph: GraphLike | None = None,
        consistency: Consistency | None = None,
        fold: Fold | None = None,
        ids: npt.ArrayLike | None = None,
        wants: npt.ArrayLike | None = None,
        timeout: float | None = None,
    ) -> None:
        """Change graph, consistency or fold, or the rows of a vector with ids. Collective.

        Updates that were not gathered yet count as seen.

        Parameters
        ----------
        graph, consistency, fold
            As for the constructor; None: unchanged.
        ids, wants : array of int, optional
            For a vector made with ``ids=``, which keeps the rest: its new rows, and the rows that it
            wants; None: unchanged. `array`, `wanted` and `missing` are new arrays then, of
            zeros if ``ids`` is given; old ones are exchanged no longer. All ranks give ``ids`` or
            ``wants``, or none does.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Raises
        ------
        ValueError, TypeError, MismatchError, TimeoutError, PeerError
            As for the constructor; the vector is unchanged.

        Examples
        --------
        >>> with malt.Vector(3) as v:
        ...     v.configure(graph="ring", consistency="async")
        ...     v.graph, v.consistency
        (Graph('ring', size=1), 'async')
        """
        if ids is not None or wants is not None:
            if graph is not None or consistency is not None or fold is not None:
                raise ValueError(lines("ids= or wants= with graph=, consistency= or fold=", do="Make a new vector."))
            self._configure_rows(numbers("ids", ids), numbers("wants", wants), timeout)
            return
        if fold is not None:
            folds.check(fold)
        self._object.configure(options(graph, consistency, fold=_built_in(fold)), timeout)
        self._describe()
        if fold is not None:
            self._own_fold = None if isinstance(fold, str) else fold
            self._simplify()
        self._tell()

    def _configure_rows(self, ids: Array | None, wants: Array | None, timeout: float | None) -> None:
        old = self._rows_with_ids() and self._arrays[0]
        rows = self._ids if ids is None else ids
        wanted = self._wants if wants is None else wants
        flat = self._object.configure_rows(cast("Array", rows), wanted, old.dtype, timeout)
        self._ids, self._wants = rows, wanted
        self._specs = [Spec((len(cast("Array", rows)), *old.shape[1:]), old.dtype, None)]
        self._arrays = (self._take_rows(flat)[0].reshape(self._specs[0].shape),)
        if ids is None:
            self._arrays[0][...] = old
            if wanted is None:
                self._wanted = self._arrays[0]

    def _simplify(self) -> None:
        """Find out which calls are nothing but the library's own, and need not look for more."""
        self._mirrored = type(self)._take is not Vector._take or type(self)._give is not Vector._give
        self._cumulative = self.fold in get_args(ChangesName)
        self._plain_gather = self._own_fold is None and not self._mirrored
        plain = self._plain_gather and self._idle is None and self._named is None
        self._quick = (self._object.handle, self._object, self._calls.last) if plain else None

    @property
    def age(self) -> int:
        """How many syncs of the rank farthest behind the last gather lacked, with a fold of changes.

        A rank that is in a collective call, or gone, does not count once all that it had changed has
        come. It is at most S in ``ssp:S``, 0 in ``bsp``, and 0 with other folds.
        """
        return self._object.age()

    @property
    def sparse(self) -> Literal[False] | Sparse:
        """Which rows are sent: those of a "model" or a "gradient", or False for all."""
        return self._sparse or False

    @property
    def filter(self) -> str | None:
        """Which changed rows are held back, or None for none."""
        return self._described.get("filter")

    @property
    def wire(self) -> Wire:
        """How floats travel between machines."""
        return cast("Wire", self._described.get("wire", "exact"))

    @property
    def fold(self) -> Fold:
        """The vector's fold: a name, or your function."""
        return cast("Fold", self._described["fold"]) if self._own_fold is None else self._own_fold

    def _facts(self) -> dict[str, object]:
        what = " + ".join(f"{'x'.join(map(str, s.shape)) or '1'} x {s.dtype}" for s in self._specs)
        bytes_ = sum(array.nbytes for array in self._arrays)
        more = {"fold": self.fold, "sparse": self._sparse, "filter": self.filter, "wire": self._described.get("wire")}
        more = {option: value for option, value in more.items() if value}
        return {"holds": what, "bytes": bytes_, **super()._facts(), **more}


_sync = Vector.sync


def _built_in(fold: Fold | None) -> str | None:
    """Return what the library is told: it knows the built-in folds alone."""
    return fold if isinstance(fold, str) else None


def _cut(a: Array, base: int) -> tuple[int, int, np.dtype[Any], tuple[int, ...]]:
    """Return where an array lies in the vector's bytes, and what it is."""
    at = a.__array_interface__["data"][0] - base if a.size else 0
    return at, at + a.nbytes, a.dtype, a.shape
