"""malt.sklearn.Vector in jobs of several ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import jobs
from estimators import COUNTED, WEIGHTS
from test_guide import program

HERE = str(Path(__file__).parent)
PREPARED = f"""
import sys; sys.path.insert(0, {HERE!r})
from estimators import case, learnt
mine = slice(r, None, n)
"""


kept: dict[int, jobs.Kept] = {}
"""By how many they are: it takes seconds to import scikit-learn."""


@pytest.fixture(scope="module", autouse=True)
def _ends() -> Iterator[None]:
    yield
    while kept:
        kept.popitem()[1].close()


def run(n: int, script: str) -> list[str]:
    ranks = kept.pop(n, None) or jobs.Kept(n, PREPARED)
    try:
        said = ranks.run(script)
    except BaseException:
        with contextlib.suppress(AssertionError):
            ranks.close()
        raise
    kept[n] = ranks
    return said


def test_weights_are_the_mean_of_the_ranks() -> None:
    """The twin trains what each rank trains, one after the other, and averages with numpy."""
    run(
        4,
        f"""
        from sklearn.base import clone
        for name in {WEIGHTS}:
            one = case(name)
            twins = [clone(one.estimator) for _ in range(n)]
            parts = [list(one.batches(40, slice(k, None, n), passes=2)) for k in range(n)]
            names = [k for k in ("coef_", "intercept_", "offset_", "coefs_", "intercepts_")]
            with malt.sklearn.Vector(one.estimator) as v:
                for step in range(len(parts[0])):
                    for k, twin in enumerate(twins):
                        args, more = parts[k][step]
                        twin.partial_fit(*args, **more)
                    args, more = parts[r][step]
                    one.estimator.partial_fit(*args, **more)
                    if step % 2:
                        v.sync()
                        for attribute in names:
                            values = [getattr(t, attribute, None) for t in twins]
                            if values[0] is None: continue
                            if isinstance(values[0], list):
                                mean = [np.mean(layer, 0) for layer in zip(*values)]
                                for t in twins: setattr(t, attribute, [m.copy() for m in mean])
                            else:
                                mean = np.mean(values, 0)
                                for t in twins: setattr(t, attribute, mean.copy())
                v.allreduce()
                for attribute in names:
                    values = [getattr(t, attribute, None) for t in twins]
                    if values[0] is None: continue
                    got = getattr(one.estimator, attribute)
                    if isinstance(got, list):
                        for i, g in enumerate(got):
                            np.testing.assert_allclose(g, np.mean([x[i] for x in values], 0), rtol=1e-9, atol=1e-12)
                    else:
                        np.testing.assert_allclose(got, np.mean(values, 0), rtol=1e-9, atol=1e-12, err_msg=name)
                bits = b"".join(a.tobytes() for a in v.arrays)
                assert set(malt.allgather(bits)) == {{bits}}, name
        """,
    )


MODES = [("async", "all"), ("bsp", "all"), ("ssp:2", "halton"), ("notify-ack:2", "ring")]


def test_distance_is_that_of_the_models() -> None:
    run(
        3,
        """
        one = case("binary")
        with malt.sklearn.Vector(one.estimator) as v:
            for args, more in one.batches(40, mine, passes=1):
                one.estimator.partial_fit(*args, **more)
            got = v.distance()
            models = malt.allgather(np.append(one.estimator.coef_, one.estimator.intercept_))
            mean = np.mean(models, 0)
            expected = np.sqrt(np.mean([np.sum((m - mean) ** 2) for m in models])) / np.linalg.norm(mean)
            np.testing.assert_allclose(got, expected, rtol=1e-6)
            assert got > .01
            v.allreduce()
            assert v.distance() == 0
        with malt.sklearn.Vector(case("gaussian").estimator) as v:
            try: v.distance()
            except malt.UnsupportedError as e: assert "GaussianNB" in str(e)
            else: raise AssertionError("counts have a distance")
        """,
    )


def test_counts_are_those_of_one_process() -> None:
    """To the bit, although updates overwrite each other, parts are uneven, and one rank has none."""
    run(
        4,
        f"""
        import itertools
        from sklearn.base import clone
        for name, (consistency, graph) in itertools.product({COUNTED}, {MODES}):
            one = case(name)
            serial = clone(one.estimator)
            for args, more in one.batches(40, passes=2):
                serial.partial_fit(*args, **more)
            cut = [0, 0, 123, 400, 600]                 # rank 0 has nothing
            part = slice(cut[r], cut[r + 1])
            v = malt.sklearn.Vector(one.estimator, consistency=consistency, graph=graph)
            for args, more in one.batches(40, part):
                one.estimator.partial_fit(*args, **more)
                v.sync()
            v.allreduce()
            v.allreduce()                               # a second one adds nothing
            for args, more in one.batches(40, part):
                one.estimator.partial_fit(*args, **more)
                v.sync(every=2)
            v.allreduce()
            got, expected = learnt(one.estimator), learnt(serial)
            for key, value in expected.items():
                if key.startswith(("epsilon_", "n_categories_", "classes_")): continue
                if name == "gaussian" and "count" not in key:
                    np.testing.assert_allclose(got[key], value, rtol=1e-6, atol=1e-12, err_msg=key)
                else:
                    np.testing.assert_array_equal(got[key], value, err_msg=name + key)
            assert np.array_equal(one.estimator.predict(one.x), serial.predict(one.x))
            bits = b"".join(got[key].tobytes() for key in sorted(expected) if not key.startswith("n_categ"))
            assert set(malt.allgather(bits)) == {{bits}}, name
            v.close()
        """,
    )


def test_counts_between_two_collective_calls_are_never_doubled() -> None:
    """Whatever a rank has heard of, its counts are at most those of all, and at least its own."""
    run(
        3,
        """
        from sklearn.naive_bayes import MultinomialNB
        nb, own = MultinomialNB(), np.zeros(2)
        v = malt.sklearn.Vector(nb, consistency="async")
        for step in range(50):
            y = np.array([step % 2, 1, r % 2])
            nb.partial_fit(np.eye(3), y, classes=[0, 1])
            own += np.bincount(y, minlength=2)
            v.sync()
            assert (nb.class_count_ >= own).all() and nb.class_count_.sum() <= n * 3 * 50
            np.testing.assert_array_equal(v.arrays[0], own)
        malt.barrier()
        v.gather()
        v.broadcast(2)                                  # from here on, rank 2's model and nothing else
        assert len({tuple(c) for c in malt.allgather(nb.class_count_.tolist())}) == 1
        assert nb.class_count_.sum() == n * 3 * 50
        v.allreduce()
        assert nb.class_count_.sum() == n * 3 * 50
        if r == 0:
            nb.partial_fit(np.eye(3), [0, 1, 1])
            v.scatter()
        malt.barrier()
        assert v.gather() == (r > 0)                    # what others were heard of before does not come back
        assert nb.class_count_.sum() == n * 3 * 50 + 3
        """,
    )


def test_a_model_that_all_ranks_have_loaded_counts_once() -> None:
    run(
        2,
        """
        for name in ("multinomial", "gaussian"):
            one, serial = case(name), case(name).estimator
            for e in (one.estimator, serial):
                e.partial_fit(one.x[:100], one.y[:100], classes=one.classes)
            v = malt.sklearn.Vector(one.estimator)
            serial.partial_fit(one.x[100:], one.y[100:])
            one.estimator.partial_fit(one.x[100:][mine], one.y[100:][mine])
            v.sync()
            np.testing.assert_array_equal(one.estimator.class_count_, serial.class_count_)
            v.allreduce()
            np.testing.assert_array_equal(one.estimator.class_count_, serial.class_count_)
            if name == "gaussian":
                np.testing.assert_allclose(one.estimator.var_, serial.var_, rtol=1e-6)

            part = case(name)                           # but fitted on its own part counts once for each
            part.estimator.fit(part.x[mine], part.y[mine])
            whole = case(name).estimator.fit(part.x, part.y)
            v = malt.sklearn.Vector(part.estimator)
            v.allreduce()
            np.testing.assert_array_equal(part.estimator.class_count_, whole.class_count_)
            assert (part.estimator.predict(part.x) == whole.predict(part.x)).all()
        """,
    )


def test_centres_are_averaged_by_their_counts() -> None:
    run(
        2,
        """
        from sklearn.cluster import MiniBatchKMeans
        x = np.random.default_rng(0).standard_normal((400, 3)).astype(np.float32)
        start = x[:5].copy()
        def fresh(): return MiniBatchKMeans(5, init=start, n_init=1, reassignment_ratio=0)
        km, twins = fresh(), [fresh() for _ in range(n)]
        v = malt.sklearn.Vector(km)
        for step in range(6):
            rows = [x[k::n][step * 10:][:10] for k in range(n)]
            for twin, part in zip(twins, rows): twin.partial_fit(part)
            km.partial_fit(rows[r])
            v.sync()
            counts = np.array([t._counts for t in twins])
            total = counts.sum(0)
            sums = np.sum([t.cluster_centers_ * t._counts[:, None] for t in twins], 0)
            centre = np.where(total[:, None] > 0, sums / np.maximum(total, 1)[:, None], twins[0].cluster_centers_)
            for t in twins:
                t.cluster_centers_[:] = centre
                t._counts[:] = total / n
            np.testing.assert_allclose(km.cluster_centers_, centre, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(km._counts, total / n, rtol=1e-5)
        assert km.cluster_centers_.dtype == np.float32
        v.allreduce()
        assert (km.predict(x) == malt.broadcast(km.predict(x))).all()
        """,
    )


def test_start_is_rank_0s_where_the_first_values_differ() -> None:
    run(
        2,
        """
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.neural_network import MLPClassifier
        from sklearn.linear_model import SGDClassifier
        x, y = np.random.default_rng(r).standard_normal((60, 4)), np.arange(60) % 2
        def trained(estimator, **more):
            v = malt.sklearn.Vector(estimator, **more)
            estimator.partial_fit(x, y, classes=[0, 1]) if hasattr(estimator, "alpha") else estimator.partial_fit(x)
            before = learnt(estimator)
            v.sync(every=2)                             # makes the vector, exchanges nothing
            after = learnt(estimator)
            same = [np.allclose(after[key], before[key], 1e-12) for key in before if "co" in key or "ce" in key]
            return all(same), v
        for estimator, more, own in [
            (SGDClassifier(), {}, True),
            (SGDClassifier(), {"start": "same"}, r == 0),
            (MLPClassifier((3,), random_state=7), {}, True),
            (MLPClassifier((3,), random_state=r), {}, r == 0),
            (MLPClassifier((3,)), {}, r == 0),
            (MLPClassifier((3,)), {"start": "own"}, True),
        ]:
            kept, v = trained(estimator, **more)
            assert kept == own, (estimator, more)
            v.close()
        km = MiniBatchKMeans(3, n_init=1)
        kept, v = trained(km)
        assert kept == (r == 0)
        assert len({c.tobytes() for c in malt.allgather(km.cluster_centers_)}) == 1
        """,
    )


@pytest.mark.parametrize("n", [2, 3])
def test_scalers_are_those_of_one_process(n: int) -> None:
    """By sync and by allreduce, pass after pass, with missing values, and a rank that has no rows at first."""
    run(
        n,
        """
        from sklearn.base import clone
        from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
        rows = np.random.default_rng(0).normal(5, 3, (91, 4)) * [1, 10, 1e6, 0] + 2
        rows[::7, 1] = np.nan
        for scaler in StandardScaler(), StandardScaler(with_std=False), MinMaxScaler((0, 2)), MaxAbsScaler():
            names = [k for k in ("n_samples_seen_", "mean_", "var_", "data_min_", "data_max_", "max_abs_", "scale_")]
            serial = clone(scaler)
            with malt.sklearn.Vector(scaler) as v:
                for step, part in enumerate(np.array_split(rows, 3)):
                    serial.partial_fit(part)
                    own = part[r - 1 :: n - 1] if step == 0 and r > 0 else part[:0] if step == 0 else malt.shard(part)
                    if len(own):
                        scaler.partial_fit(own)
                    v.sync()
                    if step == 1:
                        v.allreduce()
                    for name in names:
                        want = getattr(serial, name, None)
                        got = getattr(scaler, name, None)
                        if want is None:
                            assert got is None
                        elif name in ("data_min_", "data_max_", "max_abs_", "n_samples_seen_"):
                            assert np.array_equal(got, want), (scaler, name, got, want)
                        else:
                            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-20, err_msg=name)
        """,
    )


def test_the_guides_pipeline_has_one_scaler_on_all_ranks() -> None:
    code, _ = program("guide/sklearn.md")
    run(
        3,
        code
        + """
