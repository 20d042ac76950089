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
from malt._data.load import files, memory
from malt._data.load.rows import Rows


@pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.npy", "a.npz", "a.csv.gz"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=rf"(?s){name} is a pipe or a device.*to a file first"):
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
    with pytest.raises(ValueError, match=r"a\.npz holds 'readme\.txt', which is not an array\nits arrays are \['X'\]"):
        malt.load(path)
    assert malt.load(path, columns=["X"])["X"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1 3:1 3:2", "'3:2'\nexpected each index once in a line"),
        ("1 3:1 5:1 3:2", "'3:2'\nexpected each index once in a line"),
        ("1 1:1 9223372036854775808:2", "'9223372036854775808:2'\nexpected an index of at most"),
        ("1 99999999999999999999999:2", "'99999999999999999999999:2'\nexpected an index of at most"),
    ],
)
def test_svmlight_that_no_matrix_can_hold(tmp_path: Path, line: str, says: str) -> None:
    pytest.importorskip("scipy")
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:1 2:1  # fine\n\n-1 7:1 2:1\n{line}\n1 1:1\n")
    with pytest.raises(ValueError, match=rf"a\.svm.*line 4\n.*{says}"):
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
    with pytest.raises(ValueError, match=rf"'x' in .*a\.npz has 228 bytes\nits header declares {expected}\n"):
        malt.load(tmp_path / "a.npz")
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match=rf"a\.npy\.gz has .* at most, unpacked\nits header declares {expected}\n"):
        malt.load(tmp_path / "a.npy.gz")
    idx = b"\0\0\x08\x03" + struct.pack(">III", 2**32 - 1, 2**32 - 1, 2**20) + bytes(6)
    (tmp_path / "a-idx3-ubyte.gz").write_bytes(gzip.compress(idx))
    with pytest.raises(ValueError, match=r"a-idx3-ubyte\.gz has .*\nits header declares"):
        malt.load(tmp_path / "a-idx3-ubyte.gz")


def test_a_negative_shape(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy((-1,)))
    with pytest.raises(ValueError, match=r"a\.npy: the header of the npy file is damaged\n.*\(-1,\)"):
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
    with pytest.raises(ValueError, match=rf"(?s){name}, line 1\n.*end with \\r alone.*tr"):
        malt.load(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.txt"])
def test_texts_that_are_something_else(tmp_path: Path, name: str) -> None:
    pytest.importorskip("scipy")
    (tmp_path / name).write_bytes("1,2\n".encode("utf-16"))
    with pytest.raises(ValueError, match=rf"(?s){name}, line 1\nthe text is UTF-16.*iconv"):
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
        with pytest.raises(ValueError, match=rf"a\.parquet\n.*{says}"):
            malt.load(tmp_path / "a.parquet")


def test_missing_labels_and_far_columns_are_as_in_the_file(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    (tmp_path / "a.svm").write_text("nan 1:2\n-1 100000000000:3\n")
    x, y = malt.load(tmp_path / "a.svm")
    assert x.shape == (2, 10**11)
    np.testing.assert_array_equal(y, [np.nan, -1])
    with pytest.raises(ValueError, match="feature 100000000000, counted from 1\nn_features=10"):
        malt.load(tmp_path / "a.svm", n_features=10)


def test_even_parts_are_cut_by_shard() -> None:
    with pytest.raises(
        TypeError, match=r"(?s)load has no even=\n.*malt\.shard\(malt\.load\(path, shard=False\), even="
    ):
        malt.load("a.csv", even="pad")


def packed_rows(folder: Path, name: str) -> Path:
    """Write twelve rows of some format to a file; return its path."""
    path, x = folder / name, np.arange(12.0)
    if name == "x.npy.gz":
        path.write_bytes(gzip.compress(npy((12,), x.tobytes())))
    elif name == "x.npz":
        np.savez_compressed(path, x=x)
    elif name == "x.parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"x": x}), path)
    else:
        path.write_bytes(gzip.compress((b"1,2\n" if name == "x.csv.gz" else b"1 1:2\n") * 12))
    return path


@pytest.mark.parametrize("name", ["x.csv.gz", "x.svm.gz", "x.txt.gz", "x.npy.gz", "x.npz", "x.parquet"])
def test_a_small_file_that_unpacks_to_more_than_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is refused while there is memory left: the kernel would end the process."""
    if name == "x.svm.gz":
        pytest.importorskip("scipy", reason="scipy is not installed")
    path = packed_rows(tmp_path, name)
    monkeypatch.setattr(memory, "STEP", 1)
    assert malt.load(path) is not None
    monkeypatch.setattr(memory, "free_memory", lambda: memory.RESERVE - (1 << 20))
    with pytest.raises(malt.OutOfMemoryError, match=rf"64 MiB are needed to go on, 63 MiB are free\n.*{name}\n"):
        malt.load(path)


def test_what_is_mapped_needs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.arange(12.0))
    monkeypatch.setattr(memory, "free_memory", lambda: 0)
    assert malt.load(tmp_path / "x.npy").sum() == 66
    with pytest.raises(malt.OutOfMemoryError):
        malt.load(tmp_path / "x.npy", dtype=np.float32)


def test_a_row_without_end_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block is looked at by itself: 256 MiB of one row took a minute when all before it was copied each time."""
    rows, looked = Rows(quote=b'"'), []
    end = Rows.end
    monkeypatch.setattr(
        Rows, "end", lambda self, block, quoted=0: looked.append(len(block)) or end(self, block, quoted)
    )
    text = b'1,"' + b"\n\0" * 500 + b'"\n2,3\n'
    blocks = [text[i : i + 10] for i in range(0, len(text), 10)]
    assert list(rows.whole(blocks, "x.csv")) == [text]
    assert max(looked) <= 10


PAGE = b'\xef\xbb\xbf\n<!DOCTYPE HTML>\n<html lang="en"><title>Error response</title>'


@pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.npy", "a.npz", "a.parquet", "a.idx", "a.csv.gz"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PAGE, "this is a web page.*\n.*server"),
        (b"version https://git-lfs.github.com/spec/v1\n", ".*Git LFS.*\n.*pull"),
    ],
)
def test_what_came_instead_of_the_file(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}, line 1: {says}"):
        malt.load(tmp_path / name)


def test_the_one_line_of_a_server_that_has_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("404: Not Found")
    with pytest.warns(RuntimeWarning, match=r"a\.csv has no rows\n.*'404: Not Found'.*\n.*header=True"):
        malt.load(tmp_path / "a.csv")
    assert malt.load(tmp_path / "a.csv", header=True).shape == (0, 1)


def test_a_name_that_several_columns_have(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,a\n1,2,3\n")
    assert malt.load(tmp_path / "a.csv").tolist() == [[1, 2, 3]]
    for options in ({"columns": ["a"]}, {"label": "a"}, {"label": 2}, {"frame": "pandas"}):
        if "frame" in options:
            pytest.importorskip("pandas", reason="pandas is not installed")
        with pytest.raises(ValueError, match=r"2 columns of .*a\.csv are called 'a'"):
            malt.load(tmp_path / "a.csv", **options)


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, number = tmp_path / "a.csv", files.File.forward
    path.write_text("1,2\n3,4")

    def grow(self: files.File, f: object, start: int) -> None:
        with path.open("a") as more:
            more.write("5\n")
        number(self, f, start)  # type: ignore[arg-type]

    monkeypatch.setattr(files.File, "forward", grow)
    with pytest.raises(ValueError, match=r"a\.csv has changed while it was read\nit had 7 bytes, and now has"):
        malt.load(path)
