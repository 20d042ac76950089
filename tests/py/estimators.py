"""Estimators of scikit-learn with data for each, for tests."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import Perceptron, SGDClassifier, SGDOneClassSVM, SGDRegressor
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier, MLPRegressor

FEATURES = 12


class Case(NamedTuple):
    """An estimator, and what its ``partial_fit`` gets."""

    estimator: Any
    x: np.ndarray
    y: np.ndarray | None
    classes: list[Any] | None

    def batches(self, size: int, part: slice = slice(None), passes: int = 1) -> Any:
        """Yield the arguments of one call after the other."""
        x, y = self.x[part], None if self.y is None else self.y[part]
        for _ in range(passes):
            for i in range(0, len(x), size):
                more = {} if self.classes is None else {"classes": self.classes}
                yield (x[i : i + size], None if y is None else y[i : i + size]), more


def case(name: str, dtype: type = np.float64, seed: int = 0, rows: int = 600) -> Case:
    """Make a case: of one of the names in CASES."""
    random = np.random.RandomState(seed)
    x = random.poisson(1.0, (rows, FEATURES)).clip(0, 9).astype(dtype)
    value = x @ random.standard_normal(FEATURES).astype(dtype)
    two = (value > 0).astype(int)
    three = np.array(["low", "mid", "high"])[np.digitize(value, [-1, 1])]
    labels = ["high", "low", "mid"]
    made: dict[str, tuple[Any, Any, Any]] = {
        "binary": (SGDClassifier(random_state=1), two, [0, 1]),
        "multiclass": (SGDClassifier(loss="log_loss", random_state=1), three, labels),
        "no-intercept": (SGDClassifier(fit_intercept=False, random_state=1), two, [0, 1]),
        "regression": (SGDRegressor(eta0=1e-3, random_state=1), value, None),
        "one-class": (SGDOneClassSVM(random_state=1), None, None),
        "perceptron": (Perceptron(random_state=1), two, [0, 1]),
        "mlp-adam": (MLPClassifier(hidden_layer_sizes=(8, 5), random_state=1), three, labels),
        "mlp-sgd": (MLPClassifier(hidden_layer_sizes=(8,), solver="sgd", random_state=1), two, [0, 1]),
        "mlp-labels": (MLPClassifier(hidden_layer_sizes=(8,), random_state=1), np.stack([two, 1 - two], 1), [0, 1]),
        "mlp-regression": (MLPRegressor(hidden_layer_sizes=(8,), random_state=1), value, None),
        "mlp-outputs": (MLPRegressor(hidden_layer_sizes=(8,), random_state=1), np.stack([value, -value], 1), None),
        "k-means": (MiniBatchKMeans(4, n_init=1, random_state=1), None, None),
        "multinomial": (MultinomialNB(), three, labels),
        "bernoulli": (BernoulliNB(binarize=1.0), two, [0, 1]),
        "complement": (ComplementNB(), three, labels),
        "categorical": (CategoricalNB(min_categories=10), three, labels),
        "gaussian": (GaussianNB(), three, labels),
    }
    return Case(made[name][0], x, *made[name][1:])


WEIGHTS = ["binary", "multiclass", "no-intercept", "regression", "one-class", "perceptron", "mlp-adam", "mlp-sgd"]
WEIGHTS += ["mlp-labels", "mlp-regression", "mlp-outputs"]
COUNTED = ["multinomial", "bernoulli", "complement", "categorical", "gaussian"]
CASES = [*WEIGHTS, "k-means", *COUNTED]


def learnt(estimator: Any) -> dict[str, Any]:
    """Return copies of everything fitted that is an array, a list of arrays or a number."""
    found = {}
    for name, value in vars(estimator).items():
        if name.endswith("_") or name == "_counts":
            values = value if isinstance(value, list) else [value]
            for i, item in enumerate(values):
                if isinstance(item, np.ndarray | float | int | np.generic):
                    found[f"{name}[{i}]"] = np.array(item)
    return found


def passive_aggressive(kind: str) -> Any:
    """Make one, where this scikit-learn has it still."""
    import sklearn.linear_model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return getattr(sklearn.linear_model, f"PassiveAggressive{kind}")(random_state=1)
