"""Numbers in texts: whichever way they are read, the bits are those of ``float``."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import malt


def random_decimal(chance: random.Random) -> str:
    whole, places = chance.randrange(1, 9), chance.randrange(7)
    word = chance.choice(["", "-", "+"]) + "".join(chance.choices("0123456789", k=whole))
    return word + "." + "".join(chance.choices("0123456789", k=places)) if places else word


@pytest.mark.parametrize("dtype", [None, np.float32, np.int64, np.int16])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [False, True])
def test_csv_is_read_as_numpy_does(tmp_path: Path, dtype: Any, end: str, quoted: bool) -> None:
    chance = random.Random(1)
    words = [[random_decimal(chance) for _ in range(5)] for _ in range(50)]
    if dtype is not None and np.dtype(dtype).kind == "i":
        words = [[str(chance.randrange(-30000, 30000)) for _ in range(5)] for _ in range(50)]
    (tmp_path / "x.csv").write_text(end.join(",".join(row) for row in words), newline="")
    expected = np.loadtxt(tmp_path / "x.csv", dtype or float, delimiter=",")
    if quoted:
        words[7][2] = f'"{words[7][2]}"'
        (tmp_path / "x.csv").write_text(end.join(",".join(row) for row in words), newline="")
    x = malt.load(tmp_path / "x.csv", dtype=dtype)
    assert (x.dtype, x.tobytes()) == (expected.dtype, expected.tobytes())
    np.testing.assert_array_equal(malt.load(tmp_path / "x.csv", dtype=dtype, columns=[3, 0]), expected[:, [0, 3]])


def test_rows_of_other_lengths_are_not_evened_out(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,2,3\n4,5\n6,7,8,9\n")  # three times three numbers
    with pytest.raises(ValueError, match="line 2\n2 values, expected 3 columns"):
        malt.load(tmp_path / "x.csv")
    for row in ("4,5", "4,5,6,7"):
        (tmp_path / "x.csv").write_text(f"1,2,3\n{row}\n")
        with pytest.raises(ValueError, match=f"line 2\n{row.count(',') + 1} values?, expected 3 columns"):
            malt.load(tmp_path / "x.csv", columns=[0, 1])


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="numpy 1 lets some of these pass")
@pytest.mark.parametrize(("dtype", "word"), [(np.int64, "2.5"), (np.int8, "300"), (np.uint8, "-1")])
def test_what_does_not_fit_the_type_is_an_error(tmp_path: Path, dtype: Any, word: str) -> None:
    (tmp_path / "x.csv").write_text(f"1,{word}\n")
    with pytest.raises(ValueError, match=rf"x.csv, line 1\ncolumn '1': '{word}' is not {np.dtype(dtype)}"):
        malt.load(tmp_path / "x.csv", dtype=dtype)


def test_every_kind_of_number(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    words = ["1", "-1", "+1", "1.", ".5", "1e-3", "-2.5E+2", "nan", "inf", "0.1234567890123456789", "1e400", "5e-324"]
    for some in ([w] for w in words), [words]:
        for group in some:
            expected = np.array([float(w) for w in group])
            (tmp_path / "x.svm").write_text("".join(f"{w} 1:{w}\n" for w in group))
            x, y = malt.load(tmp_path / "x.svm")
            np.testing.assert_array_equal(y, expected)
            np.testing.assert_array_equal(x.toarray()[:, 0], expected)
            (tmp_path / "x.csv").write_text("".join(f"{w},1\n" for w in group))
            np.testing.assert_array_equal(malt.load(tmp_path / "x.csv", header=False)[:, 0], expected)


@pytest.mark.parametrize("zero_based", [True, False, "auto"])
def test_svmlight_is_read_as_scikit_learn_does(tmp_path: Path, zero_based: bool | str) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    chance = np.random.RandomState(3)
    for digits in (17, 5):
        lines = []
        for i in range(200):
            indices = np.flatnonzero(chance.rand(30) < 0.2) + 1
            values = chance.randn(30) * 10.0 ** chance.randint(-3, 3, 30)
            pairs = " ".join(f"{k}:{v:.{digits}f}" for k, v in zip(indices, values.tolist(), strict=False))
            lines.append(f"{i % 3 - 1} {pairs}".rstrip())
        (tmp_path / "x.svm").write_text("\n".join(lines))
        x, y = malt.load(tmp_path / "x.svm", zero_based=zero_based)
        expected, labels = datasets.load_svmlight_file(str(tmp_path / "x.svm"), zero_based=zero_based)
        assert x.shape == expected.shape
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(x, name), getattr(expected, name))
        np.testing.assert_array_equal(y, labels)
