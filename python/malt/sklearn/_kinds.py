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

__all__ = ["state_of", "steps_of"]

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
SCALERS = {"StandardScaler", *EXTREMA}
REFUSED = {
    "IncrementalPCA": (
        "its components have no fixed sign or order, and span what one rank has seen: their mean is not a PCA. Reduce "
        "the data with one rank's PCA (malt.broadcast its components_), or add up X.T @ X with malt.allreduce"
    ),
    "Birch": "it keeps a tree, not arrays. Use MiniBatchKMeans",
    "HashingVectorizer": "it learns nothing, so every rank has the same one already",
    "FeatureHasher": "it learns nothing, so every rank has the same one already",
    "OneVsRestClassifier": "it keeps estimators of its own: make a vector of each, [malt.sklearn.Vector(e) for e in "
    "it.estimators_] after the first partial_fit",
    "MultiOutputClassifier": "it keeps estimators of its own: make a vector of each, [malt.sklearn.Vector(e) for e in "
    "it.estimators_] after the first partial_fit",
    "MultiOutputRegressor": "it keeps estimators of its own: make a vector of each, [malt.sklearn.Vector(e) for e in "
    "it.estimators_] after the first partial_fit",
    "SelectFromModel": "it keeps an estimator of its own: make a vector of its estimator_, after the first partial_fit",
}
STATELESS = {"Normalizer", "Binarizer", "FunctionTransformer", "HashingVectorizer", "FeatureHasher"}
KNOWN = (*WEIGHTS, *COUNTS, "GaussianNB", "MiniBatchKMeans", "StandardScaler", *EXTREMA, "Pipeline")


def steps_of(pipeline: Any) -> list[Any] | None:
    """Return the steps of a pipeline that learn, in order; None of anything else than a pipeline."""
    if "Pipeline" not in _names(pipeline):
        return None
    steps = [s for _, s in pipeline.steps if s is not None and s != "passthrough"]
    learning = [s for s in steps if not {*_names(s)} & STATELESS]
    if not learning:
        raise UnsupportedError(f"malt: no step of the {type(pipeline).__qualname__} learns: it needs no vector")
    for step in learning:
        if step is not steps[-1] and not {*_names(step)} & SCALERS:
            raise UnsupportedError(
                f"malt: the pipeline's {type(step).__qualname__} learns from the data, and malt cannot merge what the "
                f"ranks have learnt; it can for {', '.join(sorted(SCALERS))}. Fit it once, give all ranks the same "
                "one, and make the vector of the last step, malt.sklearn.Vector(pipeline[-1])"
            )
    return learning


def _names(estimator: Any) -> list[str]:
    """Return the names of the classes of scikit-learn that it is of."""
    return [c.__name__ for c in type(estimator).__mro__ if c.__module__.startswith("sklearn.")]


def state_of(estimator: Any, attributes: Sequence[str] | None, optimizer: bool) -> State:
    """Return how an estimator's model travels; raise, with the reason, where it cannot."""
    name = type(estimator).__qualname__
    if inspect.isclass(estimator):
        raise TypeError(f"malt: {estimator.__qualname__} is a class: pass an estimator, {estimator.__qualname__}(…)")
    names = _names(estimator)
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
        return TypeError(f"malt: {name} is not an estimator of scikit-learn: an estimator with partial_fit is expected")
    if getattr(estimator, "solver", None) == "lbfgs" and name.startswith("MLP"):
        return UnsupportedError(f"malt: {name} with solver='lbfgs' has no partial_fit: use solver='sgd' or 'adam'")
    return UnsupportedError(
        f"malt: {name} has no partial_fit: it learns from all data at once, so there is nothing to exchange between "
        f"its steps. malt knows {', '.join(KNOWN)}"
    )