serial = StandardScaler().fit(x)
np.testing.assert_allclose(scaler.mean_, serial.mean_, rtol=1e-9, atol=1e-12)
np.testing.assert_allclose(scaler.scale_, serial.scale_, rtol=1e-9)
bits = b"".join(a.tobytes() for a in (scaler.mean_, scaler.scale_, clf.coef_, clf.intercept_))
assert set(malt.allgather(bits)) == {bits}
""",
    )


def test_pipelines() -> None:
    """The steps one after the other give what vectors of the steps give, in each mode; only some ranks have data."""
    run(
        3,
        """
        from sklearn.linear_model import SGDClassifier
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
        one = case("binary")
        rows, labels = malt.shard(one.x, one.y, order="block")
        def trained(steps, exchange_scaler, exchange):
            scaler, last = steps[0], steps[-1]
            if r > 0:
                scaler.partial_fit(rows)
            exchange_scaler()
            for i in range(0, 160, 20):
                if r > 0 or i > 40:
                    x = scaler.transform(rows[i : i + 20])
                    for step in steps[1:-1]:
                        x = step.transform(x)
                    last.partial_fit(x, labels[i : i + 20], classes=[0, 1])
                exchange()
            return learnt(scaler), learnt(last)
        def steps():
            yield StandardScaler(), SGDClassifier(random_state=0)
            yield MinMaxScaler(clip=True), MultinomialNB()
            yield MaxAbsScaler(), Normalizer(), SGDClassifier(random_state=0)
        for whole, apart in zip(steps(), steps()):
            v = malt.sklearn.Vector(make_pipeline("passthrough", *whole), name="whole")
            got = trained(whole, v.allreduce, v.sync)
            assert v.clock > 1 and len(v.arrays) >= 4 and v.name == "whole"
            v.broadcast(1)
            v.close()
            first, last = malt.sklearn.Vector(apart[0]), malt.sklearn.Vector(apart[-1])
            want = trained(apart, first.allreduce, last.sync)
            for a, b in zip(got, want):
                assert a.keys() == b.keys()
                for key in a:
                    np.testing.assert_array_equal(a[key], b[key], err_msg=key)
            first.close()
            last.close()
        """,
    )


def test_scalers_that_each_rank_has_fitted_alone_are_noticed() -> None:
    run(
        3,
        """
        from sklearn.linear_model import SGDClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MinMaxScaler, StandardScaler
        one = case("binary")
        rows, labels = malt.shard(one.x, one.y)
        def refused(model):
            v = malt.sklearn.Vector(model)
            try:
                v.sync()
            except malt.MismatchError as e:
                return str(e)
        for model in make_pipeline(StandardScaler(), SGDClassifier()), make_pipeline(MinMaxScaler(), StandardScaler()):
            if r > 0:                                   # and one has no data
                model.fit(rows, labels)
            said = refused(model)
            own = f"malt: each rank has fitted its own {type(model[0]).__name__}, whose output the "
            assert said.startswith(own), said
            assert "rank 1 and rank 2 differ in " in said and said.endswith("malt explain scalers"), said
        assert refused(make_pipeline(StandardScaler(), SGDClassifier()).fit(one.x, one.y)) is None  # the same on all
        """,
    )


def test_what_counts_is_not_fitted_anew_between_two_exchanges() -> None:
    """A rank's own part of the sum would come out negative. Alone there is no sum."""
    script = """
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.preprocessing import MaxAbsScaler, StandardScaler
        x, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
        for estimator in StandardScaler(), MaxAbsScaler(), MultinomialNB().fit(x, y):
            with malt.sklearn.Vector(estimator) as v:
                estimator.partial_fit(x, y)
                v.allreduce()
                estimator.fit(x, y)
                try:
                    v.sync()
                except malt.StateError as e:
                    assert n > 1 and "fitted again\\nCall partial_fit instead of fit" in str(e)
                else:
                    assert n == 1
        """
    run(1, script)
    run(2, script)


