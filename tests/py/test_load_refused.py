"""Files that cannot be what they are called: an error that names the file, the line and the cause, at once."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import malt


@pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.npy", "a.npz", "a.csv.gz"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name} is a pipe or a device.*into a file first"):
        malt.load(tmp_path / name)


def test_a_device_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"a\.csv is a pipe or a device"):
        malt.load(tmp_path / "a.csv")


def test_an_npz_with_a_foreign_member(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=np.arange(3.0))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match=r"a\.npz holds 'readme\.txt', which is not an array.*of \['X'\]"):
        malt.load(path)
    assert malt.load(path, columns=["X"])["X"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1 3:1 3:2", "'3:2': each index once is expected in a line"),
        ("1 3:1 5:1 3:2", "'3:2': each index once is expected in a line"),
        ("1 1:1 9223372036854775808:2", "'9223372036854775808:2': an index of at most"),
        ("1 99999999999999999999999:2", "'99999999999999999999999:2': an index of at most"),
    ],
)
def test_svmlight_that_no_matrix_can_hold(tmp_path: Path, line: str, says: str) -> None:
    pytest.importorskip("scipy")
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:1 2:1  # fine\n\n-1 7:1 2:1\n{line}\n1 1:1\n")
    with pytest.raises(ValueError, match=rf"a\.svm.*line 4.*{says}"):
        malt.load(path)


def test_an_empty_file_that_is_called_packed(tmp_path: Path) -> None:
    path = tmp_path / "a.svm.gz"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"a\.svm\.gz is empty"):
        malt.load(path)


def npy(shape: tuple[int, ...], data: bytes = bytes(100)) -> bytes:
    """Return a npy file whose header promises a shape."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return head.getvalue() + data


@pytest.mark.parametrize("shape", [(2**37,), (10, 2**37)])
def test_a_header_that_promises_more_than_there_is(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """It is said before memory is asked for, of whatever format, packed or not."""
    content = npy(shape)
    expected = f"{len(content) - 100 + 8 * int(np.prod(shape)):,}"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(ValueError, match=rf"'x' in .*a\.npz has 228 bytes, but its header promises {expected}:"):
        malt.load(tmp_path / "a.npz")
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match=rf"a\.npy\.gz has .* at most, unpacked, but its header promises {expected}:"):
        malt.load(tmp_path / "a.npy.gz")
    idx = b"\0\0\x08\x03" + struct.pack(">III", 2**32 - 1, 2**32 - 1, 2**20) + bytes(6)
    (tmp_path / "a-idx3-ubyte.gz").write_bytes(gzip.compress(idx))
    with pytest.raises(ValueError, match=r"a-idx3-ubyte\.gz has .* but its header promises"):
        malt.load(tmp_path / "a-idx3-ubyte.gz")


def test_a_negative_shape(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy((-1,)))
    with pytest.raises(ValueError, match=r"a\.npy: the header of the npy file is damaged: .*\(-1,\)"):
        malt.load(tmp_path / "a.npy")


def test_what_does_not_fit_into_memory_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.zeros(5))
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))

    def full(*args: object, **more: object) -> None:
        raise MemoryError("Unable to allocate 9.00 TiB")

    monkeypatch.setattr(np, "empty", full)
    with pytest.raises(malt.OutOfMemoryError, match=r"does not fit into its memory: Unable.*\n.*a\.npy\.gz\n"):
        malt.load(tmp_path / "a.npy.gz")


@pytest.mark.parametrize("name", ["a.csv", "a.svm"])
def test_lines_that_end_with_cr_alone(tmp_path: Path, name: str) -> None:
    pytest.importorskip("scipy")
    (tmp_path / name).write_bytes(b"1 1:2\r2 2:3\r" if name == "a.svm" else b"1,2\r3,4\r")
    with pytest.raises(ValueError, match=rf"{name}, line 1: .*end with \\r alone.*tr"):
        malt.load(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.txt"])
def test_texts_that_are_something_else(tmp_path: Path, name: str) -> None:
    pytest.importorskip("scipy")
    (tmp_path / name).write_bytes("1,2\n".encode("utf-16"))
    with pytest.raises(ValueError, match=rf"{name}, line 1: the text is UTF-16.*iconv"):
        malt.load(tmp_path / name)
    (tmp_path / name).write_bytes(b"\n<!DOCTYPE html>\n<html>Sign in, please</html>\n")
    with pytest.raises(ValueError, match=rf"{name}, line 1: this is a web page"):
        malt.load(tmp_path / name)


def test_damaged_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"a": list(range(10_000))})
    parquet.write_table(table, tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for damaged, says in [
        (whole[:-100], "not a whole Parquet file"),
        (b"", "not a whole Parquet file"),
        (whole[:4] + b"\xff" * 3000 + whole[3004:], "row group 0 is damaged"),
    ]:
        (tmp_path / "a.parquet").write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"a\.parquet: .*{says}"):
            malt.load(tmp_path / "a.parquet")


def test_missing_labels_and_far_columns_are_as_in_the_file(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    (tmp_path / "a.svm").write_text("nan 1:2\n-1 100000000000:3\n")
    x, y = malt.load(tmp_path / "a.svm")
    assert x.shape == (2, 10**11)
    np.testing.assert_array_equal(y, [np.nan, -1])
    with pytest.raises(ValueError, match=r"feature 100000000000, counted from 1, but n_features=10"):
        malt.load(tmp_path / "a.svm", n_features=10)


def test_even_parts_are_cut_by_shard() -> None:
    with pytest.raises(TypeError, match=r"load has no even=: .*malt\.shard\(malt\.load\(path, shard=False\), even="):
        malt.load("a.csv", even="pad")
