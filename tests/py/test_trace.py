"""``malt run --trace``, ``malt trace``, and whether it pays: held against jobs whose times are known."""

from __future__ import annotations

import fcntl
import gzip
import io
import itertools
import json
import os
import random
import re
import struct
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from documented import fields
from launching import run, script

from malt._cli import main
from malt._cli.summary import table
from malt._cli.trace import compared, left_out, write
from malt._cli.verdict import PARTS, Ranks, divided, sentences, shares, spent, verdict
from malt._ranks import machine, seen, story
from malt._ranks.launch import Job
from malt._ranks.rank import Outcome, Rank
from malt._ranks.report import SPENT
from malt._ranks.story import Collector, Curve, Story

STEPS, SLEEP = 10, 0.2

SLOW = f"""
import malt
v = malt.Vector(100, name="w"{{options}})
malt.mark("epoch 3")
for step in range({STEPS}):
    if r == 1:
        time.sleep({SLEEP})
    v.array[:] += 1
    v.sync()
    malt.log(loss=1 / (1 + step), examples=32 * (1 + step))
malt.barrier()
"""


def traced(tmp_path: Path, text: str, *options: str, name: str = "out.json.gz") -> tuple[dict[str, Any], str]:
    path = tmp_path / name
    done = run("-q", *options, "--trace", str(path), script(tmp_path, text))
    assert done.process.returncode == 0, done.err
    return json.loads(gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()), done.err


def arrows(trace: dict[str, Any]) -> list[tuple[int, int, float]]:
    """Return from which rank to which the arrows lead, and how far in time."""
    ends: dict[int, dict[str, Any]] = defaultdict(dict)
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = event
    return [(one["s"]["tid"], one["f"]["tid"], one["f"]["ts"] - one["s"]["ts"]) for one in ends.values()]