def test_broadcast_gives_the_whole_model() -> None:
    """Counters of steps too, and centres that have no points."""
    run(
        2,
        """
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.linear_model import SGDClassifier
        rows = np.random.default_rng(r).normal(size=(40 + 10 * r, 3)) + 10 * r
        linear = SGDClassifier(random_state=0).partial_fit(rows, rows[:, 0] > rows[0, 0], classes=[False, True])
        with malt.sklearn.Vector(linear) as v:
            v.sync()
            v.broadcast(1)
        assert linear.t_ == 51, linear.t_
        means = MiniBatchKMeans(4, random_state=r, n_init=1).partial_fit(rows)
        with malt.sklearn.Vector(means, start="own") as v:
            v.sync()
            if r == 1:  # the values of a file
                means.cluster_centers_[:], means._counts[:] = np.arange(12).reshape(4, 3), [1, 0, 2, 3]
                means.n_steps_ = 7
            v.broadcast(1)
            assert (means.cluster_centers_ == np.arange(12).reshape(4, 3)).all(), means.cluster_centers_
            assert means._counts.tolist() == [1, 0, 2, 3] and means.n_steps_ == 7
            v.sync()
            assert (means.cluster_centers_ == np.arange(12).reshape(4, 3)).all(), means.cluster_centers_
        """,
    )


