"""The bar of a long load: late, on rank 0, where somebody looks, and gone at the end."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from loads import Loads, checked

from malt._data.load.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(wanted: bool | None, rank: int, stream: io.StringIO, seconds: float) -> str:
    now = 0.0
    bar = Progress("malt.load x.csv", wanted, rank, stream, lambda: now)
    bar.begin("reading", 4_000_000)
    for _ in range(4):
        now += seconds / 4
        bar.add(1_000_000)
    bar.end()
    return stream.getvalue()


@pytest.fixture(params=["tqdm", "line"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with tqdm and without."""
    if request.param == "tqdm":
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    return str(request.param)


def test_it_appears_after_two_seconds(kind: str) -> None:
    assert shown(None, 0, Terminal(), 1.9) == ""
    text = shown(None, 0, Terminal(), 4)
    first = next(line for line in text.split("\r") if line.strip())
    assert first.startswith("malt.load x.csv: reading")
    assert ("50%" if kind == "line" else "25%") in first
    assert ("2 of 4 MB" if kind == "line" else "1.00M/4.00M") in first
    blank, rest = text.split("\r")[-2:]
    assert blank.strip() == rest == ""
    assert len(blank) >= max(len(line) for line in text.split("\r"))


def test_it_appears_where_somebody_looks(kind: str) -> None:
    assert shown(None, 0, io.StringIO(), 9) == ""
    assert shown(True, 0, io.StringIO(), 0.4) != ""
    assert shown(None, 1, Terminal(), 9) == shown(True, 1, Terminal(), 9) == shown(False, 0, Terminal(), 9) == ""


def test_notebooks_are_places_where_somebody_looks() -> None:
    iostream = pytest.importorskip("ipykernel.iostream")
    from malt._data.load import progress

    class Cell(io.StringIO):
        __module__ = iostream.__name__

    assert progress._is_watched(Cell())


def test_bytes_are_counted_as_they_are_read(loads: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages: dict[str, list[int]] = {}

    class Counting(Progress):
        def begin(self, what: str, total: int) -> None:
            self.stage = stages.setdefault(what, [0, 0])
            self.stage[1] += total
            super().begin(what, total)

        def add(self, count: int) -> None:
            self.stage[0] += count

    monkeypatch.setattr("malt._data.load.Progress", Counting)
    (tmp_path / "x.txt").write_bytes(b"a line\n" * 1000)
    checked(loads(1, tmp_path / "x.txt"))
    assert stages == {"reading": [7000, 7000]}
    stages.clear()
    checked(loads(4, tmp_path / "x.txt"))
    assert stages["counting rows"][0] == stages["counting rows"][1] == 7000
    assert 7000 <= stages["reading"][0] <= stages["reading"][1] < 8000
