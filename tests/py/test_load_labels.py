"""``malt.load`` warns when blocks of a sorted file leave a rank with one class."""

from __future__ import annotations

from pathlib import Path

import pytest
from loads import Loads, checked

SORTED = [0] * 60 + [1] * 60


def write(path: Path, labels: list[int]) -> Path:
    if path.suffix == ".csv":
        path.write_text("x,y\n" + "".join(f"{i},{y}\n" for i, y in enumerate(labels)))
    else:
        path.write_text("".join(f"{y} 1:{i}\n" for i, y in enumerate(labels)))
    return path


@pytest.mark.parametrize(
    ("name", "frame"), [("x.svm", None), ("x.csv", None), ("x.csv", "pandas"), ("x.csv", "polars")]
)
def test_a_sorted_file_cut_in_blocks(loads: Loads, tmp_path: Path, name: str, frame: str | None) -> None:
    if name == "x.svm":
        pytest.importorskip("scipy")
    if frame:
        pytest.importorskip(frame)
    options = {"label": "y", "frame": frame} if name == "x.csv" else {}
    path = write(tmp_path / name, SORTED)
    with pytest.warns(RuntimeWarning, match=r"(?s)all 40 rows of rank 0 of .* have the label 0\n.*'stride'") as told:
        checked(loads(3, path, **options))
    assert len(told) == 1  # of all ranks
    for order in ("stride", "shuffle"):
        checked(loads(3, path, order=order, **options))  # a warning would fail the test


def test_where_there_is_nothing_to_warn_of(loads: Loads, tmp_path: Path) -> None:
    for labels in ([0] * 120, [0, 1] * 60, [0] * 20 + [1] * 20, []):
        checked(loads(2, write(tmp_path / "x.csv", labels), label="y"))
    checked(loads(1, write(tmp_path / "x.csv", SORTED), label="y"))
    (tmp_path / "x.csv").write_text("x,y\n" + "1,a\n" * 50 + "1,b\n" * 50)
    pytest.importorskip("pandas")
    checked(loads(2, tmp_path / "x.csv", label="y", frame="pandas"))
