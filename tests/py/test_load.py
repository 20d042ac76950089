"""``malt.load``: every format, order and number of ranks gives what ``malt.shard`` would cut from the whole."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loads import Loads, checked, mine

import malt

SIZES = range(1, 9)
ORDERS = ("block", "stride", "shuffle")
ROWS = 43
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}

# Uneven lines, so that equal parts of the bytes are not equal parts of the rows.
TABLE = np.array([[i, i * i * i % 1000, 10.0 ** (i % 9)] for i in range(ROWS)])


def svmlight() -> bytes:
    return b"".join(b"%d %d:%d %d:%d\n" % (r[0], r[0] + 1, r[1], r[0] + 50, r[2]) for r in TABLE.astype(int))


def csv() -> bytes:
    return b"a,b,c\n" + b"".join(b"%d,%d,%d\n" % tuple(r) for r in TABLE.astype(int))


def text() -> bytes:
    return b"".join(b"%d %s\n" % (r[0], b"x" * (int(r[1]) % 17)) for r in TABLE.astype(int))


def npy(array: np.ndarray = TABLE) -> bytes:
    import io

    f = io.BytesIO()
    np.save(f, array)
    return f.getvalue()


def idx() -> bytes:
    return b"\0\0\x0e\x02" + np.array(TABLE.shape, ">u4").tobytes() + TABLE.astype(">f8").tobytes()


def rows_of(kind: str, part: Any) -> list[tuple[float, ...]]:
    """Return the first column of TABLE for each row, after a look at the rest of it."""
    if kind == "svmlight":
        x, y = part
        assert x.shape == (len(y), 92)
        dense = x.toarray()
        for i, label in enumerate(y.astype(int)):
            assert (dense[i, label], dense[i, label + 49]) == tuple(TABLE[label, 1:])
        return list(y)
    if kind == "text":
        assert all(line.split(" ")[1] == "x" * (int(TABLE[int(line.split()[0]), 1]) % 17) for line in part)
        return [float(line.split()[0]) for line in part]
    if kind == "frame":
        part = np.stack([part["a"], part["b"], part["c"]], axis=1)
    assert part.shape[1:] == (3,)
    np.testing.assert_array_equal(part, TABLE[part[:, 0].astype(int)])
    return list(part[:, 0])


CASES: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "svmlight": ("svmlight", "rows.svm", svmlight),
    "csv": ("csv", "rows.csv", csv),
    "text": ("text", "rows.txt", text),
    "npy": ("npy", "rows.npy", npy),
    "fortran": ("npy", "rows.npy", lambda: npy(np.asfortranarray(TABLE))),
    "idx": ("idx", "rows-idx2-double", idx),
}


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("tiny_blocks")
def test_parts_are_those_of_shard(loads: Loads, tmp_path: Path, case: str, order: str, packed: str) -> None:
    kind, name, content = CASES[case]
    if kind == "svmlight":
        pytest.importorskip("scipy")
    path = tmp_path / (name + packed)
    path.write_bytes(PACK[packed](content()))
    for size in SIZES if not packed else (1, 3, 8):
        parts = checked(loads(size, path, order=order, seed=5 if order == "shuffle" else None))
        for rank, part in enumerate(parts):
            assert rows_of(kind, part) == mine(ROWS, rank, size, order, 5).tolist()


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES)
def test_files_of_a_glob_are_one(loads: Loads, tmp_path: Path, case: str, order: str, packed: str) -> None:
    kind, name, content = CASES[case]
    if kind == "svmlight":
        pytest.importorskip("scipy")
    lines = content().splitlines(keepends=True)
    header = 1 if kind == "csv" else 0
    for i, (a, b) in enumerate([(0, 5), (5, 5), (5, 30), (30, 43)]):
        if kind in ("npy", "idx"):
            part = TABLE[a:b]
            data = npy(np.asfortranarray(part) if case == "fortran" else part)
            if kind == "idx":
                data = b"\0\0\x0e\x02" + np.array(part.shape, ">u4").tobytes() + part.astype(">f8").tobytes()
        else:
            data = b"".join(lines[:header] + lines[a + header : b + header])
        (tmp_path / f"{i}{name}{packed}").write_bytes(PACK[packed](data))
    for size in (1, 2, 3, 8):
        for paths in (tmp_path / f"*{name}{packed}", sorted(tmp_path.iterdir())):
            for rank, part in enumerate(checked(loads(size, paths, order=order))):
                assert rows_of(kind, part) == mine(ROWS, rank, size, order).tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_rows_and_labels_of_two_files_stay_together(loads: Loads, tmp_path: Path, order: str) -> None:
    (tmp_path / "x.csv").write_bytes(csv())
    (tmp_path / "y.npy").write_bytes(npy(np.arange(ROWS)))
    (tmp_path / "z.txt.gz").write_bytes(gzip.compress(text()))
    for size in (1, 2, 5):
        for x, y, z in checked(loads(size, *(tmp_path / name for name in ("x.csv", "y.npy", "z.txt.gz")), order=order)):
            assert x[:, 0].tolist() == y.tolist() == [int(line.split()[0]) for line in z]


def test_what_is_not_shared_is_whole_and_no_business_of_others(loads: Loads, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(csv())
    whole, missing = loads(2, lambda rank: tmp_path / ("x.csv" if rank == 0 else "none.csv"), shard=False)
    np.testing.assert_array_equal(whole, TABLE)
    assert isinstance(missing, FileNotFoundError)
    (shuffled,) = loads(1, tmp_path / "x.csv", shard=False, order="shuffle", seed=2)
    np.testing.assert_array_equal(shuffled, TABLE[mine(ROWS, 0, 1, "shuffle", 2)])


@pytest.mark.parametrize("kind", ["csv", "text", "npy"])
@pytest.mark.parametrize("order", ORDERS)
def test_fewer_rows_than_ranks_and_none(loads: Loads, tmp_path: Path, kind: str, order: str) -> None:
    empty = {"csv": b"a,b\n", "text": b"", "npy": npy(np.zeros((0, 2)))}
    two = {"csv": b"a,b\n1,2\n3,4", "text": b"1\n2", "npy": npy(np.ones((2, 2)))}
    for data, total in ((empty[kind], 0), (two[kind], 2)):
        (tmp_path / f"x.{kind}").write_bytes(data)
        parts = checked(loads(5, tmp_path / f"x.{kind}", order=order, format=kind))
        assert sum(map(len, parts)) == total
        assert kind == "text" or {part.shape[1] for part in parts} == {2}


def test_alone_without_a_job(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(csv())
    np.testing.assert_array_equal(malt.load(str(tmp_path / "x.csv")), TABLE)


def test_names_tell_the_format() -> None:
    from malt._data.load.formats import guess

    for name, kind in {
        "a.svm": "svmlight",
        "A.LIBSVM.GZ": "svmlight",
        "a/b.svmlight.bz2": "svmlight",
        "a.tsv.xz": "csv",
        "train-images-idx3-ubyte.gz": "idx",
        "train-images.idx3-ubyte": "idx",
        "s3://bucket/part-0.parquet": "parquet",
        "https://host/rows.csv.gz?version=1.npy": "csv",
        "zip://rows.npy::http://host/a.zip": "npy",
    }.items():
        assert guess(name) == kind
    with pytest.raises(
        ValueError, match=r"'rows.dat' does not tell the format\nit is one of svmlight, npy, .*\nPass format="
    ):
        guess("rows.dat")
