"""What malt.sklearn.Vector refuses, and what it says."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from estimators import case
from launching import LONG
from sklearn.cluster import Birch, MiniBatchKMeans
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import CategoricalNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import malt
import malt.sklearn


@pytest.mark.parametrize(
    ("estimator", "kind", "says"),
    [
        (SGDClassifier, TypeError, r"SGDClassifier is a class\nPass an estimator, SGDClassifier\("),
        (SGDClassifier(average=True), malt.UnsupportedError, "average=True.*keeps two models(?s:.*)Leave average out"),
        (SGDRegressor(average=10), malt.UnsupportedError, "average=10"),
        (
            IncrementalPCA(2),
            malt.UnsupportedError,
            "malt: IncrementalPCA cannot be exchanged\nits components have no fixed sign",
        ),
        (Birch(), malt.UnsupportedError, "(?s)a tree.*MiniBatchKMeans"),
        (
            make_pipeline(PCA(), SGDClassifier()),
            malt.UnsupportedError,
            r"cannot merge what the pipeline's PCA learns(?s:.*)pipeline\[-1",
        ),
        (make_pipeline(StandardScaler(), PCA()), malt.UnsupportedError, "PCA has no partial_fit"),
        (make_pipeline(Normalizer(), "passthrough"), malt.UnsupportedError, "no step of the Pipeline learns"),
        (OneVsRestClassifier(SGDClassifier()), malt.UnsupportedError, "each in estimators_"),
        (LogisticRegression(), malt.UnsupportedError, "LogisticRegression has no partial_fit\nit learns from all data"),
        (MLPClassifier(solver="lbfgs"), malt.UnsupportedError, "solver='lbfgs' has no partial_fit\nUse solver='sgd'"),
        (np.zeros(3), TypeError, "ndarray is not an estimator"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_exchanged_says_why(estimator: object, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        malt.sklearn.Vector(estimator)


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"start": "sme"}, ValueError, "Did you mean 'same'"),
        ({"fold": "meen"}, ValueError, "Did you mean 'mean'"),
        ({"sparse": "gradient"}, ValueError, "expected one of model"),
        ({"attributes": "coef_"}, TypeError, "a list of names"),
        ({"optimizer": True}, ValueError, "no optimizer with a state"),
        ({"graph": [[1], [0]]}, ValueError, "the job has 1"),
        ({"ids": [1]}, malt.UnsupportedError, r"ids= with an estimator(?s:.*)malt.Vector\(weights, ids=features\)"),
        ({"wants": [1], "name": "w"}, malt.UnsupportedError, "wants= with an estimator"),
        ({"grahp": "all"}, TypeError, r"unexpected option grahp\nDid you mean graph\?$"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_wrong_arguments(options: dict[str, object], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        malt.sklearn.Vector(SGDClassifier(), **options)


@pytest.mark.parametrize(
    "options",
    [{"graph": "haltn"}, {"graph": 7}, {"consistency": "asinc"}, {"consistency": 2}, {"name": "a b"}, {"filter": ""}],
    ids=str,
)
def test_options_are_looked_at_at_once_as_those_of_a_vector(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)) as of_array:
        malt.Vector(3, **options)
    with pytest.raises(of_array.type) as of_estimator:
        malt.sklearn.Vector(SGDClassifier(), **options)
    assert str(of_estimator.value) == str(of_array.value)


def test_nothing_learnt_yet() -> None:
    v = malt.sklearn.Vector(SGDClassifier())
    for call in (v.sync, v.allreduce, v.broadcast, v.gather, v.scatter):
        with pytest.raises(malt.StateError, match="Call partial_fit before the first exchange"):
            call()
    with pytest.raises(malt.StateError, match="first sync"):
        v.stats()
    v.close()
    with pytest.raises(malt.StateError, match="closed"):
        v.sync()


def test_errors_of_its_vector_are_about_the_programs() -> None:
    one = case("binary")
    v = malt.sklearn.Vector(one.estimator)
    one.estimator.partial_fit(one.x, one.y, classes=[0, 1])
    v.sync()
    with pytest.raises(TypeError, match=r"malt: v cannot be copied(?s:.*)make a malt\.sklearn\.Vector of it"):
        pickle.dumps(v)
    v.close()
    with pytest.raises(malt.StaleError, match="malt: v has been closed"):
        v.sync()


def test_average_that_is_set_later() -> None:
    one = case("binary")
    with malt.sklearn.Vector(one.estimator) as v:
        one.estimator.partial_fit(one.x, one.y, classes=[0, 1])
        v.sync()
        one.estimator.set_params(average=True)
        with pytest.raises(malt.UnsupportedError, match="average=True"):
            v.sync()


def test_counts_and_centres_have_folds_of_their_own() -> None:
    with pytest.raises(malt.UnsupportedError, match="are always added up"):
        malt.sklearn.Vector(MultinomialNB(), fold="mean")
    with pytest.raises(malt.UnsupportedError, match="by their counts"):
        malt.sklearn.Vector(MiniBatchKMeans(3), fold="sum")
    with pytest.raises(malt.UnsupportedError, match="by their counts"):
        malt.sklearn.Vector(MiniBatchKMeans(3), sparse="model")
    v = malt.sklearn.Vector(MultinomialNB())
    with pytest.raises(malt.UnsupportedError, match="op='max'"):
        v.allreduce("max")


@pytest.mark.parametrize("name", ["binary", "mlp-adam", "k-means"])
def test_an_estimator_fitted_anew_on_other_data(name: str) -> None:
    one = case(name)
    with malt.sklearn.Vector(one.estimator) as v:
        one.estimator.fit(one.x, one.y)
        v.sync()
        one.estimator.fit(one.x[:, :5], one.y)
        with pytest.raises(malt.StateError, match=r"(?s)now.* new malt\.sklearn\.Vector"):
            v.sync()


def test_a_pipeline_whose_steps_are_replaced() -> None:
    pipeline = make_pipeline(StandardScaler(), SGDClassifier())
    with malt.sklearn.Vector(pipeline) as v:
        pipeline[0].partial_fit(np.eye(3))
        v.sync()
        pipeline.set_params(standardscaler=StandardScaler().fit(np.eye(3)))
        with pytest.raises(malt.StateError, match="the steps of the pipeline have changed"):
            v.sync()


def test_a_new_category() -> None:
    one = CategoricalNB()
    with malt.sklearn.Vector(one) as v:
        one.partial_fit([[0], [1]], [0, 1], classes=[0, 1])
        v.sync()
        one.partial_fit([[2]], [0])
        with pytest.raises(malt.StateError, match="for categories: min_categories="):
            v.sync()


def test_weights_that_are_sparse() -> None:
    one = case("binary")
    with malt.sklearn.Vector(one.estimator) as v:
        one.estimator.partial_fit(one.x, one.y, classes=[0, 1])
        one.estimator.sparsify()
        with pytest.raises(malt.StateError, match=r"coef_ of the SGDClassifier is a .*(?s:.*)Call densify\(\)"):
            v.sync()
        one.estimator.densify()
        v.sync()


def test_arguments_are_looked_at_in_every_call() -> None:
    one = case("binary")
    one.estimator.partial_fit(one.x, one.y, classes=[0, 1])
    with malt.sklearn.Vector(one.estimator) as v:
        with pytest.raises(ValueError, match="every=0"):
            v.sync(every=0)
        with pytest.raises(TypeError, match="weight='x'"):
            v.sync(weight="x")
        with pytest.raises(ValueError, match="fold='meen'"):
            v.sync("meen")
        assert v.sync("sum") == 0


def test_without_scikit_learn() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import malt\n"
        "try: malt.sklearn.Vector(1)\n"
        "except malt.PackageError as e: print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG, check=True).stdout
    assert "malt.sklearn needs scikit-learn" in said
    assert said.endswith("pip install scikit-learn.\n")


def test_importing_malt_loads_no_scikit_learn() -> None:
    code = "import sys, malt; print(malt.sklearn.__name__, 'sklearn' in sys.modules, 'scipy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG, check=True).stdout
    assert said.split() == ["malt.sklearn", "False", "False"]


def test_changes_of_a_network_that_has_learnt_nothing_are_refused() -> None:
    with pytest.raises(malt.StateError, match="Call partial_fit on the same rows on all ranks first"):
        malt.sklearn.Vector(MLPClassifier(random_state=0), fold="mean-changes")