def test_ranks_without_data() -> None:
    """Such a rank has nothing to say in a mean, gets the model, and can go on with it."""
    run(
        3,
        f"""
        from sklearn.base import clone
        for name in {[*WEIGHTS[1::2], "k-means"]}:
            one = case(name)
            v = malt.sklearn.Vector(one.estimator)
            if r > 0:
                for args, more in one.batches(50, slice(r - 1, None, 2)):
                    one.estimator.partial_fit(*args, **more)
                    v.sync()
            before = [a.copy() for a in v.arrays] if r > 0 else []
            v.allreduce()
            learners = [values for values in malt.allgather(before) if values]
            for a, *values in zip(v.arrays, *learners):
                np.testing.assert_allclose(a, np.mean(values, 0), rtol=1e-9, atol=1e-12, err_msg=name)
            predict = one.estimator.predict(one.x)
            assert (predict == malt.broadcast(predict)).all()
            args, more = next(one.batches(50))
            one.estimator.partial_fit(*args, **more)    # also where it had none
            v.sync()
            bits = b"".join(a.tobytes() for a in v.arrays)
            assert set(malt.allgather(bits)) == {{bits}}, name
            v.close()
        """,
    )


def test_another_rank_is_in_allgather() -> None:
    run(
        2,
        """
        from sklearn.linear_model import SGDClassifier
        from sklearn.preprocessing import StandardScaler
        x, y = np.eye(4), [0, 1, 0, 1]
        for learnt in SGDClassifier().partial_fit(x, y, classes=[0, 1]), StandardScaler().fit(x):
            v = malt.sklearn.Vector(learnt)
            for call, name in (v.sync, "Vector"), (v.sync, None), (v.allreduce, "Vector.allreduce"):
                try:
                    call() if r or name is None else malt.allgather({"loss": 1.0})
                    assert name is None
                except malt.MismatchError as e:
                    one, other = str(e).splitlines()[1:3]
                    assert one.startswith("rank 0: malt.allgather() "), e
                    assert other.startswith(f"rank 1: malt.sklearn.{name}("), e
        """,
    )


