"""``malt.load`` of texts: where rows begin and end, and what is wrong with which line."""

from __future__ import annotations

import csv
import gzip
import io
import random
from pathlib import Path

import pytest
from loads import Loads, checked, mine

import malt
from malt._data.load.rows import Rows

ORDERS = ("block", "stride", "shuffle")


def random_lines(seed: int) -> bytes:
    chance = random.Random(seed)
    ends = [b"\n", b"\r\n"] if seed % 3 == 0 else [b"\n"]
    lines = [b"x" * chance.choice([0, 0, 1, 3, 20]) + chance.choice(ends) for _ in range(chance.randrange(30))]
    text = b"".join(lines)
    return text.rstrip(b"\r\n") if seed % 2 else text


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.usefixtures("tiny_blocks")
def test_lines_are_those_of_python(loads: Loads, tmp_path: Path, seed: int) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(random_lines(seed))
    with path.open(newline="") as f:
        expected = [line.rstrip("\n").removesuffix("\r") for line in f.read().replace("\r\n", "\n").splitlines()]
    for order in ORDERS:
        for size in (1, 2, 5):
            for rank, part in enumerate(checked(loads(size, path, order=order))):
                assert part == [expected[i] for i in mine(len(expected), rank, size, order)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("tiny_blocks")
def test_newlines_between_quotes_end_no_row(loads: Loads, tmp_path: Path, seed: int) -> None:
    pandas = pytest.importorskip("pandas")
    chance = random.Random(seed)
    values = ["a", 'say "no"', "two\nlines", "\n", "", ",", "long " * 5, '"']
    rows = [[str(i), chance.choice(values), chance.choice(values)] for i in range(chance.randrange(1, 20))]
    out = io.StringIO()
    out.write("n,b,c\n" if seed % 2 else '"n","b","c"\n')
    csv.writer(out, lineterminator=["\n", "\r\n"][seed % 3 == 0]).writerows(rows)
    path = tmp_path / "x.csv"
    path.write_text(out.getvalue() if seed % 4 else out.getvalue().rstrip("\r\n"), newline="")
    whole = pandas.read_csv(path, keep_default_na=False, dtype=str)
    assert len(whole) == len(rows)
    for order in ORDERS:
        for size in (1, 2, 3, 7):
            parts = checked(loads(size, path, order=order, frame="pandas"))
            for rank, part in enumerate(parts):
                assert part["n"].tolist() == mine(len(rows), rank, size, order).tolist()
                for column in "bc":
                    assert [x if isinstance(x, str) else "" for x in part[column]] == [
                        whole[column][i] for i in part["n"]
                    ]


@pytest.mark.usefixtures("tiny_blocks")
def test_comments_and_empty_lines_are_no_rows_of_svmlight(loads: Loads, tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    path = tmp_path / "x.svm"
    path.write_bytes(b"# head\n\n0 1:1 # why\n  \n#\n 1 2:1\n\r\n2 3:1\r\n3\t1:1 qid:7 2:1 \n4\n\n# end")
    for order in ORDERS:
        for size in (1, 2, 3, 5):
            parts = checked(loads(size, path, order=order))
            for rank, (x, y) in enumerate(parts):
                assert y.tolist() == mine(5, rank, size, order).tolist()
                assert x.shape == (len(y), 3)
                assert x.getnnz(axis=1).tolist() == [[1, 1, 1, 2, 0][int(label)] for label in y]


def test_a_byte_order_mark_is_no_text(loads: Loads, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    assert checked(loads(2, tmp_path / "x.txt")) == [["one"], ["two"]]
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert malt.load(tmp_path / "x.csv", columns=["a"]).tolist() == [[1.0]]


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("ein\nÄpfel\nzwei\n", "latin-1")
    assert malt.load(path, encoding="latin-1") == ["ein", "Äpfel", "zwei"]
    with pytest.raises(ValueError, match=r"x.txt, line 2\nb'\\xc4' is not utf-8\nPass encoding=, perhaps 'latin-1'"):
        malt.load(path)
    for name, says in (("utf-16", "newlines of one byte, which it does not have"), ("latin-one", "no such encoding")):
        with pytest.raises(ValueError, match=says):
            malt.load(path, encoding=name)


SVM = "1 1:1\n\n# a comment\n"
MALFORMED = {
    "label": ("x.svm", SVM + "one 1:1\n", "line 4\n'one'\nexpected a label, a number"),
    "labels": ("x.svm", SVM + "1,2 1:1\n", r"line 4\n'1,2'\nexpected a label, a number \(one per row, not several\)"),
    "pair": ("x.svm", SVM + "1 3\n2 4:1 5:6\n", "line 4\n'3'\nexpected index:value, such as 7:0.5"),
    "two": ("x.svm", SVM + "1 1:2:3 4\n", "line 4\n'1:2:3'\nexpected index:value"),
    "value": ("x.svm", SVM + "1 1:2 3:x\n", "line 4\n'3:x'\nexpected index:value"),
    "no value": ("x.svm", SVM + "1 1:\n5 6:7\n", "line 4\n'1:'\nexpected index:value"),
    "blank": ("x.svm", SVM + "1 1: 5\n", "line 4\n'1:'\nexpected index:value"),
    "negative": ("x.svm", SVM + "1 -1:5\n", "line 4\n'-1:5'\nexpected index:value"),
    "number": ("x.csv", "a,b\n1,2\n\n3,x\n", "line 4\ncolumn 'b': 'x' is not float64\nChoose columns="),
    "missing": ("x.csv", "a,b\n1,2\n3,\n", "(?s)line 3\ncolumn 'b': '' is not float64.*frame='pandas'"),
    "few": ("x.csv", "a,b\n1,2\n3\n", r"line 3\n1 value, expected 2 columns \(a, b\)$"),
    "many": ("x.csv", '1,2\n"3",4\n5,6,7\n', "line 3\n3 values, expected 2 columns"),
    "semicolons": ("x.csv", "a;b\n1;2\n", "line 2\ncolumn 'a;b': '1;2' is not float64\nPass delimiter=';'.$"),
    "commas": ("x.csv", "a;b\n1,5;2\n", r"line 2\n2 values, expected 1 column \(a;b\)\nPass delimiter=';'.$"),
    "tabs": ("x.csv", "a\tb\n1\t2\n", r"line 2\ncolumn .*\nPass delimiter='\\t'.$"),
    "inside": ("x.csv", 'a,b\n"1","2"\n"3","\n4"\n5,x', "line 5\ncolumn 'b': 'x'"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_line_is_named_with_its_number(loads: Loads, tmp_path: Path, case: str, packed: bool) -> None:
    name, text, says = MALFORMED[case]
    if name == "x.svm":
        pytest.importorskip("scipy")
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    for size in (1, 2, 3):
        for order in ORDERS:
            results = loads(size, path, order=order)
            wrong = [e for e in results if isinstance(e, ValueError) and not isinstance(e, malt.MismatchError)]
            assert len(wrong) == 1
            with pytest.raises(ValueError, match=says):
                raise wrong[0]
            for e in results:  # the others hear of it
                if e is not wrong[0]:
                    with pytest.raises(malt.MismatchError, match=r"load failed on rank . *: .*line"):
                        raise e


def test_a_row_that_does_not_end_is_another_format(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from malt._data.load import rows

    monkeypatch.setattr(rows, "LONGEST", 1 << 20)
    (tmp_path / "x.csv").write_bytes(b'a,b\n1,"2\n' + b"3,4\n" * 600_000)
    with pytest.raises(ValueError, match=r'a row of more than 1 MiB, or a " without its other'):
        malt.load(tmp_path / "x.csv")


@pytest.mark.parametrize("quote", [b"", b'"'])
@pytest.mark.parametrize("blanks", [False, True])
def test_rows_are_found_alike_whichever_way_is_quickest(quote: bytes, blanks: bool) -> None:
    # What is_plain lets pass must be what the slower way finds.
    chance = random.Random(1)
    rows = Rows(quote, blanks, b"" if quote else b"#")
    for _ in range(2000):
        block = bytes(chance.choices(b'a#" \n\n', k=chance.randrange(12)))
        slow = [block[a:b] for a, b in rows.spans(block)]
        assert rows.lines(block) == slow
        assert rows.count(block) == len(slow)
