"""The vector of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn, get_args

from .. import _fold, _lib, _world
from .._arguments import check_every, number
from .._arrays import Array
from .._errors import StateError, UnsupportedError
from .._every import Calls
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
from ._kinds import state_of, steps_of

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
        Or a Pipeline of such scalers and one of these as its last step; steps that learn
        nothing may be among them.
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

    *Pipelines.* Each step that learns has a vector, which is made once a rank's step has learnt;
    until all are made, each call is collective. `clock`, `graph` and the like are those
    of the last step, as are ``optimizer``, ``attributes`` and ``fold``. Exchange the scalers,
    with `allreduce`, before the next step learns: if they differ when it has, the
    exchange raises a `MismatchError`.

    *fit.* Each ``fit`` makes the model again from nothing, unless it has ``warm_start=True``; what is
    exchanged is what it has come to. ``early_stopping`` belongs to ``fit``: scikit-learn
    refuses it in ``partial_fit``. Estimators that count (scalers, naive Bayes) cannot be fitted again between
    two exchanges: that raises a `StateError`.

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
        self._estimator = estimator
        self._steps = steps_of(estimator)
        *before, last = [estimator] if self._steps is None else self._steps
        self._state = state_of(last, attributes, optimizer)  # of a pipeline, the last step's
        self._states = [*(state_of(step, None, False) for step in before), self._state]
        for state in self._states:
            state.check()
        self._refuse_fold(fold)
        if start is not None:
            choose("start", start, get_args(Start))
        _world.init()
        _lib.check_vector(name, options(graph, consistency))
        self._start = start
        self._options: dict[str, Any] = {"graph": graph, "consistency": consistency, "fold": fold or "mean"}
        self._name = name
        self._vectors: list[Bound | None] = [None] * len(self._states)
        self._calls = Calls()
        self._closed = False

    @property
    def estimator(self) -> Any:
        """The estimator."""
        return self._estimator

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
            Instead of the vector's own, this once.
        every : int
            As for `malt.Vector.sync`.
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
            No rank's estimator has learnt anything, or it was fitted again with
            another shape.
        MismatchError
            The ranks' estimators differ; the message shows both.
        TimeoutError, PeerError
            As `malt.Vector.sync`.
        """
        if unknown:
            raise misspelt(unknown, self.sync)
        self._refuse_fold(fold)
        check_every(every)
        number(weight)
        made = self._ready(timeout)
        if every != 1 and not self._calls.due(every):
            return None
        return [v.sync(v.fold_of(fold), weight=weight, timeout=timeout) for v in made][-1]

    def scatter(self, *, to: Sequence[int] | None = None, weight: float = 1.0, timeout: float | None = None) -> int:
        """Send what the estimator has learnt; see `malt.Vector.scatter`."""
        return sum(v.scatter(to=to, weight=weight, timeout=timeout) for v in self._ready(timeout))

    def gather(self, fold: Fold | None = None, *, timeout: float | None = None) -> int:
        """Fold what has arrived into the estimator; see `malt.Vector.gather`."""
        self._refuse_fold(fold)
        return [v.gather(v.fold_of(fold), timeout=timeout) for v in self._ready(timeout)][-1]

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
        for v in self._ready(timeout):
            v.combine(op, timeout)

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
            ``root`` is not a rank.
        StateError, MismatchError, TimeoutError, PeerError
            As `sync`.
        """
        root = _world.checked_rank("root", root)
        for v in self._ready(timeout):
            v.spread(root, timeout)

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
        for v in self._ready(timeout):
            v.configure(graph=graph, consistency=consistency, fold=v.fold_of(fold), timeout=timeout)

    # --------------------------------------------------------------- looking

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What travels, as views of the vector's memory: weights; counts and sums; own counts."""
        return tuple(a for v in self._vectors if v is not None for a in v.arrays) or self._made.arrays

    @property
    def clock(self) -> int:
        """How many times it has been scattered, or levelled up to by a collective call."""
        return self._made.clock if any(self._vectors) else 0

    @property
    def graph(self) -> Graph:
        """The graph: which ranks each rank sends to."""
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
        for v in self._vectors:
            if v is not None:
                v.close()

    def __enter__(self) -> Vector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if any(self._vectors):
            return self._made.shown(" -> ".join(state.name for state in self._states))
        name = type(self._estimator).__qualname__
        return f"Vector({name}, {'closed' if self._closed else 'nothing exchanged yet'})"

    # ---------------------------------------------------------------- inside

    @property
    def _made(self) -> Bound:
        """The vector of the last step that has one."""
        for v in reversed(self._vectors):
            if v is not None:
                return v
        raise StateError(
            "malt: the vector of an estimator is made in its first sync or allreduce, and there was none yet"
        )

    def _ready(self, timeout: float | None) -> list[Bound]:
        """Return the vectors of the steps that have learnt; the first call that finds one makes it, with all ranks."""
        if self._steps is not None and list(map(id, self._steps)) != list(map(id, steps_of(self._estimator) or ())):
            raise StateError(
                "malt: the pipeline has other steps than before: make a new malt.sklearn.Vector, on all ranks"
            )
        if not all(self._vectors):
            self._make(timeout)
        return [v for v in self._vectors if v is not None]

    def _make(self, timeout: float | None) -> None:
        if self._closed:
            raise StateError(f"malt: this vector of {self._state.name} has been closed: make a new one")
        missing = [i for i, v in enumerate(self._vectors) if v is None]
        for i in missing:
            self._states[i].check()
        for i, agreement in zip(missing, agree([self._states[i] for i in missing], self._start, timeout), strict=True):
            if agreement is not None:
                state = self._states[i]
                options = {**self._options, "name": self._name}
                if state is not self._state and self._name is not None:
                    options["name"] = f"{self._name}/{i}"
                if state.fold is not None:
                    options["fold"] = state.fold
                self._vectors[i] = Bound(state, [a for _, a in state.values()], agreement, timeout, options)

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
