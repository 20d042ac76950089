"""Which estimators there are, and what of them travels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._errors import UnsupportedError
from .._guide import lines
from ._centres import Centres
from ._counts import Counts, Moments
from ._scalers import Extrema, Standard
from ._state import State
from ._weights import Weights

LINEAR = ("coef_", "intercept_")
LAYERS = ("coefs_", "intercepts_")
FEATURES = ("class_count_", "feature_count_")

# By the name of a class of scikit-learn that the estimator's class is or derives from:
# nothing has to be imported to look one up, and versions that lack a class do not mind.
KINDS: dict[str, tuple[Callable[[Any, tuple[str, ...]], State], tuple[str, ...]]] = {
    "SGDClassifier": (Weights, LINEAR),
    "SGDRegressor": (Weights, LINEAR),
    "SGDOneClassSVM": (Weights, ("coef_", "offset_")),
    "Perceptron": (Weights, LINEAR),
    "PassiveAggressiveClassifier": (Weights, LINEAR),
    "PassiveAggressiveRegressor": (Weights, LINEAR),
    "MLPClassifier": (Weights, LAYERS),
    "MLPRegressor": (Weights, LAYERS),
    "MultinomialNB": (Counts, FEATURES),
    "BernoulliNB": (Counts, FEATURES),
    "ComplementNB": (Counts, FEATURES),
    "CategoricalNB": (Counts, ("class_count_", "category_count_")),
    "GaussianNB": (Moments, ("class_count_", "var_")),
    "MiniBatchKMeans": (Centres, ("cluster_centers_", "_counts")),
    "StandardScaler": (Standard, ("n_samples_seen_", "mean_")),
    "MinMaxScaler": (Extrema, ("data_min_", "data_max_")),
    "MaxAbsScaler": (Extrema, ("max_abs_",)),
}
"""How the model of each travels, and the attributes that it has once it has learnt."""
OPTIMIZED = {"MLPClassifier", "MLPRegressor"}
SCALERS = {name for name, (kind, _) in KINDS.items() if kind in (Standard, Extrema)}
REFUSED = {
    "IncrementalPCA": (
        "its components have no fixed sign or order, so their mean is not a PCA",
        "Broadcast one rank's components_, or add up X.T @ X with malt.allreduce.",
    ),
    "Birch": ("it keeps a tree, not arrays", "Use MiniBatchKMeans."),
    **dict.fromkeys(("HashingVectorizer", "FeatureHasher"), ("it learns nothing: all ranks have the same", "")),
    **dict.fromkeys(
        ("OneVsRestClassifier", "MultiOutputClassifier", "MultiOutputRegressor"),
        ("it keeps estimators of its own", "Make a vector of each in estimators_, after the first partial_fit."),
    ),
    "SelectFromModel": (
        "it keeps an estimator of its own",
        "Make a vector of its estimator_, after the first partial_fit.",
    ),
}
"""Why each of these cannot be exchanged, and what to do."""
STATELESS = {"Normalizer", "Binarizer", "FunctionTransformer", "HashingVectorizer", "FeatureHasher"}
KNOWN = (*KINDS, "Pipeline")


def steps_of(pipeline: Any) -> list[Any] | None:
    """Return the steps of a pipeline that learn, in order; None of anything else than a pipeline."""
    if "Pipeline" not in _names(pipeline):
        return None
    steps = [s for _, s in pipeline.steps if s is not None and s != "passthrough"]
    learning = [s for s in steps if not {*_names(s)} & STATELESS]
    if not learning:
        raise UnsupportedError(
            lines(f"no step of the {type(pipeline).__qualname__} learns", do="Do not make a vector of it.")
        )
    for step in learning:
        if step is not steps[-1] and not {*_names(step)} & SCALERS:
            raise UnsupportedError(
                lines(
                    f"malt cannot merge what the pipeline's {type(step).__qualname__} learns on the ranks",
                    f"it can for {', '.join(sorted(SCALERS))}",
                    "Fit it once, give all ranks the same, and make the vector of pipeline[-1].",
                )
            )
    return learning


def _names(estimator: Any) -> list[str]:
    """Return the names of the classes of scikit-learn that it is of."""
    return [c.__name__ for c in type(estimator).__mro__ if c.__module__.startswith("sklearn.")]


def state_of(estimator: Any, attributes: Sequence[str] | None, optimizer: bool) -> State:
    """Return how an estimator's model travels; raise, with the reason, where it cannot."""
    name = type(estimator).__qualname__
    if inspect.isclass(estimator):
        raise TypeError(
            lines(f"{estimator.__qualname__} is a class", do=f"Pass an estimator, {estimator.__qualname__}(…).")
        )
    names = _names(estimator)
    for base in names:
        if base in REFUSED:
            raise UnsupportedError(lines(f"{name} cannot be exchanged", *REFUSED[base]))
    if not callable(getattr(estimator, "partial_fit", None)):
        raise _without_partial_fit(estimator, name)
    if optimizer and not OPTIMIZED & {*names}:
        raise ValueError(lines("optimizer=True", f"{name} has no optimizer with a state", "Leave it out."))
    if attributes is not None:
        return Weights(estimator, _checked(attributes))
    for base in names:
        if base in KINDS:
            kind, fitted = KINDS[base]
            return kind(estimator, fitted + (_moments(estimator) if optimizer else ()))
    raise UnsupportedError(
        lines(
            f"{name} is not an estimator that malt knows",
            f"it is one of {', '.join(KNOWN)}",
            'Name the arrays whose mean makes sense: attributes=["coef_", "intercept_"].',
        )
    )


def _moments(estimator: Any) -> tuple[str, ...]:
    return ("_optimizer.ms", "_optimizer.vs") if estimator.solver == "adam" else ("_optimizer.velocities",)


def _checked(attributes: Sequence[str]) -> tuple[str, ...]:
    if isinstance(attributes, str) or not attributes or not all(isinstance(a, str) for a in attributes):
        raise TypeError(lines(f"attributes={attributes!r}", 'expected a list of names, as in ["coef_", "intercept_"]'))
    return tuple(attributes)


def _without_partial_fit(estimator: Any, name: str) -> Exception:
    if not hasattr(estimator, "fit"):
        return TypeError(lines(f"{name} is not an estimator of scikit-learn", "expected an estimator with partial_fit"))
    if getattr(estimator, "solver", None) == "lbfgs" and name.startswith("MLP"):
        return UnsupportedError(
            lines(f"{name} with solver='lbfgs' has no partial_fit", do="Use solver='sgd' or 'adam'.")
        )
    return UnsupportedError(
        lines(
            f"{name} has no partial_fit",
            "it learns from all data at once: there is nothing to exchange between steps",
            f"Use one of {', '.join(KNOWN)}.",
        )
    )
