"""``malt.load`` of tables: columns, labels, frames whose types agree, and Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loads import Loads, checked, mine

import malt

ORDERS = ("block", "stride", "shuffle")
TEXT = "n,city,price,kind\n1,Rome,2.5,0\n2,Oslo,3.5,1\n3,Bonn,4.5,0\n"


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    path = tmp_path / "x.csv"
    path.write_text(TEXT)
    return path


def test_columns_by_name_or_number_and_a_label(path: Path) -> None:
    x, y = malt.load(path, columns=["price", 0], label="kind")
    assert (x.tolist(), y.tolist()) == ([[1, 2.5], [2, 3.5], [3, 4.5]], [0, 1, 0])
    assert malt.load(path, columns=[-1, "n"], dtype=np.int64).tolist() == [[1, 0], [2, 1], [3, 0]]
    assert malt.load(path, columns=["n"], dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("frame", [None, "pandas", "polars"])
def test_columns_come_in_the_order_of_the_file(path: Path, tmp_path: Path, frame: str | None) -> None:
    if frame is not None:
        pytest.importorskip(frame)
    whole = pytest.importorskip("pandas").read_csv(path)
    whole.to_parquet(tmp_path / "x.parquet")
    for file in (path, tmp_path / "x.parquet"):
        got = malt.load(file, columns=["kind", "price", 0], frame=frame)
        assert np.asarray(got).tolist() == whole[["n", "price", "kind"]].to_numpy().tolist()
        assert frame is None or list(got.columns) == ["n", "price", "kind"]
        got, label = malt.load(file, columns=["kind", 0], label="price", frame=frame)
        assert np.asarray(got).tolist() == whole[["n", "kind"]].to_numpy().tolist()
        assert list(label) == list(whole["price"])


@pytest.mark.parametrize("columns", [None, ["a"]])
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_frames_of_rows_with_too_many_values(tmp_path: Path, frame: str, columns: list[str] | None) -> None:
    pytest.importorskip(frame)
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2,3\n4,5,6,7\n")
    with pytest.raises(ValueError, match="line 3\n4 values, expected 3 columns"):
        malt.load(path, frame=frame, columns=columns)
    path.write_text("a,b,c\n1,2,3\n4,5\n")  # what is missing is missing in the frame
    assert np.asarray(malt.load(path, frame=frame, columns=columns))[:, 0].tolist() == [1, 4]


def test_headers_are_seen_or_told(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("1\t2\n3\t4\n")
    assert malt.load(path).shape == (2, 2)
    assert malt.load(path, header=True).tolist() == [[3, 4]]
    assert malt.load(path, header=True, columns=["2"]).tolist() == [[4]]
    path.write_text("1;'2\n';3\n")
    assert malt.load(path, delimiter=";", quotechar="'", format="csv").tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("first", ["1,,3", "0x10,2,3", "5.1,3.5,setosa", ",0,1"])
def test_a_first_row_of_numbers_and_words_is_not_guessed(tmp_path: Path, first: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{first}\n4,5,6\n")
    with pytest.raises(ValueError, match=r"line 1: '.*' is a number, '.*' is not\n.*\n.*header=True or header=False"):
        malt.load(path)
    assert malt.load(path, header=True).tolist() == [[4, 5, 6]]
    with pytest.raises(ValueError, match=r"line 1\ncolumn"):
        malt.load(path, header=False)


@pytest.mark.parametrize("frame", ["pandas", "polars"])
@pytest.mark.parametrize("order", ORDERS)
def test_frames(loads: Loads, path: Path, frame: str, order: str) -> None:
    package = pytest.importorskip(frame)
    for size in (1, 2, 4):
        for rank, (x, y) in enumerate(checked(loads(size, path, frame=frame, label="n", order=order))):
            assert isinstance(x, package.DataFrame)
            assert isinstance(y, package.Series)
            assert list(x.columns) == ["city", "price", "kind"]
            assert list(x["city"]) == [["Rome", "Oslo", "Bonn"][i] for i in mine(3, rank, size, order)]
            assert [str(t) for t in x.dtypes][1:] == (
                ["float64", "int64"] if frame == "pandas" else ["Float64", "Int64"]
            )


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_types_of_columns_are_the_same_on_all_ranks(loads: Loads, tmp_path: Path, frame: str) -> None:
    pytest.importorskip(frame)
    path = tmp_path / "x.csv"
    # A rank by itself would take its part of a for whole numbers, of b too, with the zeros lost.
    path.write_text("a,b,c\n1,007,1\n2,008,2\n3,009,3\n0.5,x,4\n")
    whole = malt.load(path, frame=frame)
    for size in (2, 4, 5):
        parts = checked(loads(size, path, frame=frame))
        for part in parts:
            if len(part):
                assert list(part.dtypes) == list(whole.dtypes)
        assert [x for part in parts for x in part["b"]] == ["007", "008", "009", "x"]
        assert [x for part in parts for x in part["a"]] == [1, 2, 3, 0.5]


@pytest.fixture(name="table")
def _table() -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table(
        {
            "n": range(23),
            "half": [i / 2 for i in range(23)],
            "even": [i % 2 == 0 for i in range(23)],
            "word": ["w"] * 23,
        }
    )


@pytest.mark.parametrize("order", ORDERS)
def test_parquet(loads: Loads, tmp_path: Path, table: Any, order: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table.slice(0, 10), tmp_path / "0.parquet", row_group_size=3)
    parquet.write_table(table.slice(10, 0), tmp_path / "1.parquet")
    parquet.write_table(table.slice(10), tmp_path / "2.parquet", row_group_size=5)
    for size in range(1, 9):
        parts = checked(loads(size, tmp_path / "*.parquet", order=order, columns=["half", "even"], label="n"))
        for rank, (x, y) in enumerate(parts):
            assert y.tolist() == mine(23, rank, size, order).tolist()
            assert x.tolist() == [[i / 2, i % 2 == 0] for i in y]
    for frame in ("pandas", "polars"):
        package = pytest.importorskip(frame)
        for rank, part in enumerate(checked(loads(3, tmp_path / "*.parquet", order=order, frame=frame))):
            assert isinstance(part, package.DataFrame)
            assert list(part.columns) == ["n", "half", "even", "word"]
            assert part["n"].to_list() == mine(23, rank, 3, order).tolist()


def test_a_rank_reads_its_row_groups_only(
    loads: Loads, tmp_path: Path, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=5)
    read: list[int] = []
    original = parquet.ParquetFile.read_row_group
    monkeypatch.setattr(
        parquet.ParquetFile, "read_row_group", lambda self, i, **more: read.append(i) or original(self, i, **more)
    )
    checked(loads(2, tmp_path / "x.parquet", columns=["n"]))
    assert sorted(read) == [0, 1, 2, 2, 3, 4]  # 23 rows: 11 and 12


MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"columns": ["prize"]}, ValueError, "'prize'\nexpected one of n, city, price, kind\nDid you mean 'price'"),
    ({"columns": [4]}, ValueError, "column 4 of .*\nit has 4 columns, 0 to 3"),
    ({"columns": "n"}, TypeError, r"expected a list, such as columns=\['n'\]"),
    ({"label": 1.5}, TypeError, "column 1.5 of .*\nexpected a name, or a number"),
    ({}, ValueError, "line 2\ncolumn 'city': 'Rome' is not float64\nChoose columns= of numbers, or load a frame"),
    ({"frame": "panda"}, ValueError, "frame='panda'\n.*\nDid you mean 'pandas'"),
    ({"delimiter": ";;"}, ValueError, "delimiter=';;'\nexpected one ASCII character"),
    ({"n_features": 3}, ValueError, "n_features=3 is for svmlight\n.*x.csv is read as csv"),
    ({"format": "parket"}, ValueError, "Did you mean 'parquet'"),
    ({"order": "blok"}, ValueError, "Did you mean 'block'"),
    ({"seed": 1}, ValueError, "only order='shuffle' has a seed"),
    ({"order": "shuffle", "seed": -1}, ValueError, "seed=-1"),
    ({"format": "npz"}, ValueError, "x.csv is not an npz file\nit begins with b'n,city"),
    ({"format": "npy"}, ValueError, "x.csv is not a npy file\nit begins with b'n,city'"),
    ({"format": "idx"}, ValueError, "x.csv is not an IDX file\nit begins with b'n,ci'"),
    ({"format": "parquet"}, ValueError, r"x\.csv\nit is not a whole Parquet file"),
]


@pytest.mark.parametrize(("options", "error", "says"), MISTAKES)
def test_mistakes_are_explained(path: Path, options: dict[str, Any], error: type[Exception], says: str) -> None:
    if options.get("format") == "parquet":
        pytest.importorskip("pyarrow")
    with pytest.raises(error, match=says):
        malt.load(path, **options)


@pytest.mark.parametrize("nothing", ["", "\n \n"])
def test_files_without_rows_may_be_among_those_read_as_one(loads: Loads, tmp_path: Path, nothing: str) -> None:
    for i, text in enumerate((nothing, "a,b\n1,2\n", nothing, "a,b\n3,4\n")):
        (tmp_path / f"{i}.csv").write_text(text)
    for size in (1, 2, 5):
        parts = checked(loads(size, tmp_path / "*.csv"))
        assert np.concatenate(parts).tolist() == [[1, 2], [3, 4]]
    for i in (1, 3):
        (tmp_path / f"{i}.csv").write_text(nothing)
    with pytest.raises(ValueError, match=r"0.csv is empty\nexpected rows of ','-separated values"):
        malt.load(tmp_path / "*.csv")


def test_files_with_other_columns_are_not_one(tmp_path: Path, table: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "0.csv").write_text("a,b\n1,2\n")
    (tmp_path / "1.csv").write_text("a,c\n1,2\n")
    with pytest.raises(ValueError, match=r"the columns of .*1.csv are \['a', 'c'\]\nthose of .*0.csv are \['a', 'b'\]"):
        malt.load(tmp_path / "*.csv")
    parquet.write_table(table, tmp_path / "0.parquet")
    parquet.write_table(table.drop_columns("n"), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"the columns of .*1.parquet differ from those of .*0.parquet"):
        malt.load(tmp_path / "*.parquet")


def test_what_parquet_has_that_an_array_has_not(tmp_path: Path, table: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"column 'word' of .* has type string, which is not numeric\nChoose columns="):
        malt.load(tmp_path / "x.parquet")
    parquet.write_table(pyarrow.table({"a": [1, None]}), tmp_path / "y.parquet")
    np.testing.assert_array_equal(malt.load(tmp_path / "y.parquet"), [[1], [np.nan]])
    with pytest.raises(ValueError, match=r"column 'a' of .* misses 1 values\nint64 has no value for them"):
        malt.load(tmp_path / "y.parquet", dtype=np.int64)