def crossing(trace: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the slices that end in another one of their track: viewers leave them out."""
    found, open_until = [], defaultdict(list)
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        begin, around = round(event["ts"] * 1000), open_until[event["tid"]]  # in nanoseconds
        end = begin + round(event["dur"] * 1000)
        while around and around[-1] <= begin:
            around.pop()
        if around and around[-1] < end:
            found.append((begin, end))
        around.append(end)
    return found


@pytest.mark.parametrize("where", [("-n", "3"), ("-H", "localhost:2,127.0.0.1:1")])
def test_a_job_whose_times_are_known(tmp_path: Path, where: tuple[str, ...]) -> None:
    trace, err = traced(tmp_path, SLOW.format(options=""), *where)
    assert err == ""
    facts = trace["otherData"]["malt"]
    ranks = facts["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1, 2]
    assert {rank["cores"] for rank in ranks} == {machine.cores()}
    assert (facts["command"], facts["unit"]) == (str(tmp_path / "script.py"), "examples")
    assert 0 <= facts["off"] < 0.1
    for rank in ranks:
        parts = sum(rank[kind] for kind in ("compute", "starved", "wait", "exchange"))
        assert parts == pytest.approx(rank["seconds"])
        assert (rank["syncs"], rank["lost"]) == (STEPS, 0)
        assert rank["sent"].keys() == {"0", "1", "2"} - {str(rank["rank"])}
    assert ranks[1]["compute"] + ranks[1]["starved"] >= STEPS * SLEEP
    assert ranks[1]["wait"] < ranks[0]["wait"] <= facts["seconds"]
    for rank in ranks:  # on a busy machine they also wait for others
        assert sum(rank["waited"].values()) == pytest.approx(rank["wait"])
    assert min(ranks[r]["waited"]["1"] for r in (0, 2)) > 0.5 * STEPS * SLEEP
    assert facts.keys() == fields("malt run --trace", "a job")
    assert ranks[0].keys() == fields("malt run --trace", "a rank")
    # The last loss comes after the examples of all ranks but the slowest ones' last.
    assert facts["loss"][-1][1:] == [pytest.approx(3 * 32 * STEPS, abs=3 * 32), pytest.approx(1 / STEPS, abs=0.02)]
    assert sorted(mark[1:] for mark in facts["marks"]) == [[0, "epoch 3"], [1, "epoch 3"], [2, "epoch 3"]]
    assert "give rank 1 less work" in facts["verdict"][2]

    events = trace["traceEvents"]
    hosts = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(hosts.values()) == sorted(facts["hosts"])
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {
        "rank 0",
        "rank 1",
        "rank 2",
    }
    assert crossing(trace) == []
    # The ranks fold while they wait, and a wait may be divided at any moment.
    assert {event["dur"] for event in events if event.get("cat") == "fold"} == {0}
    slices = Counter((event["tid"], event["name"]) for event in events if event["ph"] == "X")
    assert all(slices[rank, "w.sync"] == STEPS for rank in range(3))
    waits = {name: n for (tid, name), n in slices.items() if tid == 0 and name.startswith("wait for")}
    assert sum(n for name, n in waits.items() if "1" in name) > STEPS / 2, waits  # on a busy machine also for rank 2
    assert Counter((a, b) for a, b, _ in arrows(trace)) == {(a, b): STEPS for a in range(3) for b in range(3) if a != b}
    assert min(later for *_, later in arrows(trace)) > -2e6 * facts["off"] - 1
    assert {"age at rank 0", "bytes from rank 0", "loss of rank 0"} <= {e["name"] for e in events if e["ph"] == "C"}


def test_arrows_of_async_lead_to_the_fold_of_their_update(tmp_path: Path) -> None:
    text = """
    import malt
    v = malt.Vector(100, consistency="async", graph="ring")
    for step in range(50):
        time.sleep(0.005 * (1 + r))
        v.array[:] += 1
        v.sync()
    """
    trace, _ = traced(tmp_path, text, "-n", "3", name="out.json")
    found = arrows(trace)
    folds = [event for event in trace["traceEvents"] if event.get("cat") == "fold"]
    assert len(found) == sum(len(fold["args"]["from"]) for fold in folds)
    assert {(a, b) for a, b, _ in found} == {(0, 1), (1, 2), (2, 0)}
    assert min(later for *_, later in found) >= 0


def test_a_killed_rank_and_what_it_had_done(tmp_path: Path) -> None:
    text = """
    import malt
    v = malt.Vector(100, name="w")
    for step in range(20):
        if r == 2 and step == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        v.array[:] += 1
        v.sync()
    """
    trace, _ = traced(tmp_path, text, "-n", "3", "--on-death", "continue")
    facts = trace["otherData"]["malt"]
    assert [rank["syncs"] for rank in facts["ranks"]] == [20, 20, 10]
    (end,) = facts["ends"]
    assert (end["rank"], end["fate"], end["replaced"]) == (2, "was killed by SIGKILL", False)
    assert 10 * 0.02 <= facts["ranks"][2]["compute"] <= end["lived"]
    assert sorted(rank for rank, _ in end["went_on"]) == [0, 1]
    assert sum(event["name"] == "without rank 2" for event in trace["traceEvents"]) == 2


def test_losses_that_grow_until_they_are_no_numbers(tmp_path: Path) -> None:
    text = """
    import malt
    malt.barrier()
    for number in 1.0, 1e308, 1e308, 10**400, float("nan"), 0.5:
        malt.log(loss=number)
        malt.log(loss=0.5, examples=number)
    """
    page, path = tmp_path / "out.html", tmp_path / "out.json"
    done = run("-q", "-n", "2", "--trace", str(path), "--report", str(page), script(tmp_path, text))
    assert (done.process.returncode, done.err) == (0, "")
    trace = json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert {loss for _, _, loss in trace["otherData"]["malt"]["loss"]} == {0.5, 1.0}
    losses = {event["args"]["loss"] for event in trace["traceEvents"] if event["name"] == "loss of rank 0"}
    assert losses == {0.5, 1.0, 1e308}
    text = page.read_text()
    assert "Loss over seconds" in text
    assert "NaN or infinity: 2 of rank 0, 2 of rank 1.<" in text


def test_events_that_were_overwritten_are_counted(tmp_path: Path) -> None:
    text = """
    import malt
    malt.barrier()
    for step in range(50_000):
        malt.mark("x")
    """
    trace, err = traced(tmp_path, text, "-n", "1", "--events", "10")
    lost = trace["otherData"]["malt"]["ranks"][0]["lost"]
    assert lost > 0
    assert f"{lost} events that were overwritten before they were read: a larger --events avoids that" in err
    assert trace["otherData"]["left out"].startswith(str(lost))


def test_ranks_that_end_while_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """While events of one rank are taken, the launcher hears that another has joined; one that has ended is named."""
    first, *later = (Outcome(number) for number in range(3))
    first.records = later[0].records = os.getpid()
    took: list[int] = []

    class Ring:
        def __init__(self, pid: int) -> None:
            if not pid:
                raise FileNotFoundError(pid)
            self.rank = self
            self.joined = 0.0

        def read(self) -> tuple[bytes, int]:
            return b"events", 0

    class Job:
        recording: Any = None

        def poll(self) -> None:
            while later:
                self.recording(later.pop())

    monkeypatch.setattr(seen, "Ring", Ring)
    job: Any = Job()
    collector = Collector(job, lambda number, *_: took.append(number))
    job.recording(first)
    collector.look()
    collector.look()
    assert took[:3] == [0, 0, 1]
    told = Story(keep=True)
    told.unseen = collector.unseen
    assert left_out(told) == "all events of rank 2, which ended before they could be read"


@pytest.mark.parametrize("step", [10**7, 4 * 10**8, 32 * 10**8])  # 10 in a window, or each in the same place of several
def test_a_long_job_is_sampled(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(story, "KEPT", 1000)
    told, count = Story(keep=True), 9900
    for first in range(0, count, 100):
        records = b"".join(
            seen.RECORD.pack(i, 1 | 6 << 8, i * step + step // 2, 1000, 0, *[0] * 16, 0x636E79732E77, *[0] * 10)
            for i in range(first + 1, first + 101)
        )
        told.take(0, 0.0, records, 0)
    assert told.tracks[0].called == pytest.approx(count * 1e-6)
    assert told.stride == 16
    assert 0.5 * count / 16 < len(told.events) <= 1000
    windows = Counter(int(event.begin / story.WINDOW) for event in told.events)
    if step == 10**7:  # kept whole
        assert {found for window, found in windows.items() if 0 < window < count // 10} == {10}


def happened(number: int, kind: str, begin: float, end: float, *ranks: int, text: str = "w.sync") -> bytes:
    """Return the record of an event, as a rank writes it."""
    others = [sum(1 << rank for rank in ranks), *[0] * 15]
    times = round(begin * 1e9), round((end - begin) * 1e9)
    words = struct.unpack("<11Q", text.encode().ljust(88, b"\0"))
    return seen.RECORD.pack(number, seen.KINDS.index(kind) | len(text) << 8, *times, 0, *others, *words)


def waits(told: Story) -> dict[int, Any]:
    """Return for whom rank 0 has waited, and how long."""
    told.settle()
    return {rank: pytest.approx(seconds) for rank, seconds in told.tracks[0].waited.items()}


TOGETHER = happened(1, "wait", 1000, 1010, 1, 2) + happened(2, "call", 1000, 1010)


def test_a_wait_for_several_is_for_those_in_no_call() -> None:
    told = Story(keep=True)
    told.clock = lambda rank: (100.0 * rank, 0.0)  # each rank has a clock of its own
    told.take(0, 0.0, TOGETHER, 0)
    assert not told.tracks[0].waited  # of the others nothing is known yet
    told.take(1, 0.0, happened(1, "call", 895, 899) + happened(2, "call", 902, 910), 0)
    told.take(2, 0.0, happened(1, "call", 795, 801) + happened(2, "call", 809.5, 810), 0)
    told.take(0, 0.0, b"", 0)
    # Rank 2 was still in a call for 1 s, both in none for 1 s, rank 1 in its next one after that, and both at the end.
    assert waits(told) == {1: 1 + 1 / 2 + 0.5 / 2, 2: 1 / 2 + 7.5 + 0.5 / 2}
    drawn = [(event.begin, event.ranks) for event in told.events if event.kind == "wait"]
    assert drawn == [(1000, [1]), (1001, [1, 2]), (1002, [2]), (1009.5, [1, 2])]


def test_a_rank_in_another_call_has_not_come() -> None:
    told = Story(keep=False)
    told.take(0, 0.0, TOGETHER, 0)
    told.take(1, 0.0, happened(1, "call", 1000, 1010), 0)
    told.take(2, 0.0, happened(1, "call", 1000, 1010, text="bias.sync"), 0)
    assert waits(told) == {2: 10}


def test_a_wait_whose_call_has_no_end_is_divided_evenly() -> None:
    told = Story(keep=False)
    told.take(0, 0.0, happened(1, "wait", 1000, 1010, 1, 2), 0)
    told.take(1, 0.0, happened(1, "call", 1000, 1010), 0)
    told.take(2, 0.0, happened(1, "call", 1000, 1010), 0)
    assert waits(told) == {1: 5, 2: 5}


@pytest.mark.parametrize(("lost", "shares"), [(0, {1: 0.5, 2: 9.5}), (7, {1: 5, 2: 5})])
def test_where_events_are_lost_a_wait_is_divided_evenly(lost: int, shares: dict[int, float]) -> None:
    told = Story(keep=False)
    told.take(0, 0.0, TOGETHER, 0)
    told.take(1, 0.0, happened(8, "call", 1001, 1010), lost)
    told.take(2, 0.0, b"", 0)  # it has died in its step
    assert waits(told) == shares


def test_so_is_a_wait_for_a_rank_of_which_nothing_is_known() -> None:
    told = Story(keep=False)
    told.take(0, 0.0, TOGETHER, 0)
    told.take(1, 0.0, happened(1, "call", 1001, 1010), 0)
    assert waits(told) == {1: 5, 2: 5}


def test_so_is_one_that_began_before_the_calls_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "CALLS", 10)
    for calls, seconds in (20, {1: 5.2 + 4.8 / 2, 2: 4.8 / 2}), (21, {1: 5, 2: 5}):
        told = Story(keep=False)
        begins = [1010 - 0.46 * i for i in range(calls, 0, -1)]
        told.take(1, 0.0, b"".join(happened(i, "call", begin, begin + 0.24) for i, begin in enumerate(begins, 1)), 0)
        told.take(2, 0.0, happened(1, "call", 1000, 1010), 0)
        told.take(0, 0.0, TOGETHER, 0)
        assert len(told.tracks[1].calls) <= 20
        assert waits(told) == seconds


@pytest.mark.parametrize("at", [13_000 * 10**9, 10**16])
def test_bars_that_touch_do_not_cross(at: int) -> None:
    """Clocks of hosts are told apart to half a nanosecond. After four months floats have no single ones."""
    draw, told, records = random.Random(3), Story(keep=True), []
    told.take(1, at / 1e9, b"", 0)
    told.clock = lambda rank: (0.0 if rank else 1.0000000005, 0.0)
    for number in range(1, 1001):
        took, late = draw.randint(1, 10**6), [1 << 1 + number % 2, *[0] * 15]
        records.append(seen.RECORD.pack(number, seen.KINDS.index("wait"), at, took, 0, *late, *[0] * 11))
        at += took
    told.take(0, at / 1e9, b"".join(records), 0)
    file = io.BytesIO()
    write(file, told, {"ranks": [{"rank": 0, "host": "a"}], "hosts": ["a"], "off": 0.0}, packed=False)
    trace = json.loads(file.getvalue())
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 1000
    assert crossing(trace) == []


def test_the_parts_of_waits_add_up() -> None:
    draw = random.Random(2)
    for _ in range(200):
        size = draw.randint(2, 8)
        wait = seen.Event(size, 1, "wait", 5.0, 10.0, list(range(size)), 0.0)
        times = {rank: sorted(draw.uniform(0, 20) for _ in range(2 * draw.randint(0, 3))) for rank in wait.ranks}
        calls = {rank: list(zip(at[::2], at[1::2], strict=True)) for rank, at in times.items()}
        found = list(story.parts(wait, calls))
        ends = [part.begin + part.seconds for part in found]
        assert [part.begin for part in found] == pytest.approx([5.0, *ends[:-1]])
        assert sum(part.seconds for part in found) == pytest.approx(10)
        for part in found:
            when = part.begin + part.seconds - 1e-9  # a part may hold shorter ones before that
            late = [rank for rank in wait.ranks if not any(begin <= when < end for begin, end in calls[rank])]
            assert part.ranks == (late or wait.ranks)


def test_threads_of_a_rank_have_tracks_of_their_own() -> None:
    """Two calls cross, and a third crosses both; the wait in the second goes with it."""
    told = Story(keep=True)
    calls = [(1.0, 3.0, "a.sync"), (2.0, 4.0, "b.sync"), (2.5, 5.0, "c.sync"), (6.0, 7.0, "a.sync")]
    records = [happened(i, "call", begin, end, text=text) for i, (begin, end, text) in enumerate(calls, 1)]
    told.take(0, 0.0, b"".join([*records, happened(5, "wait", 3.1, 3.9, 1)]), 0)
    file = io.BytesIO()
    write(file, told, {"ranks": [{"rank": 0, "host": "h"}], "hosts": ["h"], "off": 0.0}, packed=False)
    trace = json.loads(file.getvalue())
    drawn = {(event["name"], event["ts"]): event["tid"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert list(drawn.values()) == [0, 1024, 2048, 1024, 0]
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert names == {0: "rank 0", 1024: "rank 0, another thread", 2048: "rank 0, another thread"}
    assert crossing(trace) == []


def test_ever_new_names_take_no_more_memory() -> None:
    told = Story(keep=False)
    for number in range(50 * story.NAMES):
        name = f"v{number}"
        told.take(0, 0.0, happened(2 * number + 1, "log", number, number, text=name), 0)
        told.take(0, 0.0, happened(2 * number + 2, "call", number, number + 0.5, text=f"{name}.sync"), 0)
    assert len(told.tracks[0].logs) == story.NAMES
    assert len(told.tracks[0].calls) <= 2 * story.CALLS
    told.take(0, 0.0, happened(9, "log", 9, 9, text="loss"), 0)
    assert len(told.tracks[0].logs["loss"]) == 1  # it always has a curve
    left = write(io.BytesIO(), told, {"ranks": [{"rank": 0, "host": "h"}], "hosts": ["h"], "off": 0.0}, packed=False)
    assert left == f"{49 * story.NAMES} logged values, whose names came after the first {story.NAMES}"


def test_a_curve_keeps_every_so_many_points() -> None:
    curve: Curve[int] = Curve()
    for i in range(10 * story.POINTS):
        curve.add(i)
    assert story.POINTS <= len(curve) < 2 * story.POINTS
    assert len({b - a for a, b in itertools.pairwise(curve)}) == 1


def test_two_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ranks in ("1", "2"):
        traced(tmp_path, SLOW.format(options=""), "-n", ranks, name=f"{ranks}.json")
    assert main(["trace", str(tmp_path / "1.json"), str(tmp_path / "2.json")]) == 0
    out = capsys.readouterr().out
    assert f"A: {tmp_path}/script.py: 1 rank on 1 host\nB: {tmp_path}/script.py: 2 ranks on 1 host\n" in out
    rows = {row[0]: row[1:] for line in out.splitlines() if len(row := re.split(r" {2,}", line)) > 2}
    assert float(rows["waiting for others"][0]) == 0 < float(rows["waiting for others"][1])
    assert float(rows["loss 0.1, s"][1]) > STEPS * SLEEP - SLEEP
    assert rows["… examples"][0] == str(32 * STEPS)
    assert re.search(r"^To that loss B used [12]\.\d\d times the examples of A, at ", out, re.M)
    assert main(["trace", str(tmp_path / "2.json")]) == 0
    assert "The best single change is to give rank 1 less work" in capsys.readouterr().out


def test_what_an_example_was_worth() -> None:
    def run(ranks: int, pace: float, worth: float) -> dict[str, Any]:
        """Each rank logs losses that fall with the examples of all, as long as the noise that goes up and down."""
        points = [(n / pace, n, 1 / (1 + n * worth) + 0.05 * (-1) ** n) for n in range(1, 2001)]
        return {
            "command": "x", "hosts": ["a"], "ranks": [], "seconds": 9.0, "verdict": [], "ends": [], "loss": points,
            "unit": "examples",
        } | {"ranks": [{**dict.fromkeys(PARTS, 0.0), "sent": {}}] * ranks}  # fmt: skip

    (said,) = (line for line in compared(run(1, 10, 0.02), run(2, 16, 0.01)) if line.startswith("To that"))
    used, pace, fast = map(float, re.findall(r"\d+\.\d+", said))
    assert (used, pace, fast) == (pytest.approx(2, rel=0.05), pytest.approx(1.6), pytest.approx(0.8, rel=0.05))


def test_a_run_that_has_failed_is_compared_by_its_failure() -> None:
    run = {"command": "train.py", "hosts": ["a"], "seconds": 1.0, "ranks": [], "loss": [], "unit": "syncs"}
    failed = {**run, "verdict": ["Rank 1 failed.", "Two ranks …"], "ends": [{"rank": 1}]}
    good = {**run, "verdict": ["Two ranks …", "Change nothing."], "ends": []}
    assert list(compared(failed, good))[-2:] == ["A: Rank 1 failed.", "B: Change nothing."]
    assert list(compared(good, {**run, "verdict": [], "ends": []}))[-1] == "B: nothing is known of its ranks."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"{}", "is not a trace of this MALT"),
        (b'{"otherData": {"malt": {}}}', "is not a"),
        (b'{"otherData": {"malt": [1]}}', "is not a"),
        (b"\x1f\x8b12345", "is not a"),
        (b"", "is not a"),
    ],
)
def test_files_that_are_no_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, words: str
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    assert main(["trace", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_what_does_not_go_with_a_trace(tmp_path: Path) -> None:
    for options, words in (
        (["-n", "2", "--events", "0"], "--trace is made from events"),
        (["-n", "2", "--nodes", "2"], "--trace does not go with --nodes"),
        (["-n", "2", "--report", f"{tmp_path}/./out.json"], "--trace and --report name the same file"),
        (["-n", "2", "--trace", str(tmp_path / "no" / "file")], "cannot be written"),
    ):
        done = run("--trace", str(tmp_path / "out.json"), *options, "true")
        assert done.process.returncode == 2
        assert words in done.err


def test_what_a_run_has_written_is_overwritten_and_nothing_else(tmp_path: Path) -> None:
    text, files = script(tmp_path, "import malt; malt.barrier()"), [tmp_path / "out.html", tmp_path / "out.gz"]
    wanted = ["-q", "-n", "1", "--report", str(files[0]), "--trace", str(files[1])]
    files[0].touch()
    for _ in range(2):
        assert run(*wanted, text).process.returncode == 0
    own = gzip.compress(b"a,b\n1,2\n")
    for content in own, own[:20], b"<!doctype html><html><title>my page</title></html>", b"\x1f\x8b and more":
        for i, option in enumerate(("--report", "--trace")):
            kept = [file.read_bytes() for file in files]
            files[i].write_bytes(content)
            done = run(*wanted, text)
            assert done.process.returncode == 2
            assert f"{option} would overwrite {str(files[i])!r}" in done.err
            assert files[i].read_bytes() == content
            assert files[1 - i].read_bytes() == kept[1 - i]
            files[i].write_bytes(kept[i])


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """The disk of one is full: the other one is written."""
    page, text = tmp_path / "out.html", script(tmp_path, SLOW.format(options=""))
    for full in "/dev/full", str(tmp_path / "full.gz"):
        if full.endswith("gz"):
            os.symlink("/dev/full", full)
        done = run("-q", "-n", "2", "--trace", full, "--report", str(page), text)
        assert done.process.returncode == 1
        assert done.err == f"malt run: could not be written to the end: {full}: No space left on device\n"
        assert page.read_text().endswith("</html>\n")


def test_a_second_run_replaces_the_files(tmp_path: Path) -> None:
    page, path, text = tmp_path / "out.html", tmp_path / "out.json.gz", script(tmp_path, SLOW.format(options=""))
    for _ in range(2):
        assert run("-q", "-n", "2", "--trace", str(path), "--report", str(page), text).process.returncode == 0
    assert json.loads(gzip.decompress(path.read_bytes()))["otherData"]["malt"]["ranks"]
    assert page.read_text().count("<html") == 1


def test_a_file_that_another_job_writes(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = run("-n", "2", "--trace", str(path), script(tmp_path, "import malt; malt.init()"))
    assert done.process.returncode == 2
    assert f"'{path}' cannot be written\nanother job writes it" in done.err


# ------------------------------------------------------------------ the verdict


def split(
    rank: int, compute: float, wait: float = 0.0, status: int = 0, **other: Any
) -> tuple[Outcome, dict[str, Any]]:
    """Return what has become of a rank, and where its time went; it has told of some things itself."""
    one = Outcome(rank)
    one.status, one.summary = status, {key: other.pop(key) for key in ("meeting", "longest") if key in other}
    known = {"starved": 0.0, "crowded": 0.0, "exchange": 0.0, "waited": {}, "syncs": 0} | other
    seconds = compute + wait + known["starved"] + known["exchange"]
    return one, {"rank": rank, "seconds": seconds, "compute": compute, "wait": wait, **known}


def said(ranks: list[Outcome], *splits: tuple[Outcome, dict[str, Any]]) -> list[str]:
    """Return the verdict on ranks; of those beyond the ones of which the time is known nothing is."""
    return verdict(ranks, [split for _, split in splits] + [{"seconds": 0.0}] * (len(ranks) - len(splits)))


@pytest.mark.parametrize(("cores", "crowded"), [(1, 2.0), (2, 1.6), (3, 0.0), (None, 0.0)])
def test_waits_while_all_cores_work_are_for_a_core(cores: int | None, crowded: float) -> None:
    ranks = [Outcome(number) for number in range(3)]
    for one in ranks:
        one.status, one.cores = 0, cores
        one.summary = {**dict.fromkeys(SPENT, 0.0), "wall": 10.0, "busy": 6.0, "wait": 2.0, "starved": 2.5}
        one.summary |= {"waited": {"0": 2.0}, "longest": (0.0, "")}
    known = spent(ranks, None)
    assert [rank["crowded"] for rank in known] == pytest.approx([crowded] * 3)
    assert divided(known[0]) == pytest.approx(
        {"compute": 6.0, "starved": 2 + crowded, "wait": 2 - crowded, "exchange": 0.0}
    )
    assert shares(list(zip(ranks, known, strict=True)))["wait"] == pytest.approx((2 - crowded) / 10)


@pytest.mark.parametrize(("busy", "starved"), [(6.5, 2.0), (5.75, 2.25), (5.5, 2.5), (1.0, 2.5), (0.0, 2.5)])
def test_a_rank_lacks_its_core_in_its_steps_where_it_had_no_processor(busy: float, starved: float) -> None:
    rank = Outcome(0)
    rank.summary = {**dict.fromkeys(SPENT, 0.0), "wall": 10.0, "busy": busy, "wait": 2.0, "starved": 2.5}
    rank.summary |= {"waited": {}, "longest": (0.0, "")}
    known = spent([rank], None)[0]
    assert (known["starved"], known["compute"]) == (starved, 8.0 - starved)


def test_waits_that_are_the_exchange_get_shorter_with_rarer_syncs() -> None:
    ranks = [split(number, 1, 4, syncs=5000) for number in range(2)]
    assert sentences(ranks)[2].startswith("The best single change is to sync 4 times as seldom (every=): it would save")
    slow = [split(number, 1, 4, syncs=500) for number in range(2)]
    assert "ssp:2" in sentences(slow)[2]


def test_a_wait_that_times_out_is_for_the_rank_that_did_not_come(tmp_path: Path) -> None:
    text = """
        import numpy as np, malt
        v = malt.Vector(np.zeros(100))
        for step in range(4):
            v.array += 1
            if step == 3 and r == 2: signal.pause()
            v.sync(timeout=2 if step == 3 else None)
        """
    done = run("-q", "--summary", "-n", "4", script(tmp_path, text))
    assert done.process.returncode == 1, done.err
    rows = re.findall(r"^ +[013] +\d.* rank 2 (\d\.\d+)(.*)$", done.err, re.M)
    assert len(rows) == 3, done.err
    assert all(float(most) > 1 for most, _ in rows), done.err
    assert all(float(other) < 1 for _, others in rows for other in re.findall(r"rank \d (\d\.\d+)", others)), done.err


def test_steps_of_unlike_length_have_the_pace_of_the_quickest_rank() -> None:
    ranks = split(0, 2, 8, syncs=100), split(1, 10, syncs=100), split(2, 3, 7, syncs=100)
    first = sentences(ranks)[0]
    assert (
        "one rank alone would compute in 15.0 s, or in 6.0 s at the pace of rank 0: 1.5 or 0.6 times as fast, of"
        in first
    )
    for few in (split(0, 8, 2, syncs=100), split(1, 10, syncs=100)), (split(0, 2, 8, syncs=9), split(1, 10, syncs=9)):
        assert "at the pace of" not in sentences(few)[0]


def test_one_rank_is_told_where_the_rest_of_its_time_went() -> None:
    assert sentences([split(0, 2, starved=1.5, exchange=0.5)]) == [
        "One rank took 4.0 s, of which it computed 2.0 s (the rest: 38% without a free core, 12% exchange of updates)."
    ]


def test_two_ranks_that_are_as_slow_are_named_together() -> None:
    ranks = split(0, 10), split(1, 9.9, 0.1, waited={0: 0.1}), split(2, 4, 6, waited={0: 6.0})
    assert "give ranks 0 and 1 less work: it" in sentences(ranks)[2]


@pytest.mark.parametrize(("syncs", "says"), [(100, True), (300, False)])
def test_a_rank_that_is_far_behind_in_async(syncs: int, says: bool) -> None:
    ranks = split(0, 10, syncs=500), split(1, 10, syncs=syncs)
    for one, _ in ranks:
        one.made["v"] = {"consistency": "async"}
    words = "Rank 1 synced 10 times a second, and rank 0 50: its values are old."
    assert (words in sentences(ranks)[1]) == says
    ranks[1][0].made["v"] = {"consistency": "bsp"}
    assert words not in sentences(ranks)[1]


def test_a_process_that_came_too_late_did_not_die_nor_took_a_place() -> None:
    first, late, other = Outcome(1), Outcome(1), Outcome(0)
    first.status, first.died, first.lived = -9, 50.0, 3.25
    late.start, late.status, late.died, late.late = 1, 1, 52.0, True
    other.status = 0
    ended = "Rank 1 was killed by SIGKILL 3.2 s after the start; the others went on."
    assert verdict([first, late, other], [{"seconds": 0.0}] * 2) == [ended]
    job = SimpleNamespace(outcomes=[first, late, other])
    assert Job.deaths(job) == [first]  # type: ignore[arg-type]
    assert [row.split()[1:] for row in table(job.outcomes, 80, {}, [first])[1:3]] == [["died"], ["too", "late"]]


def test_a_job_that_the_user_ends() -> None:
    ranks = [Outcome(0), Outcome(1)]
    ranks[1].status, ranks[1].failed, ranks[1].asked = -15, 50.0, True
    assert said(ranks) == ["The job was ended from outside, by Ctrl-C or a signal."]


def test_verdict_on_a_slow_rank() -> None:
    ranks = split(0, 4, 6, waited={1: 6.0}), split(1, 10), split(2, 4, 6, waited={1: 5.0, 0: 1.0})
    assert sentences(ranks) == [
        "3 ranks took 10.0 s for steps that one rank alone would compute in 18.0 s: 1.8 times as fast, of at most 3, "
        "if they learn as much from each example (see malt explain trace).",
        "The other 40% of their time: 40% waiting for others (92% of that for rank 1).",
        "The best single change is to give rank 1 less work: it would save up to 4.0 s of 10.0 s.",
    ]


@pytest.mark.parametrize(
    ("ranks", "computed", "says"),
    [
        (20, 1.25, ": 2.5 times as fast, of at most 20, if"),
        (20, 0.505, ": about as fast (at most: 20 times), if"),
        (20, 0.45, ": 0.9 times as fast, of at most 20, if"),
        (256, 5, ": 128 times as fast, of at most 256, if"),
    ],
)
def test_verdict_says_how_fast(ranks: int, computed: float, says: str) -> None:
    assert says in sentences([split(rank, computed, 10 - computed) for rank in range(ranks)])[0]


def test_verdict_on_steps_that_are_slow_in_turn() -> None:
    saves = "it would save up to 4.0 s of 10.0 s."
    ahead = f'The best single change is to let ranks run ahead of slow steps, with consistency="ssp:2": {saves}'
    assert sentences([split(0, 6, 4), split(1, 6, 4)])[2] == ahead
    # It does not help in collective calls, nor without a core.
    none = "No single change would save more than 0.00 s of 10.0 s."
    further = ahead.replace("run ahead", "run further ahead").replace(", with", ", with a larger slack or")
    further = further.replace("ssp:2", "async")
    assert sentences([split(0, 6, 4, meeting=4.0), split(1, 6, 4)])[2] == none
    # They do already.
    for consistency, says in (("ssp:2", further), ("async", none), ("bsp", ahead), ("notify-ack:1", ahead)):
        ranks = split(0, 6, 4), split(1, 6, 4)
        for one, _ in ranks:
            one.made = {"w": {"consistency": consistency}}
        assert sentences(ranks)[2] == says
    lacking = split(0, 3, 4, starved=3.0), split(1, 3, 4, starved=3.0)
    assert "is to give each rank a core of its own: it would save up to 3.0 s of" in sentences(lacking)[2]


def test_verdict_on_exchange_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    rarer = sentences([split(0, 2, exchange=8.0), split(1, 2, exchange=8.0)])[2]
    assert "is to sync 4 times as seldom (every=): it would save up to 6.0 s of 10.0 s." in rarer
    found = split(0, 2, starved=2.0), split(1, 2, starved=2.0)
    assert "is to give each rank a core of its own: it would save up to 2.0 s of 4.0 s." in sentences(found)[2]
    process: Any = SimpleNamespace(pid=0)
    for cores, words in (1, " (2 ranks on 1 core)"), (2, ""):
        monkeypatch.setattr(machine, "cores", lambda cores=cores: cores)
        told = said([Rank(number, process) for number in range(2)], *found)
        assert told[1] == f"The other 50% of their time: 50% without a free core{words}."
    ranks = [Outcome(number) for number in range(9)]
    assert " core)" not in said(ranks, *found)[1]  # of where they ran nothing is known
    for one in ranks:
        one.host, one.cores = "abc"[one.number // 3], 2 + one.number // 3
    assert "(3 ranks on 2 cores of host a)" in said(ranks, *found)[1]
    ranks[5].host, ranks[5].cores = "a", 2
    assert "(4 ranks on 2 cores of host a)" in said(ranks, *found)[1]
    for one in ranks:
        one.cores = 2
    ranks[5].host = "b"
    assert "(3 ranks on 2 cores of each of 3 hosts)" in said(ranks, *found)[1]


def test_verdict_on_a_dead_rank_does_not_blame_those_that_went_on() -> None:
    assert sentences([split(0, 10), split(1, 10), split(2, 3, status=-9)])[1:] == [
        "The other 23% of their time: 23% ranks that ended before the others.",
        "No single change would save more than 0.00 s of 10.0 s.",
    ]


def test_verdict_on_a_wait_of_which_the_user_was_told() -> None:
    words = "waited for rank 1 (computing) in w.sync. Does one rank skip a sync, or is it only slow?"
    # From another host this comes as JSON.
    found: Ranks = [split(0, 10, 30, waited={1: 30.0}, longest=[20.0, words]), split(1, 40, longest=(0.0, ""))]
    assert sentences(found)[2:] == [f"For 20.0 s, rank 0 {words}"]
    found = [split(0, 100, 300, longest=[20.0, words]), split(1, 400)]
    assert [line.partition(" ")[0] for line in sentences(found)] == ["2", "The", "The", "For"]
    assert [line.partition(" ")[0] for line in sentences(found, ended=True)] == ["2", "The", "For"]
    # A job that has mostly waited has not computed the steps by which ranks are compared.
    found = [split(0, 1, 30, longest=(20.0, words)), split(1, 31)]
    assert sentences(found, ended=True) == [f"For 20.0 s, rank 0 {words}"]


def test_a_wait_for_ranks_to_join_is_not_told_as_the_longest(tmp_path: Path) -> None:
    text = """
    import malt, malt._lib.loading
    malt._lib.loading.LONG_WAIT = 0.2
    if r == 1:
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
    else:
        try:
            malt.init(timeout=0.3)
        except malt.TimeoutError as error:
            print(malt._lib.JOB.longest, error)
        open(sys.argv[1], "w").close()
    """
    done = run("-q", "-n", "2", script(tmp_path, text), str(tmp_path / "waited"))
    assert done.out.startswith("[0] (0.0, '') malt: malt.init timed out after 0.3 s"), done.err


def test_what_is_said_of_ranks_that_died() -> None:
    ranks = [Outcome(number) for number in range(4)]
    assert said(ranks) == []
    ranks[1].status, ranks[1].died, ranks[1].lived = -9, 50.0, 3.25
    assert said(ranks) == ["Rank 1 was killed by SIGKILL 3.2 s after the start; the others went on."]
    ranks[3].status, ranks[3].died = 139, 51.0
    ranks[0].status, ranks[0].failed, ranks[0].failure = 1, 52.0, {"type": "ValueError", "peer": None}
    assert said(ranks, split(0, 3)) == [
        "Ranks 1 and 3 died; the others went on.",
        "Rank 0 failed with ValueError, which ended the job.",
        "One rank took 3.0 s, of which it computed 3.0 s.",
    ]


def test_the_others_went_on_only_if_one_did() -> None:
    ranks = [Outcome(number) for number in range(2)]
    ranks[1].status, ranks[1].died, ranks[1].lived = -9, 50.0, 3.25
    ranks[0].status, ranks[0].failed = -9, 52.0
    ended = "Rank 0 was killed by SIGKILL, which ended the job."
    assert said(ranks)[:2] == ["Rank 1 was killed by SIGKILL 3.2 s after the start.", ended]
    ranks[0].failed, ranks[0].died = None, 52.0  # on this machine; there are others
    assert said(ranks) == ["Ranks 0 and 1 died."]


def test_a_job_that_a_death_has_ended_gets_no_advice_on_speed() -> None:
    ranks = [Outcome(number) for number in range(2)]
    ranks[1].status, ranks[1].failed = -9, 50.0
    assert said(ranks) == ["Rank 1 was killed by SIGKILL, which ended the job."]  # before they had joined
    ranks[0].summary = {"setup": 0.1}
    found = split(0, 6, 4), split(1, 6, 4)
    assert "ssp:2" in sentences(found)[-1]
    first, second, *rest = said(ranks, *found)
    assert first == "Rank 1 was killed by SIGKILL, which ended the job."
    assert second == "With --on-death continue the other ranks go on, and with replace a new process takes its place."
    assert rest == sentences(found)[:1]
    ranks[0].host = "elsewhere"
    assert said(ranks, *found)[1] == "With --on-death continue the other ranks go on."
    ranks[0].least = 2  # they go on, while there are two
    assert said(ranks, *found) == [first, *sentences(found)[:2]]


def test_with_deaths_the_verdict_has_three_sentences_too() -> None:
    ranks, found = [Outcome(number) for number in range(3)], (split(0, 6, 4), split(1, 6, 4))
    assert said(ranks, *found) == sentences(found)
    ranks[2].status, ranks[2].died, ranks[2].lived = -9, 50.0, 3.25
    death, *rest = said(ranks, *found)
    assert death == "Rank 2 was killed by SIGKILL 3.2 s after the start; the others went on."
    assert rest == [sentences(found)[0], sentences(found)[2]]


def test_verdict_on_one_rank_and_on_none() -> None:
    assert sentences([split(0, 3)]) == ["One rank took 3.0 s, of which it computed 3.0 s."]
    assert said([Outcome(0)]) == []


def test_the_parts_of_a_job_add_up() -> None:
    draw = random.Random(1)
    for _ in range(200):
        ranks = [
            split(r, draw.random(), draw.random(), starved=draw.random(), exchange=draw.random())
            for r in range(draw.randint(2, 6))
        ]
        assert sum(shares(ranks).values()) == pytest.approx(1)
        saves, seconds = map(float, re.findall(r"(\d+\.\d+) s", sentences(ranks)[2]))
        assert 0 <= saves < seconds
