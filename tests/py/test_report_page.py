"""``malt run --report``: a page that stands alone, with the figures that were measured."""

from __future__ import annotations

import re
import struct
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from launching import run, script

from malt._cli import report
from malt._cli.facts import Facts
from malt._ranks import seen
from malt._ranks.seen import NO_AGE

STEPS, SLEEP = 10, 0.2


class Page(HTMLParser):
    """The text of a page, its tags, and that all of them are closed."""

    EMPTY = frozenset({"meta", "rect", "circle", "path", "polyline", "col"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def table(self, title: str, text: str) -> list[list[str]]:
        """Return the cells of the first table below a heading."""
        found = re.search(f"<h2>{title}.*?<table[^>]*>(.*?)</table>", text)
        assert found is not None
        return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in re.findall("<tr>(.*?)</tr>", found[1])]


def page(tmp_path: Path, text: str, *options: str) -> tuple[Page, str]:
    path = tmp_path / "out.html"
    done = run("-q", *options, "--report", str(path), script(tmp_path, text))
    assert done.process.returncode == 0, done.err
    text = path.read_text()
    return Page(text), text


SLOW = f"""
import malt
v = malt.Vector(1000, name="w")
for step in range({STEPS}):
    if r == 1:
        time.sleep({SLEEP})
    v.array[:] += 1
    v.sync()
    malt.log(loss=1 / (1 + step))
    if step == 5:
        malt.mark("<epoch 2>")
"""


@pytest.mark.parametrize("where", [("-n", "4"), ("-H", "localhost:1,127.0.0.1:1")])
def test_a_job_whose_times_are_known(tmp_path: Path, where: tuple[str, ...]) -> None:
    found, text = page(tmp_path, SLOW, *where)
    words = " ".join(found.words)
    assert "The best single change is to give rank 1 less work" in words
    waits = found.table("Waits of each", text)
    assert 0.5 * STEPS * SLEEP < float(waits[1][2]) < 10 * STEPS * SLEEP
    assert waits[1][1] == ""
    for row, waited in zip(waits[1:], re.findall(r"title='waiting for others: ([\d.]+) s'", text), strict=True):
        assert sum(float(cell or 0) for cell in row[1:]) == pytest.approx(float(waited), abs=0.01 * len(row))
    assert "<th>w</th><td>1000 x float64</td><td>8 KB</td><td>all</td><td>bsp</td><td>mean</td>" in text
    assert waits[0][1:] == [str(rank) for rank in range(len(waits) - 1)]
    computing = [float(seconds) for seconds in re.findall(r"title='computing: ([\d.]+) s'", text)]
    starved = [float(seconds) for seconds in re.findall(r"title='without a free core: ([\d.]+) s'", text)]
    assert len(computing) == len(waits) - 1
    assert computing[1] + starved[1] >= STEPS * SLEEP - 0.01
    assert "Loss over seconds" in text
    assert "syncs of all ranks" in words
    assert "&lt;epoch 2&gt;" in text
    assert "MALT_EVENTS" in words
    assert "MALT_TOKEN" not in words


def test_it_needs_nothing_else(tmp_path: Path) -> None:
    found, text = page(tmp_path, SLOW, "-n", "2")
    assert not {tag for tag, _ in found.tags} & {"script", "link", "img", "iframe", "object", "a"}
    assert not [value for _, attributes in found.tags for value in attributes.values() if value and "//" in value]
    assert "url(" not in text.replace("url(#tip)", "")
    assert len(text) < 50_000


def test_deaths_and_repairs(tmp_path: Path) -> None:
    text = """
    import malt
    v = malt.Vector(100)
    for step in range(20):
        if r == 2 and step == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        v.array[:] += 1
        v.sync()
        malt.log(loss=1 / (1 + step))
    """
    found, text = page(tmp_path, text, "-n", "3", "--on-death", "continue")
    said = r"Rank 2 was killed by SIGKILL \d+\.\d s after the start; the others went on\. 3 ranks took"
    assert re.search(said, " ".join(found.words))
    assert "<title>rank 2 was killed by SIGKILL</title>" in text  # in the curve
    (line,) = re.findall("<li>(.*?)</li>", text)
    assert re.fullmatch(
        r"rank 2 was killed by SIGKILL \d+\.\d\d s after the start: (rank [01] went on \d+\.\d{3} s later(, |)){2}",
        line,
    )


def test_a_rank_that_was_replaced_twice(tmp_path: Path) -> None:
    text = """
    import malt
    v = malt.Vector(100)
    start = int(os.environ.get("MALT_RESTART", 0))
    while v.array[0] == 0:
        if r == 1 and start < 2 and v.clock >= 20 * (1 + start):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        v.array[1:] += 1
        v.array[0] = r == 1 and start == 2
        v.sync()
    """
    found, text = page(tmp_path, text, "-n", "3", "--on-death", "replace")
    assert "Rank 1 died; the others went on, and a new process took the place of rank 1. 3 ranks took" in " ".join(
        found.words
    )
    ends = re.findall("<li>(.*?)</li>", text)
    # A rank does not go on without one that is back before it has noticed.
    went_on = r"(: (rank [02] went on \d+\.\d{3} s later(, |)){1,2})?"
    how = rf"rank 1 was killed by SIGKILL \d+\.\d\d s after the start{went_on}; a new process took its place"
    assert [bool(re.fullmatch(how, end)) for end in ends] == [True, True], ends
    assert "3 ranks on 1 host" in text
    assert text.count("<b>rank ") == 3


def test_events_that_were_lost_are_told_beside_what_they_count() -> None:
    text = report.page(facts(2, verdict=["Fine."]), "9 events that were overwritten")
    assert "Fine.</p><p class=soft>Bytes, waits, ages and losses are without 9 events that were overwritten.<" in text
    assert "and where their events are lost." in text
    assert "are without" not in report.page(facts(2))


def test_ranks_in_different_calls(tmp_path: Path) -> None:
    text = """
    import malt, malt._lib.loading
    malt._lib.loading.LONG_WAIT = 0.2
    a, b = malt.Vector(10, name="a"), malt.Vector(10, name="b")
    if r == 0:
        a.sync(timeout=2)
    b.sync(timeout=2)
    """
    path = tmp_path / "out.html"
    done = run("-q", "-n", "2", "--summary", "--report", str(path), script(tmp_path, text))
    for said in (done.err.partition("does it pay?")[2], unescape(path.read_text())):
        assert re.search(r"Rank [01] failed with \w+Error, which ended the job\. ", said), said
        assert re.search(
            r"For \S+ s, rank (0|1) waited for rank (1|0) \(.* vector .[ab]\W.* in [ab]\.sync\. Each", said
        ), said


def test_a_program_without_malt(tmp_path: Path) -> None:
    found, _ = page(tmp_path, "", "-n", "2")
    assert "The ranks have reported nothing: did they use MALT?" in " ".join(found.words)


def rank(number: int, size: int) -> Facts:
    return {
        "rank": number, "host": "h", "cores": 2, "seconds": 10.0, "compute": 6.0, "starved": 0.0,
        "wait": 3.0, "crowded": 0.0, "exchange": 1.0, "waited": {(number + 1) % size: 3.0},
        "sent": {(number + 1) % size: 10**9},
        "ages": dict.fromkeys(range(-100, 100), 5) | {NO_AGE: 3}, "syncs": 9, "lost": 0, "not_finite": 0,
    }  # fmt: skip


def facts(size: int, **other: Any) -> Facts:
    known: Any = {
        "command": "train.py '<x>'", "started": "", "machine": "", "settings": {}, "hosts": ["h"], "seconds": 10.0,
        "off": 0.0, "verdict": [], "ranks": [rank(number, size) for number in range(size)], "loss": [], "unit": "syncs",
        "marks": [], "ends": [], "vectors": {}, "setup": 0.0,
    }  # fmt: skip
    return {**known, **other}


@pytest.mark.parametrize("size", [1, 2, 16, 17, 64, 500])
def test_pages_of_any_number_of_ranks(size: int) -> None:
    text = report.page(facts(size))
    found = Page(text)
    assert "train.py '<x>'" in " ".join(found.words)
    shown = min(size, report.SHOWN)
    assert text.count("<b>rank ") == shown
    assert len(found.table("Bytes", text)) == shown + 1
    assert ("Bytes on the graph" in text) == (1 < size <= report.LABELLED)
    assert (f"{size - shown} ranks that did less are left out below" in text) == (size > shown)
    assert text.count("<div class=row>") <= shown + report.BARS + 1
    assert "<b>-100 to -88</b>" in text
    assert "<b>beyond ±127</b>" in text


def test_ages_that_are_not_told() -> None:
    for ages, value in (([3, NO_AGE], 3), ([-5, NO_AGE], -5), ([NO_AGE], NO_AGE), ([], 0)):
        text = report.page(facts(1, ranks=[rank(0, 1) | {"ages": dict.fromkeys(ages, 2)}]))
        assert text.count("<b>beyond ±127</b>") == (NO_AGE in ages)
        assert "-128" not in text
        told = int.from_bytes(struct.pack(f"{len(ages)}b", *ages), "little")
        record = seen.RECORD.pack(0, seen.KINDS.index("fold") | len(ages) << 8, *[0] * 19, told, *[0] * 10)
        assert [event.value for event in seen.decoded(0, record)] == [value]


@pytest.mark.parametrize(
    "losses",
    [
        [(0.0, 1.0, 5.0), (1.0, 2.0, 5.0)],
        [(0.0, 0.0, 1e-9), (0.0, 0.0, 1e9)],
        [(float(i), i, -i) for i in range(1000)],
        [(0.0, 1.0, 9.064291333306912), (1.0, 2.0, 9.064291333306914)],  # floats that are neighbours
        [(0.0, 1.0, 0.0), (1.0, 2.0, 5e-324)],
        [(0.0, 1.0, -1e299), (1.0, 2.0, 1e299)],
    ],
)
def test_curves_of_any_values(losses: list[tuple[float, float, float]]) -> None:
    text = report.page(facts(2, loss=losses))
    Page(text)
    points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", " ".join(re.findall("points='(.*?)'", text)))
    assert len(points) == 2 * max(2, len(losses) - 1)  # the mean of as many as there are ranks
    assert all(59.9 <= float(x) <= 580.1 and 14.9 <= float(y) <= 200.1 for x, y in points)