def test_estimators_that_differ() -> None:
    """Every rank says the same, with both values and what to do."""
    outs = run(
        2,
        """
        from sklearn.linear_model import SGDClassifier, SGDRegressor, Perceptron
        from sklearn.neural_network import MLPClassifier
        def told(estimator, x, y, classes, **more):
            try:
                malt.sklearn.Vector(estimator.partial_fit(x, y, classes=classes), **more).sync()
            except malt.MismatchError as e:
                print(e)
        x, y = np.eye(4), [0, 1, 0, 1]
        told(SGDClassifier(), x, y, [0, 1] if r == 0 else [0, 1, 2])
        told(SGDClassifier(), x, [str(i) for i in y], ["0", "1"] if r == 0 else ["0", "1", "2"])
        told(SGDClassifier(), x[:, r:], y, [0, 1])
        told(MLPClassifier((3,)), x.astype(np.float32 if r else np.float64), y, [0, 1])
        told(SGDClassifier() if r else Perceptron(), x, y, [0, 1])
        told(MLPClassifier((3 + r,)), x, y, [0, 1])
        told(SGDClassifier(), x, y, [0, 1], start="same" if r else None)
        told(SGDClassifier(), x, np.arange(4), list(range(40)) if r else list(range(41)))
        """,
    )
    assert outs[0] == outs[1]
    classes, words, features, dtype, model, shapes, start, many = outs[0].removeprefix("malt: ").split("\nmalt: ")
    assert "classes\nrank 0 has [0, 1], rank 1 has [0, 1, 2]\nPass the classes of all data to the first" in classes
    assert "rank 0 has ['0', '1'], rank 1 has ['0', '1', '2']" in words
    assert "number of features\nrank 0 has 4, rank 1 has 3\nPass n_features=" in features
    assert "dtype of the data\nrank 0 has 'float64', rank 1 has 'float32'\nConvert" in dtype
    what, kind, other, *_ = model.splitlines()
    assert what == "the ranks passed different arguments to malt.sklearn.Vector"
    assert kind.startswith("rank 0: malt.sklearn.Vector(Perceptron) (script.py:")
    assert other.startswith("rank 1: malt.sklearn.Vector(SGDClassifier) (script.py:")
    assert "'coefs_[0]': (4, 3)" in shapes
    assert "'coefs_[0]': (4, 4)" in shapes
    assert 'rank 1: malt.sklearn.Vector(SGDClassifier, start="same") (script.py:' in start
    assert "… 40] (41), rank 1 has [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 39] (40)" in many


