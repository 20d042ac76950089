"""malt.sklearn.Vector alone: world size 1, and what it does to an estimator."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from estimators import CASES, case, learnt, passive_aggressive
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import malt
import malt.sklearn


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_g1_one_rank_learns_the_bits_of_the_serial_loop(name: str, dtype: type) -> None:
    one = case(name, dtype)
    serial = clone(one.estimator)
    for args, more in one.batches(50, passes=2):
        serial.partial_fit(*args, **more)
    with malt.sklearn.Vector(one.estimator, consistency="ssp:1") as v:
        for args, more in one.batches(50, passes=2):
            one.estimator.partial_fit(*args, **more)
            v.sync(every=3, weight=50)
        v.allreduce()
        v.broadcast()
    got, expected = learnt(one.estimator), learnt(serial)
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        assert got[key].dtype == value.dtype, key
        assert got[key].tobytes() == value.tobytes(), key


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_g1_passive_aggressive_where_there_is_one(kind: str) -> None:
    try:
        mine, serial = passive_aggressive(kind), passive_aggressive(kind)
    except AttributeError:
        pytest.skip("this scikit-learn has no PassiveAggressive any more")
    one = case("binary" if kind == "Classifier" else "regression")
    with warnings.catch_warnings(), malt.sklearn.Vector(mine) as v:
        warnings.simplefilter("ignore", FutureWarning)
        for args, more in one.batches(50):
            mine.partial_fit(*args, **more)
            serial.partial_fit(*args, **more)
            v.sync()
    assert mine.coef_.tobytes() == serial.coef_.tobytes()
    assert mine.coef_.base is not None


def test_the_weights_are_views_again_after_each_exchange() -> None:
    one = case("binary")
    v = malt.sklearn.Vector(one.estimator)
    assert v.clock == 0
    for args, more in one.batches(100):
        one.estimator.partial_fit(*args, **more)
        v.sync()
        assert one.estimator.coef_ is v.arrays[0]
        assert one.estimator.intercept_ is v.arrays[1]
    assert v.clock == 6
    assert (v.consistency, v.graph, v.senders, v.receivers) == ("bsp", malt.Graph("all"), [], [])
    assert v.stats().sent_bytes == 0
    v.close()


def test_weights_that_were_replaced_are_found() -> None:
    one = case("multiclass")
    clf = one.estimator
    with malt.sklearn.Vector(clf) as v:
        (args, more), *_ = one.batches(100)
        clf.partial_fit(*args, **more)
        v.sync()
        clf.coef_ = clf.coef_ * 2
        clf.intercept_[1] = 7
        expected = clf.coef_.copy()
        v.sync()
        np.testing.assert_array_equal(v.arrays[0], expected)
        assert v.arrays[1][1] == 7
        assert clf.coef_ is v.arrays[0]


def test_a_list_of_layers_that_was_replaced_is_found() -> None:
    one = case("mlp-adam")
    with malt.sklearn.Vector(one.estimator) as v:
        for args, more in one.batches(100):
            one.estimator.partial_fit(*args, **more)
            one.estimator.coefs_ = [c.copy() for c in one.estimator.coefs_]
            v.sync()
            assert all(a is b for a, b in zip(one.estimator.coefs_, v.arrays[:3], strict=True))
        assert len(v.arrays) == 6


@pytest.mark.parametrize(("name", "extra"), [("mlp-adam", 12), ("mlp-sgd", 4)])
def test_the_state_of_the_optimizer_travels_when_asked(name: str, extra: int) -> None:
    one, serial = case(name), case(name).estimator
    with malt.sklearn.Vector(one.estimator, optimizer=True) as v:
        for args, more in one.batches(100):
            serial.partial_fit(*args, **more)
            one.estimator.partial_fit(*args, **more)
            v.sync()
            optimizer = one.estimator._optimizer
            state = optimizer.ms + optimizer.vs if name == "mlp-adam" else optimizer.velocities
            assert all(a is b for a, b in zip(state, v.arrays[-extra:], strict=True))
    assert [c.tobytes() for c in serial.coefs_] == [c.tobytes() for c in one.estimator.coefs_]


def test_fit_again_and_again_with_warm_start_and_early_stopping() -> None:
    one = case("multiclass")
    settings = {
        "hidden_layer_sizes": (6,),
        "early_stopping": True,
        "max_iter": 2,
        "warm_start": True,
        "random_state": 3,
    }
    mine, serial = MLPClassifier(**settings), MLPClassifier(**settings)
    with warnings.catch_warnings(), malt.sklearn.Vector(mine) as v:
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(3):
            mine.fit(one.x, one.y)
            serial.fit(one.x, one.y)
            v.sync()
            assert mine.coefs_[0] is v.arrays[0]
    assert [c.tobytes() for c in mine.coefs_] == [c.tobytes() for c in serial.coefs_]


def test_pickles_copies_and_clones_have_arrays_of_their_own() -> None:
    one = case("binary")
    clf = one.estimator
    with malt.sklearn.Vector(clf) as v:
        clf.partial_fit(one.x, one.y, classes=[0, 1])
        v.sync()
        for twin in (pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)):
            np.testing.assert_array_equal(twin.coef_, clf.coef_)
            twin.coef_ += 1
            assert not np.array_equal(twin.coef_, clf.coef_)
            twin.partial_fit(one.x, one.y)
        assert not hasattr(clone(clf), "coef_")
    before = clf.coef_.copy()
    clf.partial_fit(one.x, one.y)  # after the end as before
    assert not np.array_equal(before, clf.coef_)
    assert (clf.predict(one.x) == one.y).mean() > 0.8


def test_the_last_step_of_a_pipeline() -> None:
    one = case("binary")
    pipeline = make_pipeline(StandardScaler().fit(one.x), SGDClassifier(random_state=0))
    with malt.sklearn.Vector(pipeline[-1]) as v:
        for args, more in one.batches(50, passes=3):
            pipeline[-1].partial_fit(pipeline[:-1].transform(args[0]), args[1], **more)
            v.sync()
    assert pipeline.score(one.x, one.y) > 0.8


def test_fitted_arrays_of_any_estimator_by_name() -> None:
    class Mean:
        """The mean of what it has seen, with a rate."""

        def partial_fit(self, x: np.ndarray) -> Mean:
            self.middle_ = 0.9 * getattr(self, "middle_", np.zeros(x.shape[1])) + 0.1 * x.mean(0)
            return self

    one = Mean()
    with pytest.raises(malt.UnsupportedError, match="attributes="):
        malt.sklearn.Vector(one)
    with malt.sklearn.Vector(one, attributes=["middle_"]) as v:
        for x in np.ones((3, 4, 5)):
            one.partial_fit(x)
            v.sync()
            assert one.middle_ is v.arrays[0]
    np.testing.assert_allclose(one.middle_, 0.271)


def test_a_column_of_names_is_learnt_without_a_warning() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    one = case("multinomial")
    frame = pandas.DataFrame(one.x, columns=[f"f{i}" for i in range(one.x.shape[1])])
    with malt.sklearn.Vector(one.estimator) as v, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        one.estimator.partial_fit(frame, one.y, classes=one.classes)
        v.sync()
        v.broadcast()
    assert list(one.estimator.feature_names_in_) == list(frame.columns)


def test_repr() -> None:
    one = case("categorical")
    v = malt.sklearn.Vector(one.estimator, name="counts", graph="ring")
    assert repr(v) == "Vector(CategoricalNB, nothing exchanged yet)"
    one.estimator.partial_fit(one.x, one.y, classes=one.classes)
    v.sync()
    shown = "Vector('counts', CategoricalNB: 3 + 3x10 + … + 3x10 (13 arrays), graph='ring', consistency='bsp', "
    assert repr(v) == shown + "fold='sum of counts', clock=1)"
    v.close()
    assert repr(v).endswith("closed)")
