"""``malt.load`` of arrays: mapped, big-endian, in archives, damaged."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from loads import Loads, checked, mine

import malt

ORDERS = ("block", "stride", "shuffle")


def test_an_array_that_is_here_is_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(6, 2))
    x = malt.load(tmp_path / "x.npy")
    assert type(x) is np.ndarray
    assert str(tmp_path / "x.npy") in Path("/proc/self/maps").read_text()
    x += 1  # what is written stays in memory
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy")[0], [0, 1])
    part = x[::2]
    del x
    assert part[1, 0] == 5


@pytest.mark.parametrize("dtype", ["<i2", ">f4", "?", "S3", "datetime64[s]", [("a", "<i4"), ("b", "<f8")]])
def test_types_stay_and_bytes_come_in_the_order_of_the_machine(tmp_path: Path, dtype: object) -> None:
    whole = np.zeros(5, dtype)
    np.save(tmp_path / "x.npy", whole)
    (tmp_path / "y.npy.gz").write_bytes(gzip.compress((tmp_path / "x.npy").read_bytes()))
    for name in ("x.npy", "y.npy.gz"):
        x = malt.load(tmp_path / name)
        assert x.dtype == whole.dtype.newbyteorder("=")
        assert x.tolist() == whole.tolist()


def test_idx_of_bytes(loads: Loads, tmp_path: Path) -> None:
    images = np.arange(5 * 28 * 28, dtype=np.uint8).reshape(5, 28, 28)
    head = b"\0\0\x08\x03" + np.array(images.shape, ">u4").tobytes()
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x05" + bytes(range(5)))
    for order in ORDERS:
        for rank, (x, y) in enumerate(
            checked(loads(2, tmp_path / "t10k-images-idx3-ubyte.gz", tmp_path / "t10k-labels-idx1-ubyte", order=order))
        ):
            assert x.dtype == y.dtype == np.uint8
            assert y.tolist() == mine(5, rank, 2, order).tolist()
            np.testing.assert_array_equal(x, images[y])
    assert malt.load(tmp_path / "t10k-labels-idx1-ubyte", dtype=np.int64).dtype == np.int64


@pytest.mark.parametrize("order", ORDERS)
def test_archives_are_cut_alike(loads: Loads, tmp_path: Path, order: str) -> None:
    np.savez(tmp_path / "x.npz", X=np.arange(22.0).reshape(11, 2), y=np.arange(11), names=np.array(["a", "b"]))
    for size in (1, 2, 4):
        for rank, part in enumerate(checked(loads(size, tmp_path / "x.npz", columns=["X", "y"], order=order))):
            assert list(part) == ["X", "y"]
            assert part["y"].tolist() == mine(11, rank, size, order).tolist()
            np.testing.assert_array_equal(part["X"][:, 0], 2.0 * part["y"])
            assert size == 1 or part["X"].base is None  # the rest of the rows is let go


@pytest.mark.parametrize("order", ORDERS)
def test_sparse_archives(loads: Loads, tmp_path: Path, order: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    whole = sparse.random(11, 4, 0.5, "csc", random_state=1)
    sparse.save_npz(tmp_path / "x.npz", whole)
    for size in (1, 3):
        for rank, part in enumerate(checked(loads(size, tmp_path / "x.npz", order=order))):
            assert part.format == "csr"
            np.testing.assert_array_equal(part.toarray(), whole.toarray()[mine(11, rank, size, order)])


def test_what_does_not_fit_is_named_with_its_lengths(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.zeros((3, 2)), y=np.zeros(2), n=np.array(3))
    with pytest.raises(ValueError, match=r"different lengths\n'X' has 3, 'y' has 2\n.*columns="):
        malt.load(tmp_path / "x.npz", columns=["X", "y"])
    with pytest.raises(ValueError, match=r"'n' in .* is a single number, .*\nits arrays are \['X', 'y', 'n'\]"):
        malt.load(tmp_path / "x.npz")
    with pytest.raises(ValueError, match="'Y'\nexpected one of X, y, n"):
        malt.load(tmp_path / "x.npz", columns=["Y"])
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    np.save(tmp_path / "y.npy", np.zeros(2))
    for order in ORDERS:
        with pytest.raises(
            ValueError, match=r"numbers of rows\n.*x.npy has 3, .*y.npy has 2\nData that you cut together"
        ):
            malt.load(tmp_path / "x.npy", tmp_path / "y.npy", order=order)
    with pytest.raises(
        ValueError, match=r"y.npy holds rows of shape \(\) and float64\n.*x.npy has rows of shape \(2,\)"
    ):
        malt.load([tmp_path / "x.npy", tmp_path / "y.npy"])


def test_damaged_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((300, 2)))
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(data[:-1])
    with pytest.raises(ValueError, match="has 4,927 bytes\nits header declares 4,928\nFetch the file again"):
        malt.load(tmp_path / "x.npy")
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress(data[:-1]))
    with pytest.raises(ValueError, match="ends before its 300 rows of 16 bytes"):
        malt.load(tmp_path / "x.npy.gz")
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress(np.random.RandomState(0).bytes(9) + data)[:-50])
    with pytest.raises(ValueError, match=r"x.npy.gz"):
        malt.load(tmp_path / "x.npy.gz")
    (tmp_path / "y.txt.gz").write_bytes(gzip.compress(b"a line\n" * 9999)[:-20])
    with pytest.raises(ValueError, match=r"the gzip data are damaged or end too early .*\nFetch the file again"):
        malt.load(tmp_path / "y.txt.gz")
    (tmp_path / "z.txt.gz").write_text("not packed")
    for path in (tmp_path / "z.txt.gz", [tmp_path / "a.txt", tmp_path / "z.txt.gz"]):
        (tmp_path / "a.txt").write_text("a line")
        with pytest.raises(ValueError, match=r"z.txt.gz is not a gzip file\nit begins with b'not pack'"):
            malt.load(path)
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="holds Python objects\nonly unpickling could read them"):
        malt.load(tmp_path / "o.npy")
    (tmp_path / "p.npz").write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(ValueError, match=r"p.npz\n.*\nFetch the file again"):
        malt.load(tmp_path / "p.npz")
    (tmp_path / "q-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0")
    with pytest.raises(ValueError, match="ends in its header"):
        malt.load(tmp_path / "q-idx1-ubyte")
    (tmp_path / "r.npz.gz").write_bytes(gzip.compress(b"PK"))
    with pytest.raises(ValueError, match=r"r.npz.gz is packed by gzip\n.*\nUnpack the file first"):
        malt.load(tmp_path / "r.npz.gz")
