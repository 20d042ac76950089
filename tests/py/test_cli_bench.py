"""``malt bench``: that it measures what it says; never how fast that is."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from pathlib import Path

import pytest
from launching import LONG, launched, wait_for_end

from malt._cli import bench, main, options, peers, wrap


def test_results(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    command = [sys.executable, "-m", "malt", "bench", "-n", "2", "--sizes", "4KiB", "--json", str(file)]
    with launched(command=command) as job:
        assert job.finish(2 * LONG) == 0, job.err
    assert job.err == ""
    for words in (
        "2 ranks on",
        "GB/s copied by one rank alone",
        "sparse: ",
        "rows of 1 MiB",
        "put-seen of 4 bytes",
        "   4 KiB  ",
        "network: ",
    ):
        assert words in job.out
    results = json.loads(file.read_text())
    assert [result["kind"] for result in results] == ["machine", "memory", "sparse", "latency", "size", "network"]
    times = [value for result in results[1:] for name, value in result.items() if name not in ("kind", "bytes", "wall")]
    assert all(0 < value < math.inf for value in times)
    assert set(results[-2]) == {"kind", "bytes", "copy", "scatter", "sync", "allreduce", "copied", "seen"}
    assert set(results[-1]) == {"kind", "seen", "update", "byte"}


def test_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """MALT beside gloo; what is not there and what fails is left out, and said."""
    pytest.importorskip("torch")
    monkeypatch.setattr(peers, "STARTS", 1)
    broken = peers.System("broken", lambda size, program: [([sys.executable, "-c", "exit(3)"], {})])
    absent = peers.System("absent", lambda size, program: [], "it is not installed")
    there = [system for system in peers.systems() if system.name != "mpi4py"]
    monkeypatch.setattr(peers, "systems", lambda: [*there, broken, absent])
    file = tmp_path / "peers.json"
    assert main(["bench", "--peers", "-n", "2", "--sizes", "4,64KiB", "--json", str(file)]) == 0
    said = capsys.readouterr().out
    assert "broken is left out: it ended with exit code 3\n" in said
    assert "absent is left out: it is not installed\n" in said
    results = json.loads(file.read_text())
    assert [(result["system"], result["bytes"]) for result in results] == [
        (name, size) for size in (4, 65536) for name in ("malt", "gloo")
    ]
    for result in results:
        assert 1e-7 < result["min"] <= result["median"] <= result["max"] < 1
        assert result["busbw"] == result["algbw"] == result["bytes"] / result["median"]  # of 2 ranks
        row = f"{wrap.named(result['bytes']):>26} {result['min'] * 1e6:11.1f}"
        assert row in said


def test_fabric(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """That updates go by RDMA is seen, or is an error."""
    monkeypatch.setenv("MALT_FABRIC", "")  # so that it is put back
    code = main(["bench", "--fabric", "tcp;ofi_rxm", "--sizes", "4KiB,1KiB,64KiB"])
    said = capfd.readouterr()
    if "no library" in said.err and os.environ.get("MALT_NEED") != "libfabric":
        pytest.skip("apt install libfabric1")
    lines = [line.strip() for line in said.out.splitlines()]
    assert (code, said.err) == (0, "")
    assert [line.split(":")[0] for line in lines[:3]] == ["4 KiB  TCP", "1 KiB  TCP", "64 KiB  TCP"]
    for line, size in (lines[4], "1 KiB"), (lines[5], "64 KiB"):
        assert line.startswith(f"{size}  tcp;ofi_rxm on "), said
        assert line.endswith(": works; its times say nothing about a device")
    assert lines[3].startswith("4 KiB  TCP: ")


def test_fabric_that_is_not_there(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALT_FABRIC", "")
    assert main(["bench", "--fabric", "off"]) == 1
    assert capfd.readouterr().err == "malt bench: RDMA cannot be used: off; see malt doctor\n"


def test_failing_rank_is_named(tmp_path: Path) -> None:
    with launched(command=[sys.executable, "-m", "malt", "bench", "-n", "3", "--sizes", "4KiB"]) as job:
        job.wait_for("ranks on")
        ranks = [pid for pid in _children(job.pid) if b"measure" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(ranks) == 3
        os.kill(ranks[1], signal.SIGKILL)
        assert job.finish() == 128 + signal.SIGKILL
        assert "rank 1 was killed by SIGKILL; see malt doctor" in job.err


def test_killed_bench_takes_its_ranks(tmp_path: Path) -> None:
    with launched(command=[sys.executable, "-m", "malt", "bench", "-n", "2"]) as job:
        job.wait_for("ranks on")
        ranks = _children(job.pid)
        job.signal(signal.SIGKILL)
        assert all(wait_for_end(pid) for pid in ranks)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4", [4]),
        ("7B", [4]),
        ("4KiB,1MiB", [4096, 1 << 20]),
        ("4k, 2M,1g", [4096, 2 << 20, 1 << 30]),
    ],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert bench._sizes(text) == sizes


@pytest.mark.parametrize("text", ["", "x", "4x", "-4", "3", "1MiB,", "1.5MiB"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"is not a size|is less than one number"):
        bench._sizes(text)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-n", "1"], "2 to 1024"),
        (["--sizes", "4x"], "'4x' is not a size"),
        (["--json", "/no/such/file"], "cannot be written"),
        (["--size", "4"], "Did you mean '--sizes'"),
        (["x"], "'x' was not expected"),
    ],
)
def test_mistakes_are_explained(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert main(["bench", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_what_needs_too_much_memory_is_skipped_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    report = bench.Report(2)
    report(0, 1, b'{"kind": "skipped", "bytes": 1073741824, "needs": 17179869184}\n')
    assert capsys.readouterr().out == "   1 GiB  skipped: would take about 16 GiB of memory\n"


def test_names_of_units() -> None:
    assert [wrap.named(n) for n in (4, 4096, 1 << 20, 3 << 30)] == ["4 B", "4 KiB", "1 MiB", "3 GiB"]
    assert [bench._micro(s) for s in (1e-6, 2.5e-3)] == ["1.0 us", "2.50 ms"]


def test_nearest_names_all_where_none_is_near() -> None:
    assert options.nearest("zzz", ["one", "two"]) == "it is one of one, two"
