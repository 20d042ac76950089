"""The vector of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn, get_args

from .. import _fold, _lib, _world
from .._arrays import Array
from .._errors import StateError, UnsupportedError
from .._exchange import options
from .._fold import Fold
from .._graph import Graph, GraphLike
from .._need import need
from .._options import choose, misspelt, spelled
from .._stats import Stats
from ..typing import Consistency, Op, Start
from ._agree import agree
from ._bound import Bound
from ._centres import Centres
from ._counts import Totals
from ._kinds import state_of

__all__ = ["Vector"]


class Vector:
    """The model of an estimator with ``partial_fit``, exchanged between ranks.

    The vector is made in the first call that exchanges, by all ranks together:
    only then is it known what the estimator has learnt. That call compares the
    ranks' classes, features and shapes. A rank that has had no data by then is
    given the model of the first that has.

    Parameters
    ----------
    estimator : object
        Of scikit-learn: SGDClassifier, SGDRegressor, SGDOneClassSVM, Perceptron,
        PassiveAggressiveClassifier, PassiveAggressiveRegressor, MLPClassifier,
        MLPRegressor (weights, averaged); MiniBatchKMeans (centres, averaged by
        their counts); MultinomialNB, BernoulliNB, ComplementNB, CategoricalNB,
        GaussianNB (counts and moments, added up); StandardScaler, MinMaxScaler,
        MaxAbsScaler (counts, moments and extrema, merged). Or one derived from these.
    attributes : list of str, optional
        The fitted arrays, or lists of arrays, to be averaged, of an estimator that
        is none of these.
    optimizer : bool
        Of MLPClassifier and MLPRegressor: average the state of Adam, or the
        momentum, too. What travels is then three, or two, times as large.
    graph, consistency, name
        As for `malt.Vector`.
    fold : {"mean", "mean-received", "sum", "min", "max", "replace"} or callable
        As for `malt.Vector`, for weights; ``mean`` by default. Centres know no sum, min and max, and
        what is counted is always added up.
    start : {"same", "own"}, optional
        What the first exchange finds: rank 0's model on every rank, or each its
        own. By default its own where ranks start from the same values (linear
        models start with zeros; networks and k-means with equal ``random_state``
        or ``init``), and else rank 0's, because a mean of unlike networks is none.
        Counts are always each rank's own.

    Raises
    ------
    UnsupportedError
        The estimator's model cannot be exchanged (IncrementalPCA, ``average=True``,
        no ``partial_fit``); the message says why and what to do.
    PackageError
        There is no scikit-learn.
    TypeError, ValueError
        A wrong argument.

    Notes
    -----
    *Weights.* ``coef_`` and its like become views of the vector's memory, and are
    made so again in each exchange, because some estimators replace them. An array
    that was looked up before the first exchange is therefore no longer the
    estimator's. Pickles, clones and copies of the estimator have arrays of their
    own.

    *Step size.* Each rank counts its own examples only, so a decaying step stays
    larger than in one process that sees them all.

    *Centres.* Reassigning rarely used centres (``reassignment_ratio``) is left to
    each rank.

    *Counts.* After `allreduce` the model is the one that a single process would have
    counted: to the bit for whole counts, else up to rounding. Over a graph
    other than ``all``, `sync` adds up the neighbours only. What all ranks
    had counted alike when their vectors were made, such as a model that each has
    loaded, counts once.

    *fit.* Each ``fit`` makes the model anew, unless it has ``warm_start=True``; what is
    exchanged is what it has come to. ``early_stopping`` belongs to ``fit``: scikit-learn
    refuses it in ``partial_fit``.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3, model averaging.
    Sculley, "Web-scale k-means clustering", WWW 2010. Chan, Golub, LeVeque,
    "Updating formulae and a pairwise algorithm for computing sample variances",
    STAN-CS-79-773.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> x, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    >>> clf = SGDClassifier(random_state=0)
    >>> with malt.sklearn.Vector(clf) as v:
    ...     for _ in range(10):                     # this rank's batches
    ...         clf = clf.partial_fit(x, y, classes=[0, 1])
    ...         folded = v.sync()
    ...     v.allreduce()
    >>> clf.predict(x)
    array([0, 1])
    """

    @spelled
    def __init__(
        self,
        estimator: Any,
        *,
        attributes: Sequence[str] | None = None,
        optimizer: bool = False,
        graph: GraphLike = "all",
        consistency: Consistency = "bsp",
        fold: Fold | None = None,
        start: Start | None = None,
        name: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise misspelt(unknown, Vector)
        need("sklearn", "malt.sklearn", package="scikit-learn")
        self._state = state_of(estimator, attributes, optimizer)
        self._state.check()
        self._refuse_fold(fold)
        if start is not None:
            choose("start", start, get_args(Start))
        _world.init()
        _lib.check_vector(name, options(graph, consistency))
        self._start = start
        self._options: dict[str, Any] = {"graph": graph, "consistency": consistency, "name": name}
        self._options["fold"] = self._state.fold or fold or "mean"
        self._vector: Bound | None = None
        self._closed = False

    @property
    def estimator(self) -> Any:
        """The estimator."""
        return self._state.estimator

    # --------------------------------------------------------- over the graph

    @spelled
    def sync(
        self,
        fold: Fold | None = None,
        *,
        every: int = 1,
        weight: float = 1.0,
        timeout: float | None = None,
        **unknown: NoReturn,
    ) -> int | None:
        """Send what the estimator has learnt and fold what has arrived; at each ``every``-th call.

        The first call is collective, also where ``every`` lets it exchange nothing.

        Parameters
        ----------
        fold : str or callable, optional
            In place of the vector's own, this once.
        every : int
            Do nothing but count in the calls between.
        weight : float
            What this rank's model counts in a mean, for example the number of
            examples since the last exchange. Of no account to counts.
        timeout : float, optional
            Seconds; None is the job's.

        Returns
        -------
        int or None
            The number of updates folded; None where the call was skipped.

        Raises
        ------
        StateError
            No rank's estimator has learnt anything, or it was fitted anew with
            another shape.
        MismatchError
            The ranks' estimators differ; the message shows both.
        TimeoutError, PeerError
            As `malt.Vector.sync`.
        """
        if unknown:
            raise misspelt(unknown, self.sync)
        self._refuse_fold(fold)
        return self._ready(timeout).sync(fold, every=every, weight=weight, timeout=timeout)

    def scatter(self, *, to: Sequence[int] | None = None, weight: float = 1.0, timeout: float | None = None) -> int:
        """Send what the estimator has learnt; see `malt.Vector.scatter`."""
        return self._ready(timeout).scatter(to=to, weight=weight, timeout=timeout)

    def gather(self, fold: Fold | None = None, *, timeout: float | None = None) -> int:
        """Fold what has arrived into the estimator; see `malt.Vector.gather`."""
        self._refuse_fold(fold)
        return self._ready(timeout).gather(fold, timeout=timeout)

    # -------------------------------------------------------------- together

    def allreduce(self, op: Op = "mean", *, timeout: float | None = None) -> None:
        """Combine all ranks' models to the same bits on every rank. Collective.

        A rank whose estimator has had no data at all does not count in the mean.

        Parameters
        ----------
        op : {"mean", "sum", "min", "max"}
            For weights. Centres are averaged, counts are added up.
        timeout : float, optional
            Seconds; None is the job's.

        Raises
        ------
        StateError, MismatchError, TimeoutError, PeerError
            As `sync`.
        """
        choose("op", op, _world.OPS)
        if op != "mean" and isinstance(self._state, Totals | Centres):
            raise UnsupportedError(f"malt: op={op!r} makes no sense for {self._state.name}: leave it out")
        self._ready(timeout).combine(op, timeout)

    def broadcast(self, root: int = 0, *, timeout: float | None = None) -> None:
        """Give every rank root's model. Collective.

        Parameters
        ----------
        root : int
            The rank whose model counts.
        timeout : float, optional
            Seconds; None is the job's.

        Raises
        ------
        ValueError, TypeError
            ``root`` is no rank.
        StateError, MismatchError, TimeoutError, PeerError
            As `sync`.
        """
        root = _world.checked_rank("root", root)
        self._ready(timeout).spread(root, timeout)

    def configure(
        self,
        *,
        graph: GraphLike | None = None,
        consistency: Consistency | None = None,
        fold: Fold | None = None,
        timeout: float | None = None,
    ) -> None:
        """Change the mode from here on; see `malt.Vector.configure`. Collective."""
        self._refuse_fold(fold)
        self._ready(timeout).configure(graph=graph, consistency=consistency, fold=fold, timeout=timeout)

    # --------------------------------------------------------------- looking

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What travels, as views of the vector's memory: weights; counts and sums; own counts."""
        return self._made.arrays

    @property
    def clock(self) -> int:
        """How many times it has been scattered, or levelled up to by a collective call."""
        return 0 if self._vector is None else self._vector.clock

    @property
    def graph(self) -> Graph:
        """Who sends to whom."""
        return self._made.graph

    @property
    def consistency(self) -> Consistency:
        """How far ranks may drift apart."""
        return self._made.consistency

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self._made.name

    @property
    def receivers(self) -> list[int]:
        """Ranks that the next scatter goes to, in the graph's order."""
        return self._made.receivers

    @property
    def senders(self) -> list[int]:
        """Ranks that this one hears from."""
        return self._made.senders

    def stats(self) -> Stats:
        """Return what it has done so far, in total and per neighbour."""
        return self._made.stats()

    def close(self) -> None:
        """Leave it: other ranks no longer wait for this one in it. Not collective.

        The estimator keeps its arrays, and can be used on.
        """
        self._closed = True
        if self._vector is not None:
            self._vector.close()

    def __enter__(self) -> Vector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._vector is not None:
            return self._vector.shown(self._state.name)
        return f"Vector({self._state.name}, {'closed' if self._closed else 'nothing exchanged yet'})"

    # ---------------------------------------------------------------- inside

    @property
    def _made(self) -> Bound:
        if self._vector is None:
            raise StateError(
                "malt: the vector of an estimator is made in its first sync or allreduce, and there was none yet"
            )
        return self._vector

    def _ready(self, timeout: float | None) -> Bound:
        """Return the vector; the first call makes it, with all ranks."""
        if self._vector is not None:
            return self._vector
        if self._closed:
            raise StateError(f"malt: this vector of {self._state.name} has been closed: make a new one")
        state = self._state
        state.check()
        agreement = agree(state, self._start, timeout)
        arrays = [value for _, value in state.values()]
        self._vector = Bound(state, arrays, agreement, timeout, self._options)
        return self._vector

    def _refuse_fold(self, fold: Fold | None) -> None:
        """Raise where the fold is none, or would make no sense for the estimator."""
        if fold is None:
            return
        _fold.check(fold)
        if isinstance(self._state, Totals):
            raise UnsupportedError(
                f"malt: fold={fold!r}: what {self._state.name} has counted is added up in any case: leave it out"
            )
        if isinstance(self._state, Centres) and fold in ("sum", "min", "max"):
            raise UnsupportedError(f"malt: fold={fold!r}: centres are averaged by their counts: leave it out")