def test_folds_graphs_modes_and_shares_of_weights() -> None:
    run(
        2,
        """
        from sklearn.linear_model import SGDRegressor
        x = np.ones((10, 3))
        for options, call, expected in [
            ({"fold": "max"}, {}, np.maximum),
            ({"fold": lambda own, updates: [np.minimum(a, b) for a, b in zip(own, updates[0].arrays)]}, {}, np.minimum),
            ({}, {"fold": "sum"}, np.add),
            ({"graph": "ring", "consistency": "notify-ack"}, {}, lambda a, b: (a + b) / 2),
        ]:
            e = SGDRegressor(random_state=0).partial_fit(x, np.full(10, r + 1.0))
            both = malt.allgather(e.coef_)
            with malt.sklearn.Vector(e, **options) as v:
                assert v.sync(**call) == 1
                np.testing.assert_allclose(e.coef_, expected(*both))
                v.configure(consistency="async")
                assert v.consistency == "async"
                v.scatter(weight=3.0)
                malt.barrier()
                assert v.gather("replace") == 1
                v.allreduce("sum")

        e = SGDRegressor(random_state=0).partial_fit(x, np.full(10, r + 1.0))
        a, b = malt.allgather(e.coef_)
        v = malt.sklearn.Vector(e)
        v.sync(weight=1 + 2 * r)
        np.testing.assert_allclose(e.coef_, (a + 3 * b) / 4)
        """,
    )


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(("graph", "sparse"), [("all", False), ("butterfly", False), ("shards", "model")])
def test_changes_count_from_the_model_when_the_vector_was_made(n: int, graph: str, sparse: bool | str) -> None:
    run(
        n,
        f"""
        from sklearn.linear_model import SGDRegressor
        options = {{"graph": {graph!r}, "sparse": {sparse!r}, "consistency": "ssp:1"}}
        for fold, share in [("sum-changes", 1), ("mean-changes", 1 / n)]:
            e = SGDRegressor(random_state=0)                    # zeros
            v = malt.sklearn.Vector(e, fold=fold, **options)
            e.partial_fit(np.eye(4) + r, np.arange(4.0) - r)
            own = np.sum(malt.allgather(np.append(e.coef_, e.intercept_)), 0)
            v.allreduce()
            np.testing.assert_allclose(np.append(e.coef_, e.intercept_), share * own)

            e = SGDRegressor(random_state=0)                    # rank 0 has no rows
            v = malt.sklearn.Vector(e, fold=fold, **options)
            if r or n == 1:
                e.partial_fit(np.eye(4), np.full(4, r + 1.0))
            own = np.sum(malt.allgather(e.coef_.copy() if r or n == 1 else np.zeros(4)), 0)
            v.sync()
            v.allreduce()
            np.testing.assert_allclose(e.coef_, share * own)

            e = SGDRegressor(random_state=0).partial_fit(np.eye(4), np.full(4, r + 1.0))
            before = malt.broadcast(e.coef_.copy(), 0)          # each has another
            v = malt.sklearn.Vector(e, fold=fold, **options)
            e.coef_ += r + 1
            v.sync()
            v.allreduce()
            np.testing.assert_allclose(e.coef_, before + share * n * (n + 1) / 2)
        """,
    )


