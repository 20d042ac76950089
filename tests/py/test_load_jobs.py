"""``malt.load`` in jobs of real ranks, also of real data."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import jobs
import numpy as np
import pytest

import malt


def data(name: str) -> Path:
    """Return a file of the data sets that are not in the repository."""
    folder = os.environ.get("MALT_DATA")
    if not folder:
        pytest.skip(f"{name} is looked for in the folder that MALT_DATA names, which is not set")
    return Path(folder) / name


@pytest.mark.parametrize("n", [2, 3, 4])
def test_ranks_agree_on_the_number_of_features(tmp_path: Path, n: int) -> None:
    pytest.importorskip("scipy")
    # Only the first row has the last feature, and only the last row the index 0.
    rows = ["0 90:1", *(f"{i} {i}:{i}" for i in range(1, 40)), "40 0:5"]
    (tmp_path / "x.svm").write_text("\n".join(rows))
    (tmp_path / "x.svm.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    outputs = jobs.run(
        n,
        f"""
        for name in ("x.svm", "x.svm.gz"):
            for order in ("block", "stride", "shuffle"):
                X, y = malt.load({str(tmp_path)!r} + "/" + name, order=order)
                assert X.shape == (len(y), 91)
                inner = (0 < y) & (y < 40)
                assert X.sum(axis=1).A1[inner].tolist() == y[inner].tolist()
                whole = malt.allgather(y)
                assert sorted(np.concatenate(whole)) == list(range(41)), whole
                v = malt.Vector(X.shape[1])  # would be refused if the ranks disagreed
                v.array[:] = X.sum(axis=0)
                v.allreduce("sum")
                assert (v.array[0], v.array[90], v.array[39]) == (5, 1, 39)
        try:
            malt.load({str(tmp_path / "x.svm")!r}, n_features=50)
        except ValueError as e:
            print(e)
        print("fine")
        """,
    )
    for out in outputs:
        assert out.endswith("has feature 90, counted from 0\nn_features=50 is too small\nPass at least 91.\nfine")


def test_one_rank_alone_may_load_what_is_not_shared(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(9))
    outputs = jobs.run(
        2,
        f"""
        if r == 0:
            print(malt.load({str(tmp_path / "x.npy")!r}, shard=False).tolist())
        malt.barrier()
        """,
    )
    assert outputs == [str(list(range(9))), ""]


def test_real_text(tmp_path: Path) -> None:
    path = data("rcv1-ccat/test.svm.gz")
    load_svmlight_file = pytest.importorskip("sklearn.datasets").load_svmlight_file
    plain = tmp_path / "test.svm"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    whole, labels = load_svmlight_file(str(path))
    x, y = malt.load(path)
    assert (x != whole).nnz == 0
    np.testing.assert_array_equal(y, labels)
    parts = malt.run(malt.load, 3, args=(str(plain),))
    assert {x.shape[1] for x, _ in parts} == {whole.shape[1]}
    np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), labels)
    assert (
        sum((x != whole[i * len(labels) // 3 : (i + 1) * len(labels) // 3]).nnz for i, (x, _) in enumerate(parts)) == 0
    )


def test_real_images() -> None:
    images, labels = (data(f"mnist/t10k-{name}.gz") for name in ("images-idx3-ubyte", "labels-idx1-ubyte"))
    parts = malt.run(malt.load, 3, args=(str(images), str(labels)), kwargs={"order": "stride"})
    assert [x.shape for x, _ in parts] == [(3334, 28, 28), (3333, 28, 28), (3333, 28, 28)]
    whole = malt.load(labels)
    for rank, (_, y) in enumerate(parts):
        np.testing.assert_array_equal(y, whole[rank::3])


def test_real_tables() -> None:
    path = data("movielens-small3/test.csv.gz")
    parts = malt.run(malt.load, 2, args=(str(path),), kwargs={"label": -1})
    whole = malt.load(path)
    assert whole.shape == (29_787, 3)
    np.testing.assert_array_equal(np.concatenate([np.column_stack((x, y)) for x, y in parts]), whole)


def test_a_rank_that_does_not_come_is_waited_for_as_long_as_in_any_call(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(9))
    script = f"""
        if r == 0:
            malt._lib.JOB.set_timeout(0.5)
            try:
                malt.load({str(tmp_path / "x.npy")!r})
            except malt.TimeoutError as e:
                print(e, flush=True)
        sys.stdin.readline()
        """
    with jobs.Job(2, script) as job:
        job.ranks[0].out.wait_for(r"rank 1\b")
        for rank in job.ranks:
            rank.say("end")
        job.finish()
