"""The vector of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn, get_args

from .. import _frames, _lib
from .._errors import StateError, UnsupportedError
from .._guide import lines
from .._job import world
from .._need import need
from .._options import choose, misspelt, spelled
from .._vectors import folds
from .._vectors.arguments import check_every, number
from .._vectors.arrays import Array
from .._vectors.distance import distance
from .._vectors.every import Calls
from .._vectors.exchange import Exchanged, options
from .._vectors.folds import Fold
from .._vectors.graph import GraphLike
from ..typing import ChangesName, Consistency, Op, Start
from ._agree import agree
from ._bound import Bound
from ._centres import Centres
from ._counts import Totals
from ._kinds import state_of, steps_of


class Vector(Exchanged):
    """The model of an estimator with ``partial_fit``, exchanged between ranks.

    All ranks make the vector together in the first call that exchanges, because the shapes
    of the model are not known before it has learnt. That call compares the ranks' classes,
    features and shapes. A rank that has had no data by then gets the model of the first
    rank that has.

    Parameters
    ----------
    estimator : object
        One of these estimators of scikit-learn, or one derived from them: SGDClassifier,
        SGDRegressor, SGDOneClassSVM, Perceptron, PassiveAggressiveClassifier,
        PassiveAggressiveRegressor, MLPClassifier, MLPRegressor (weights, averaged);
        MiniBatchKMeans (centres, averaged by their counts); MultinomialNB, BernoulliNB,
        ComplementNB, CategoricalNB, GaussianNB (counts and moments, added up);
        StandardScaler, MinMaxScaler, MaxAbsScaler (counts, moments and extrema, merged).
        Or a Pipeline of such scalers, steps that learn nothing, and one of these
        estimators as its last step.
    attributes : list of str, optional
        For any other estimator: the names of its fitted arrays, or lists of arrays, to be
        averaged.
    optimizer : bool
        For MLPClassifier and MLPRegressor: also average the state of Adam, or the
        momentum. Messages are then three times, or twice, as large.
    graph, consistency, name
        As for `malt.Vector`.
    fold : {"mean", "mean-received", "sum", "min", "max", "replace", "sum-changes", "mean-changes"} or callable
        As for `malt.Vector`, for weights; ``mean`` by default. Centres do not allow sum, min,
        max or changes, and counts are always added up.
    sparse, filter
        As for `malt.Vector`, for weights, of which each is a row: ``sparse="model"`` sends the
        weights that have changed. A function as ``fold`` then gets all weights in one array.
    start : {"same", "own"}, optional
        Whether each rank starts with rank 0's model or with its own. By default with its
        own if all ranks start from the same values (linear models start with zeros;
        networks and k-means with equal ``random_state`` or ``init``), otherwise with rank
        0's, because an average of different networks is useless. For counts, each rank
        always starts with its own. With a fold of changes all start with what rank 0's model is
        when the vector is made, zeros if it has learnt nothing; what each learns from then on counts.

    Raises
    ------
    UnsupportedError
        The estimator's model cannot be exchanged (IncrementalPCA, ``average=True``,
        no ``partial_fit``); the message says why and what to do.
    PackageError
        scikit-learn is not installed.
    TypeError, ValueError
        An argument is wrong.

    Notes
    -----
    *Weights.* ``coef_`` and the like become views of the vector's memory, again in each
    exchange, because some estimators replace them. So do not keep a reference to such an
    array from before the first exchange. Pickles, clones and copies of the estimator have
    their own arrays.

    *Step size.* Each rank counts its own examples only, so a step that decays with them
    stays larger than in one process that sees all.

    *Centres.* Each rank reassigns rarely used centres (``reassignment_ratio``) by itself.

    *Counts.* After `allreduce` the model is the same as if one process had seen all data:
    to the bit for whole counts, otherwise up to rounding. Over a graph other than ``all``,
    `sync` adds up the counts of neighbours only. Counts that all ranks had in common when
    the vector was made, such as those of a model that each rank has loaded, count once.

    *Pipelines.* Each step that learns has its own vector, which is made once a rank's step
    has learnt; until all of them are made, each call is collective. ``optimizer``,
    ``attributes`` and ``fold`` apply to the last step, and `clock`, `graph` and the like are
    those of the last step. Exchange the scalers, with `allreduce`, before the next step
    learns: if they still differ then, the exchange raises a `MismatchError`.

    *fit.* Each ``fit`` trains the model again from the start, unless the estimator has
    ``warm_start=True``; an exchange then takes the result. ``early_stopping`` works in
    ``fit`` only: scikit-learn refuses it in ``partial_fit``. If an estimator that counts
    (scalers, naive Bayes) is fitted again between two exchanges, the next one raises a
    `StateError`.

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
        sparse: Literal[False, "model"] = False,
        filter: str | None = None,
        start: Start | None = None,
        name: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        if named := unknown.keys() & {"ids", "wants"}:
            raise UnsupportedError(
                lines(
                    f"{min(named)}= with an estimator",
                    "ids are of rows of one array, and a feature's weights are columns of coef_",
                    "Share them by a malt.Vector(weights, ids=features), as the guide does.",
                )
            )
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
        rows = {"sparse": sparse or None, "filter": filter}
        if sparse:
            choose("sparse", sparse, ("model",))
            self._refuse("sparse", sparse, True)
        if start is not None:
            choose("start", start, get_args(Start))
        world.init()
        _lib.check_vector(name, options(graph, consistency, fold=fold if isinstance(fold, str) else None, **rows))
        self._since: list[Array] | None = None
        if fold in get_args(ChangesName):
            start = start or "same"
            self._since = self._before(fold)
        self._start = start
        self._options: dict[str, Any] = {"graph": graph, "consistency": consistency, "fold": fold or "mean"}
        self._rows = rows
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
        slack: int | None = None,
        timeout: float | None = None,
        **unknown: NoReturn,
    ) -> int | None:
        """Send the model and fold the models that have arrived; at each ``every``-th call.

        The first call is collective, even if ``every`` skips the exchange.

        Parameters
        ----------
        fold : str or callable, optional
            For this call, instead of the vector's fold.
        every : int
            As for `malt.Vector.sync`.
        weight : float
            The weight of this rank's model in a mean, for example the number of
            examples since the last exchange. Counts ignore it.
        slack : int, optional
            As for `malt.Vector.sync`.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Returns
        -------
        int or None
            The number of updates folded; None if the call was skipped.

        Raises
        ------
        StateError
            No rank's estimator has learnt anything, or it was fitted again with
            another shape.
        MismatchError
            The ranks' estimators differ; the message shows both.
        TimeoutError, PeerError
            As for `malt.Vector.sync`.
        """
        if unknown:
            raise misspelt(unknown, self.sync)
        self._refuse_fold(fold)
        check_every(every)
        weight = number(weight)
        made = self._ready(timeout)
        if every != 1 and not self._calls.due(every):
            for v in made:
                v.skip(weight)
            return None
        return [v.sync(v.fold_of(fold), weight=weight, slack=slack, timeout=timeout) for v in made][-1]

    def scatter(self, *, to: Sequence[int] | None = None, weight: float = 1.0, timeout: float | None = None) -> int:
        """Send the model; see `malt.Vector.scatter`."""
        return sum(v.scatter(to=to, weight=weight, timeout=timeout) for v in self._ready(timeout))

    def gather(self, fold: Fold | None = None, *, timeout: float | None = None) -> int:
        """Fold the models that have arrived into the estimator; see `malt.Vector.gather`."""
        self._refuse_fold(fold)
        return [v.gather(v.fold_of(fold), timeout=timeout) for v in self._ready(timeout)][-1]

    # -------------------------------------------------------------- together

    def allreduce(self, op: Op | None = None, *, timeout: float | None = None) -> None:
        """Combine all ranks' models; every rank gets the same bits. Collective.

        A rank whose estimator has had no data does not count in the mean.

        Parameters
        ----------
        op : {"mean", "sum", "min", "max"}, optional
            For weights; by default "mean", or the fold if that is one of changes.
            Centres are always averaged, and counts always added up.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Raises
        ------
        UnsupportedError
            ``op`` is not "mean", and the estimator has centres or counts.
        StateError, MismatchError, TimeoutError, PeerError
            As for `sync`.
        """
        if op is not None:
            choose("op", op, world.OPS)
        if op not in (None, "mean") and isinstance(self._state, Totals | Centres):
            raise UnsupportedError(lines(f"op={op!r} makes no sense for {self._state.name}", do="Leave it out."))
        for v in self._ready(timeout):
            v.combine(op, timeout)

    def broadcast(self, root: int = 0, *, timeout: float | None = None) -> None:
        """Copy root's model to every rank. Collective.

        Parameters
        ----------
        root : int
            The rank whose model is copied.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Raises
        ------
        ValueError, TypeError
            ``root`` is not a rank.
        StateError, MismatchError, TimeoutError, PeerError
            As for `sync`.
        """
        root = world.checked_rank("root", root)
        for v in self._ready(timeout):
            v.spread(root, timeout)

    def distance(self, *, timeout: float | None = None) -> float:
        """Return how far apart the ranks' models are; see `malt.Vector.distance`. Collective."""
        if isinstance(self._state, Totals):
            called = f"distance() makes no sense for {self._state.name}"
            raise UnsupportedError(lines(called, "it has counts, which are added up"))
        return distance([a for v in self._ready(timeout) for a in v.current()], timeout)

    def configure(
        self,
        *,
        graph: GraphLike | None = None,
        consistency: Consistency | None = None,
        fold: Fold | None = None,
        timeout: float | None = None,
    ) -> None:
        """Change graph, consistency or fold; see `malt.Vector.configure`. Collective."""
        self._refuse_fold(fold)
        for v in self._ready(timeout):
            v.configure(graph=graph, consistency=consistency, fold=v.fold_of(fold), timeout=timeout)

    # --------------------------------------------------------------- looking

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The exchanged arrays, as views of the vector's memory: weights; counts and sums; own counts."""
        return tuple(a for v in self._vectors if v is not None for a in v.parts) or self._made.parts

    @property
    def clock(self) -> int:
        """The number of scatters; collective calls set it to the largest of all ranks."""
        return self._made.clock if any(self._vectors) else 0

    @property
    def age(self) -> int:
        """How many syncs of the rank farthest behind the last exchange lacked; see `malt.Vector.age`."""
        return self._made.age

    def close(self) -> None:
        """Close the vector: other ranks no longer wait for this one in it. Not collective.

        The estimator keeps its arrays, and can still be used.
        """
        self._closed = True
        for v in self._vectors:
            if v is not None:
                v.close()

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
            lines(
                "the vector of this estimator is not made yet",
                "its first sync or allreduce makes it",
                "Call one of these first.",
            )
        )

    def _ready(self, timeout: float | None) -> list[Bound]:
        """Return the vectors of the steps that have learnt; the first call that finds one makes it, with all ranks."""
        if self._steps is not None and list(map(id, self._steps)) != list(map(id, steps_of(self._estimator) or ())):
            raise StateError(
                lines("the steps of the pipeline have changed", do="Make a new malt.sklearn.Vector, on all ranks.")
            )
        if not all(self._vectors):
            self._make(timeout)
        return [v for v in self._vectors if v is not None]

    def _make(self, timeout: float | None) -> None:
        if self._closed:
            raise StateError(lines(f"this vector of {self._state.name} has been closed", do="Make a new one."))
        missing = [i for i, v in enumerate(self._vectors) if v is None]
        for i in missing:
            self._states[i].check()
        for i, agreement in zip(missing, agree([self._states[i] for i in missing], self._start, timeout), strict=True):
            if agreement is not None:
                state = self._states[i]
                options = {**self._options, "name": self._name} | (self._rows if state is self._state else {})
                if state is not self._state and self._name is not None:
                    options["name"] = f"{self._name}/{i}"
                if state.fold is not None:
                    options["fold"] = state.fold
                since = self._since if state is self._state else None
                made = Bound(state, agreement, since, timeout, options)
                if self._name is None:
                    _frames.unnamed[made.called] = self
                self._vectors[i] = made

    def _before(self, fold: Fold | None) -> list[Array]:
        """Return the model that changes count from; empty: zeros, of shapes that are not known yet."""
        state = self._state
        if state.fitted():
            return [a.copy() for _, a in state.values()]
        if state.alike() == "zeros":
            return []
        raise StateError(
            lines(
                f"fold={fold!r} of {state.name}, which has learnt nothing yet",
                "changes count from its first model, which is not known before",
                "Call partial_fit on the same rows on all ranks first.",
            )
        )

    def _refuse_fold(self, fold: Fold | None) -> None:
        """Raise where the fold is none, or would make no sense for the estimator."""
        if fold is None:
            return
        folds.check(fold)
        self._refuse("fold", fold, fold in ("sum", "min", "max", *get_args(ChangesName)))

    def _refuse(self, name: str, value: object, of_centres: bool) -> None:
        """Raise if the option is for weights, and the estimator has counts, or centres if it is not for these."""
        if isinstance(self._state, Totals):
            raise UnsupportedError(
                lines(f"{name}={value!r}", f"the counts of {self._state.name} are always added up", "Leave it out.")
            )
        if isinstance(self._state, Centres) and of_centres:
            raise UnsupportedError(lines(f"{name}={value!r}", "centres are averaged by their counts", "Leave it out."))
