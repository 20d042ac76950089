"""The first exchange: ranks compare their estimators, and a rank without data gets the model of another."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import MismatchError, StateError
from .._guide import lines
from .._job import world
from .._need import need
from .._vectors.arrays import Array
from ._counts import Totals
from ._state import State, digest, has

LABELS = (str, int, float)


class Agreement:
    """The result of a comparison; every rank comes to the same one.

    Attributes
    ----------
    root : int
        The first rank whose estimator has learnt something.
    same : bool
        Whether all start with root's values; otherwise each with its own.
    common : bool
        Whether all had the same values when their vectors were made.
    spare : bool
        Whether this rank's estimator had not learnt anything.
    """

    def __init__(self, root: int, same: bool, common: bool, spare: bool) -> None:
        self.root, self.same, self.common, self.spare = root, same, common, spare


def agree(states: Sequence[State], start: str | None, timeout: float | None) -> list[Agreement | None]:
    """Compare what the ranks have; give an estimator without data the model of another rank. Collective.

    The states are those of a pipeline's steps, in order, or of one estimator. The result has
    None for a state of which no rank has learnt anything yet.
    """
    given = ", ".join([s.name for s in states] + ([] if start is None else [f'start="{start}"']))
    said = world.allgather_in("malt.sklearn.Vector", [_described(s) for s in states], timeout, given)
    steps = [dict(zip(world.alive(), ranks, strict=True)) for ranks in zip(*said, strict=True)]
    if not any(one["arrays"] for ranks in steps for one in ranks.values()):
        names = " or ".join(s.name for s in states)
        raise StateError(
            lines(f"no rank's {names} has learnt anything yet", do="Call partial_fit before the first exchange.")
        )
    for i, (state, ranks) in enumerate(zip(states, steps, strict=True)):
        for later, learnt in zip(states[i + 1 :], steps[i + 1 :], strict=True):
            _same_before(state, ranks, later, [r for r, one in learnt.items() if one["arrays"]])
    return [_agree(state, ranks, start, timeout) for state, ranks in zip(states, steps, strict=True)]


def _agree(
    state: State, ranks: dict[int, dict[str, Any]], start: str | None, timeout: float | None
) -> Agreement | None:
    fitted = [r for r, one in ranks.items() if one["arrays"]]
    if not fitted:
        return None
    mine, root = ranks[world.rank()], fitted[0]
    for r in fitted[1:]:
        _compare(state, root, ranks[root], r, ranks[r])
    alike = {ranks[r]["alike"] for r in fitted}
    same = start == "same" or (start is None and (len(alike) > 1 or alike == {""}))
    firsts = {one["first"] for one in ranks.values()}
    if len(fitted) < len(ranks):  # those without data need the values of one that has some
        values = [value for _, value in state.values()] if world.rank() == root else None
        first = world.broadcast(values, root, timeout=timeout)
        if not mine["arrays"]:
            _make_ready(state, ranks[root], first)
    return Agreement(root, same, len(firsts) == 1 and firsts != {""}, not mine["arrays"])


def _same_before(state: State, ranks: dict[int, dict[str, Any]], later: State, learnt: Sequence[int]) -> None:
    """Raise if a later step of a pipeline has learnt, on these ranks, from what a step made differently on each."""
    for r in learnt[1:]:
        a, b = ranks[learnt[0]]["now"], ranks[r]["now"]
        if a != b:
            names = ", ".join(name for name in {**a, **b} if a.get(name) != b.get(name))
            raise MismatchError(
                lines(
                    f"each rank has fitted its own {state.name}, whose output the {later.name} has learnt",
                    f"rank {learnt[0]} and rank {r} differ in {names} of the {state.name}",
                    "Call allreduce() of the vector between their partial_fit.",
                    topic="scalers",
                )
            )


def _described(state: State) -> dict[str, Any]:
    e = state.estimator
    ready = state.fitted()
    return {
        "arrays": [[label, list(a.shape), str(a.dtype)] for label, a in state.values()] if ready else [],
        "classes": _classes(e) if ready else [],
        "features": int(getattr(e, "n_features_in_", 0)) if ready else 0,
        "dtype": str(_dtype(state)) if ready else "",
        "outputs": int(getattr(e, "n_outputs_", 1)) if ready else 1,
        "several": "multilabel" in str(getattr(getattr(e, "_label_binarizer", None), "y_type_", "")),
        "counters": state.counted() if ready else {},
        "alike": state.alike() if ready else "",
        "first": state.first(),
        "now": {label: digest([a]) for label, a in state.values()} if ready and isinstance(state, Totals) else {},
    }


def _classes(estimator: Any) -> list[Any]:
    classes = getattr(estimator, "classes_", None)
    if not isinstance(classes, np.ndarray):
        return []
    labels: list[Any] = classes.tolist()
    if not all(isinstance(label, LABELS) for label in labels):
        raise TypeError(lines(f"classes {_briefly(labels)}", "expected numbers or strings as labels"))
    return labels


def _dtype(state: State) -> np.dtype[Any]:
    """Return the dtype of the data that the estimator has learnt from."""
    for name in ("cluster_centers_", "theta_", "data_min_", "max_abs_"):
        if has(state.estimator, name):
            found: np.dtype[Any] = getattr(state.estimator, name).dtype
            return found
    first: np.dtype[Any] = state.values()[0][1].dtype
    return first


# ------------------------------------------------------------- disagreements


def _compare(state: State, a: int, one: dict[str, Any], b: int, other: dict[str, Any]) -> None:
    """Raise if two ranks cannot exchange, with both values and what to do."""

    def differ(what: str, x: object, y: object, todo: str) -> None:
        if x != y:
            raise MismatchError(
                lines(
                    f"the ranks' estimators differ in {what}",
                    f"rank {a} has {_briefly(x)}, rank {b} has {_briefly(y)}",
                    todo,
                )
            )

    differ(
        "their classes",
        one["classes"],
        other["classes"],
        "Pass the classes of all data to the first partial_fit on every rank: classes=[0, 1, 2].",
    )
    differ(
        "the number of features",
        one["features"],
        other["features"],
        "Pass n_features= where SVMlight files are loaded; for text use HashingVectorizer or one vocabulary.",
    )
    differ("the dtype of the data", one["dtype"], other["dtype"], "Convert with X.astype(np.float32) on every rank.")
    differ(
        "the shapes of what they have learnt",
        {label: tuple(shape) for label, shape, _ in one["arrays"]},
        {label: tuple(shape) for label, shape, _ in other["arrays"]},
        "Make them with the same parameters on every rank"
        + (", and min_categories=." if state.name == "CategoricalNB" else "."),
    )


def _briefly(value: object) -> str:
    if isinstance(value, list) and len(value) > 12:
        return f"[{', '.join(map(repr, value[:10]))}, … {value[-1]!r}] ({len(value)})"
    return repr(value)


# -------------------------------------------------------- ranks without data


def _make_ready(state: State, like: dict[str, Any], values: list[Array]) -> None:
    """Make an estimator that has seen no data one like root's, with root's values.

    Its class makes what belongs to a fitted one, from some rows of zeros; then
    all that these have left in arrays and counters is replaced.
    """
    e = state.estimator
    copy = need("sklearn.base", "malt.sklearn", package="scikit-learn").clone(e)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        copy.partial_fit(**_rows(copy, like))
    for name, value in vars(copy).items():
        if name.endswith("_") or getattr(e, name, None) is None:
            setattr(e, name, value)
    for name in ("labels_", "inertia_"):  # of the rows of zeros
        vars(e).pop(name, None)
    if hasattr(e, "loss_curve_"):
        e.loss_curve_ = []
    state.count_on(like["counters"])
    state.replace(values)


def _rows(estimator: Any, like: dict[str, Any]) -> dict[str, Any]:
    n = getattr(estimator, "n_clusters", 1)
    rows: dict[str, Any] = {"X": np.zeros((n, like["features"]), like["dtype"])}
    if like["classes"]:
        labels = np.asarray(like["classes"])
        rows["classes"] = labels
        rows["y"] = np.zeros((1, like["outputs"]), int) if like["several"] else labels[:1]
    elif not hasattr(estimator, "n_clusters"):  # ignored by those that learn without labels
        rows["y"] = np.zeros((1, like["outputs"]) if like["outputs"] > 1 else 1)
    return rows