def test_changed_weights_travel_alone_and_late() -> None:
    run(
        2,
        """
        from sklearn.linear_model import SGDRegressor
        e = SGDRegressor(random_state=0).partial_fit(np.eye(2, 1000), [1, 2])
        changes = {"fold": "sum-changes", "consistency": "ssp:2"}
        with malt.sklearn.Vector(e, **changes, graph="shards", sparse="model", filter="dvf:0.5") as v:
            v.allreduce()
            before, sent = e.coef_.copy(), v.stats().sent_bytes
            for _ in range(8):
                e.coef_[r] += 1
                e.intercept_ += 1
                v.sync()
                assert v.age <= 2
            assert v.stats().sent_bytes - sent < 8 * e.coef_.nbytes / 10
            v.allreduce()
            np.testing.assert_allclose(e.coef_ - before, [8, 8, *[0] * 998])
        with malt.sklearn.Vector(e, **changes) as v:
            v.sync()
            e.coef_ += 1
            v.sync(slack=0)
            assert v.age == 0
            np.testing.assert_allclose(e.coef_ - before, [10, 10, *[2] * 998])
            malt.barrier()
            e.coef_ += 1
            v.sync(every=2, weight=0.5)
            v.allreduce()
            np.testing.assert_allclose(e.coef_ - before, [11, 11, *[3] * 998])
        """,
    )
