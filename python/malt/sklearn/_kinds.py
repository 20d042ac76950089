"""Which estimators there are, and what of them travels."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from .._errors import UnsupportedError
from ._centres import Centres
from ._counts import Counts, Moments
from ._scalers import Extrema, Standard
from ._state import State
from ._weights import Weights

__all__ = ["state_of"]

LINEAR = ("coef_", "intercept_")
LAYERS = ("coefs_", "intercepts_")

# By the name of a class of scikit-learn that the estimator's class is or derives from:
# nothing has to be imported to look one up, and versions that lack a class do not mind.
WEIGHTS = {
    "SGDClassifier": LINEAR,
    "SGDRegressor": LINEAR,
    "SGDOneClassSVM": ("coef_", "offset_"),
    "Perceptron": LINEAR,
    "PassiveAggressiveClassifier": LINEAR,
    "PassiveAggressiveRegressor": LINEAR,
    "MLPClassifier": LAYERS,
    "MLPRegressor": LAYERS,
}
OPTIMIZED = {"MLPClassifier", "MLPRegressor"}
COUNTS = {
    "MultinomialNB": ("class_count_", "feature_count_"),
    "BernoulliNB": ("class_count_", "feature_count_"),
    "ComplementNB": ("class_count_", "feature_count_"),
    "CategoricalNB": ("class_count_", "category_count_"),
}
EXTREMA = {"MinMaxScaler": ("data_min_", "data_max_"), "MaxAbsScaler": ("max_abs_",)}
REFUSED = {
    "IncrementalPCA": (
        "its components have no fixed sign or order, and span what one rank has seen: their mean is no PCA. Reduce the "
        "data with one rank's PCA (malt.broadcast its components_), or add up X.T @ X over ranks with malt.allreduce"
    ),
    "Birch": "it keeps a tree, not arrays. Use MiniBatchKMeans",
    "HashingVectorizer": "it learns nothing, so every rank has the same one already",
    "FeatureHasher": "it learns nothing, so every rank has the same one already",
    "Pipeline": (
        "it has no partial_fit: make a vector of each step that learns, [malt.sklearn.Vector(s) for s in pipeline]. A "
        "scaler that each rank fits by itself differs between the ranks"
    ),
    "OneVsRestClassifier": "it keeps estimators of its own: make a vector of each, [malt.sklearn.Vector(e) for e in "
    "it.estimators_] after the first partial_fit",
    "MultiOutputClassifier": "it keeps estimators of its own: make a vector of each, [malt.sklearn.Vector(e) for e in "
    "it.estimators_] after the first partial_fit",
    "MultiOutputRegressor": "it keeps estimators of its own: make a vector of each, [malt.sklearn.Vector(e) for e in "
    "it.estimators_] after the first partial_fit",
    "SelectFromModel": "it keeps an estimator of its own: make a vector of its estimator_, after the first partial_fit",
}
KNOWN = (*WEIGHTS, *COUNTS, "GaussianNB", "MiniBatchKMeans", "StandardScaler", *EXTREMA)


def state_of(estimator: Any, attributes: Sequence[str] | None, optimizer: bool) -> State:
    """Return how an estimator's model travels; raise, with the reason, where it cannot."""
    name = type(estimator).__qualname__
    if inspect.isclass(estimator):
        raise TypeError(f"malt: {estimator.__qualname__} is a class: pass an estimator, {estimator.__qualname__}(…)")
    names = [c.__name__ for c in type(estimator).__mro__ if c.__module__.startswith("sklearn.")]
    for base in names:
        if base in REFUSED:
            raise UnsupportedError(f"malt: {name} cannot be exchanged: {REFUSED[base]}")
    if not callable(getattr(estimator, "partial_fit", None)):
        raise _without_partial_fit(estimator, name)
    if optimizer and not OPTIMIZED & {*names}:
        raise ValueError(f"malt: optimizer=True: {name} has no optimizer with a state: leave it out")
    if attributes is not None:
        return Weights(estimator, _checked(attributes))
    for base in names:
        if base in WEIGHTS:
            return Weights(estimator, WEIGHTS[base] + (_moments(estimator) if optimizer else ()))
        if base in COUNTS:
            return Counts(estimator, COUNTS[base])
        if base == "GaussianNB":
            return Moments(estimator)
        if base == "StandardScaler":
            return Standard(estimator)
        if base in EXTREMA:
            return Extrema(estimator, EXTREMA[base])
        if base == "MiniBatchKMeans":
            return Centres(estimator)
    raise UnsupportedError(
        f"malt: {name} is none of the estimators that malt knows ({', '.join(KNOWN)}): if a mean of its fitted arrays "
        'makes sense, say which they are: malt.sklearn.Vector(estimator, attributes=["coef_", "intercept_"])'
    )


def _moments(estimator: Any) -> tuple[str, ...]:
    return ("_optimizer.ms", "_optimizer.vs") if estimator.solver == "adam" else ("_optimizer.velocities",)


def _checked(attributes: Sequence[str]) -> tuple[str, ...]:
    if isinstance(attributes, str) or not attributes or not all(isinstance(a, str) for a in attributes):
        raise TypeError(f'malt: attributes={attributes!r}: a list of names is expected, as in ["coef_", "intercept_"]')
    return tuple(attributes)


def _without_partial_fit(estimator: Any, name: str) -> Exception:
    if not hasattr(estimator, "fit"):
        return TypeError(f"malt: {name} is no estimator of scikit-learn: an estimator with partial_fit is expected")
    if getattr(estimator, "solver", None) == "lbfgs" and name.startswith("MLP"):
        return UnsupportedError(f"malt: {name} with solver='lbfgs' has no partial_fit: use solver='sgd' or 'adam'")
    return UnsupportedError(
        f"malt: {name} has no partial_fit: it learns from all data at once, so there is nothing to exchange between "
        f"its steps. malt knows {', '.join(KNOWN)}"
    )
