"""What `make bench` leaves out: contenders that cannot be installed or started."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from bench import environments, team
from bench.rows import Row
from bench.systems import System
from bench.turns import Plan, measure


def test_a_peer_that_cannot_be_installed_is_left_out_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bare(folder: Path, with_pip: bool) -> None:
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/python").symlink_to(shutil.which("false") or "/bin/false")

    monkeypatch.setattr(environments, "BUILD", tmp_path)
    monkeypatch.setattr(environments, "PACKAGES", {"mpich": ("mpich", "mpi4py")})
    monkeypatch.setattr(environments, "_missing", {})
    monkeypatch.setattr(environments.venv, "create", bare)

    def start(ranks: int) -> list[tuple[list[str], dict[str, str]]]:
        return [([str(environments.environment("mpich") / "bin/mpiexec")], {})] * ranks

    wanted = [Row("average", "sync", ranks, 1024) for ranks in (2, 4)]
    found = measure(wanted, [System("mpich", start)], Plan(2, 1), 4, lambda _: None)
    assert [result.row for result in found] == wanted
    for result in found:
        assert result.samples == {}
        assert result.left_out["mpich"].startswith("mpich, mpi4py cannot be installed: ")
    said = capsys.readouterr().err
    assert said.count("bench: mpich is left out: mpich, mpi4py cannot be installed: ") == 1
    assert "Traceback" not in said
    assert not (tmp_path / "mpich" / ".ready").exists()


def test_of_a_command_that_fails_the_last_words_are_told() -> None:
    code = "import sys; print('Looking', file=sys.stderr); sys.exit('ERROR: No matching distribution\\n\\n')"
    with pytest.raises(environments.MissingError, match=r"^a cannot be installed: ERROR: No matching distribution$"):
        environments.run([sys.executable, "-c", code], "a cannot be installed")


def test_a_program_that_is_not_there_is_left_out() -> None:
    row = Row("average", "sync", 2, 1024)
    peer = System("peer", lambda n: [(["/no/such/program"], {})] * n)
    (result,) = measure([row], [peer], Plan(1, 1), 4, lambda _: None)
    assert "No such file" in result.left_out["peer"]


def test_ranks_that_do_not_answer_are_ended_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their waits would take the cores of whoever is measured next."""
    monkeypatch.setattr(team, "ANSWER", 0.5)
    monkeypatch.setattr(team, "END", 0.1)
    rank = """
import threading
from bench.ranks.serve import serve

class Hangs:
    rank = 0
    barrier = drop = lambda self: None
    prepare = lambda self, op, size: lambda calls: threading.Event().wait()

serve(Hangs())
"""
    with team.Team(System("peer", lambda n: [([sys.executable, "-c", rank], {})] * n), 1, 0) as ranks:
        ranks.prepare("peer", "sync", 64, {})
        with pytest.raises(team.TeamError, match="no answer"):
            ranks.turn("peer", 1)
        assert all(process.poll() is not None for process in ranks._processes)
        with pytest.raises(team.TeamError, match="no answer"):
            ranks.turn("peer", 1)


def test_only_the_last_rank_is_late() -> None:
    rank = """
import os
from bench.ranks.serve import serve

class Late:
    rank = int(os.environ["RANK"])
    barrier = drop = lambda self: None
    prepare = lambda self, op, size, late: lambda calls: late

serve(Late())
"""
    three = System("peer", lambda n: [([sys.executable, "-c", rank], {"RANK": str(r)}) for r in range(n)])
    with team.Team(three, 3, 0) as ranks:
        ranks.prepare("peer", "skew", 64, {"late": 0.5})
        answers = ranks._order(do="round", part="peer", calls=1, warm=0)
    assert sorted(answer["seconds"] for answer in answers) == [0, 0, 0.5]
