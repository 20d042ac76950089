"""Files that cannot be what they are called: an error that names the file, the line and the cause, at once."""

from __future__ import annotations

import os
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
