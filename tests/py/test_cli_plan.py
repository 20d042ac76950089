"""``malt plan``: its model, and what it says. Against real hosts it is held in tests/net."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import pytest
from documented import fields

from malt import _lib
from malt._cli import bench, forecast, main, plan
from malt._cli.forecast import Figures, Job, paced

BENCH: list[dict[str, Any]] = [
    {"kind": "machine", "ranks": 4},
    {"kind": "size", "bytes": 1000, "copy": 1e-6, "sync": 2e-6, "copied": 4e-6},
    {"kind": "size", "bytes": 1_000_000, "copy": 1e-3, "sync": 2e-3, "copied": 4e-3},
    {"kind": "network", "seen": 20e-6, "update": 10e-6, "byte": 0.5e-9},
]

FIGURES = Figures(BENCH)

MB = 1 << 20

MODEL = ["--bytes", "4MiB", "--step", "1ms"]


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> str:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(BENCH))
    return str(path)


def ways(job: Job) -> dict[tuple[str, str], forecast.Forecast]:
    return {(one.graph, one.consistency): one for one in forecast.forecasts(job, FIGURES)}


def test_times_lie_between_those_measured() -> None:
    assert FIGURES.sync(1000) == 2e-6
    assert FIGURES.sync(10) == pytest.approx(2e-6)
    assert FIGURES.sync(500_500) == pytest.approx((2e-6 + 2e-3) / 2)
    assert FIGURES.sync(4_000_000) == pytest.approx(8e-3)


def test_on_one_machine_the_default_costs_what_was_measured() -> None:
    found = ways(Job(MB, 0.1, [4]))
    assert found["all", "bsp"].seconds == pytest.approx(0.1 + 2e-3 * MB / 1e6)
    assert found["all", "bsp"].memory == MB
    assert all(one.sent == 0 and not one.links for one in found.values())
    assert next(iter(found)) == ("all", "bsp")


def test_bytes_on_links() -> None:
    """Hosts average 2(H-1)/H of a large array, and otherwise send a copy for each edge between them."""
    found = ways(Job(MB, 100.0, [2, 2, 2], 1e9))
    pairs = {(a, b) for a in range(3) for b in range(3) if a != b}
    average, copies = found["all", "bsp"], found["all", "notify-ack"]
    assert average.links == dict.fromkeys(pairs, pytest.approx(2 * MB / 3))
    assert average.sent == pytest.approx(4 * MB / 3)
    assert copies.links == dict.fromkeys(pairs, pytest.approx(4 * MB))
    assert found["ring", "ssp:2"].links == {(0, 1): MB, (1, 2): MB, (2, 0): MB}
    small = ways(Job(1000, 100.0, [2, 2, 2], 1e9))["all", "bsp"]
    assert small.sent == pytest.approx(8 * 1000)  # too small to be exchanged in shares


def test_a_cable_bounds_what_cannot_be_left_out() -> None:
    carry = 8 * 3 * MB * forecast.FRAME / 1e8
    found = ways(Job(MB, 1e-3, [1] * 4, 1e8))
    assert found["all", "notify-ack"].seconds == pytest.approx(1e-3 + carry, rel=0.01)
    assert carry / 3 < found["all", "ssp:2"].seconds <= 1.01 * carry
    loose = found["all", "async"]
    assert loose.seconds < 5e-3
    assert loose.sent == pytest.approx(3 * MB * loose.seconds / carry)
    assert loose.age == pytest.approx(carry / loose.seconds)
    assert next(iter(found))[1] != "async"  # that is fast since it leaves out nearly all


@pytest.mark.parametrize(
    ("step", "carry", "early", "slack", "want"),
    [
        (2.0, 1.0, 0.0, 0.0, 3.0),
        (2.0, 1.0, 0.0, math.inf, 2.0),
        (1.0, 9.0, 0.0, math.inf, 1.0),
        (2.0, 1.0, 0.0, 2.0, 2.0),
        (1e-3, 9.0, 0.0, 2.0, 6.0),  # two transmissions for three clocks
        (1e-3, 9.0, 90.0, 2.0, 9.0),  # so much waits in the kernel that each clock is sent
    ],
)
def test_pace(step: float, carry: float, early: float, slack: float, want: float) -> None:
    assert paced(step, 0.0, carry, early, 0.0, 0.0, slack) == pytest.approx(want, rel=0.01)


def test_the_strictest_of_the_fast_ways_comes_first() -> None:
    for step in 1e-4, 1e-2, 1.0, 100.0:
        found = list(ways(Job(MB, step, [2] * 4, 1e9)).values())
        fresh = [one for one in found if one.age <= forecast.OLD]
        assert found[0].seconds <= forecast.WORTH * min(one.seconds for one in fresh)
    assert (found[0].graph, found[0].consistency) == ("all", "bsp")


def test_table(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.utime(file, (time.time() - 3 * 86400 - 9,) * 2)
    assert main(["plan", "--bytes", "4MiB", "--step", "120ms", "--hosts", "8x4", "--bench", file]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "4 MiB, steps of 120 ms, hosts 8x4, cables of 1000 Mbit/s, delay 100 us"
    assert lines[1].endswith("bench.json, 3 days old; assumed: --rate and --delay")
    assert lines[3].split() == ["graph", "consistency", "step", "speed-up", "host", "sends", "memory"]
    assert len(lines[4 : lines.index("", 4)]) == len(forecast.WAYS)
    assert "every=" in out
    assert "Take " + ", ".join(lines[4].split()[:2]) in out


def test_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    network = ["--hosts", "2,1", "--rate", "1Gbit", "--delay", "1ms", "--cores", "1"]
    assert main(["plan", "--bytes", "64KiB", "--step", "1ms", *network, "--bench", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["job"] == {"bytes": 65536, "step": 1e-3, "hosts": [2, 1], "rate": 1e9, "delay": 1e-3, "cores": 1}
    assert told["job"].keys() == fields("malt plan --json", "the job")
    assert told["ways"][0].keys() == fields("malt plan --json", "a way")
    assert [link[:2] for link in told["ways"][0]["links"]] == [[0, 1], [1, 0]]


def test_without_figures_the_machine_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(ranks: int, sizes: list[int], report: bench.Report) -> int:
        assert (ranks, sizes) == (2, [4096, MB])
        report.results += BENCH
        return code

    monkeypatch.setattr(plan, "measure", measure)
    monkeypatch.setattr(plan.machine, "cores", lambda: 2)
    for code in 0, 1:
        assert main(["plan", "--bytes", "1MiB", "--step", "1ms", "--hosts", "2x4"]) == 2 * code
        out, err = capsys.readouterr()
        assert "malt plan: measures this machine" in err
    assert "this machine could not be measured" in err
    assert not out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--step", "1ms", "--hosts", "2x2"], "--bytes is missing"),
        (["--bytes", "4MiB", "--step", "1ms"], "--hosts is missing"),
        (["--bytes", "4MiB", "--hosts", "2", "--step", "1"], "'1' is not a time"),
        ([*MODEL, "--hosts", "2x"], "'' is not a number of ranks"),
        ([*MODEL, "--hosts", "1x1"], "'1x1' is 1 rank\n"),
        ([*MODEL, "--hosts", "9999"], "'9999' is not a number of ranks"),
        ([*MODEL, "--hosts", "2", "--cores", "x"], "'x' is not a number of cores"),
        ([*MODEL, "--hosts", "2", "--bench", "/no/such"], "--bench '/no/such' cannot be read"),
        ([*MODEL, "--hosts", "2", "--rat", "1"], "Did you mean '--rate'"),
    ],
)
def test_mistakes_are_explained(capsys: pytest.CaptureFixture[str], more: list[str], says: str) -> None:
    assert main(["plan", *more]) == 2
    assert says in capsys.readouterr().err


def test_figures_of_an_older_version_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old.json"
    nothing = [{**one, "bytes": 0} for one in BENCH]
    for results in BENCH[:-1], {"x": 1}, [], nothing:
        old.write_text(json.dumps(results))
        assert main(["plan", "--bytes", "4MiB", "--step", "1ms", "--hosts", "2x1", "--bench", str(old)]) == 2
        assert "lacks figures" in capsys.readouterr().err


@pytest.mark.parametrize("numbers", ["0 2 2", "9 2 x", "9 2 99999", "99999999999999 1 1"])
def test_the_library_refuses_such_hosts(numbers: str) -> None:
    with pytest.raises(ValueError, match="expected a number from 1 to"):
        _lib.inspect(f"shares {numbers}")
