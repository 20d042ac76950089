"""``malt run --nodes``: one on each machine, without ssh."""

from __future__ import annotations

import os
import random
import re
import select
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from launching import LONG, launched, run, script

from malt._cli import main

SECRET = {"MALT_TOKEN": "a-secret-of-its-own"}


def test_each_starts_its_part(tmp_path: Path) -> None:
    names = ("RANK", "SIZE", "STORE", "TOKEN")
    path = script(tmp_path, f"print(*(os.environ.get('MALT_' + name) for name in {names}))")
    there = ["--store", "node0:29500", "-q"]
    for counts, node, expected in [
        (["-n", "2", "--nodes", "2"], "0", [0, 1]),
        (["-n", "2", "--nodes", "2"], "1", [2, 3]),
        (["-n", "1,3"], "1", [1, 2, 3]),
    ]:
        done = run(*counts, "--node-rank", node, *there, path, env=SECRET)
        assert sorted(done.out.splitlines()) == [
            f"[{rank}] {rank} 4 node0:29500 {SECRET['MALT_TOKEN']}" for rank in expected
        ]


def test_the_secret_may_lie_in_a_file(tmp_path: Path) -> None:
    path = script(tmp_path, "print(os.environ['MALT_TOKEN'], open('/proc/%d/cmdline' % os.getppid()).read())")
    file = tmp_path / "token"
    file.write_text("from-a-file-of-mine\n")
    node = ["-n", "1", "--nodes", "1", "--node-rank", "0", "--store", "h:1", "--token-file", str(file)]
    out = run(*node, path, env=SECRET).out
    assert out.startswith("[0] from-a-file-of-mine ")
    assert out.count("from-a-file-of-mine") == 1


def test_failures_and_logs_have_the_numbers_of_the_job(tmp_path: Path) -> None:
    path = script(tmp_path, "print(r)\nif r == 3: raise ValueError('why')\ntime.sleep(100)")
    node = ["-n", "2", "--nodes", "2", "--node-rank", "1", "--store", "h:1", "--log-dir", str(tmp_path / "logs")]
    with launched(*node, "--summary", path, env=SECRET) as job:
        assert job.finish() == 1
    assert "rank 3 ended with exit code 1; the other rank was stopped" in job.err
    assert sorted(os.listdir(tmp_path / "logs")) == ["rank-2.log", "rank-3.log"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-n", "2", "--node-rank", "0"], ["--node-rank goes with --nodes"]),
        (["-n", "2", "--store", "h:1"], ["--store goes with --nodes"]),
        (["-n", "2", "--nodes", "0"], ["'0' is not a number of machines"]),
        (
            ["-n", "2", "--nodes", "2"],
            ["the number of this machine, of 2, is missing or wrong", "--node-rank 0 to --node-rank 1"],
        ),
        (["-n", "2", "--nodes", "2", "--node-rank", "2"], ["the number of this machine, of 2, is missing or wrong"]),
        (["-n", "2,1,1", "--nodes", "2", "--node-rank", "0"], ["-n 2,1,1 is for 3 machines"]),
        (["-n", "2,0", "--node-rank", "0", "--store", "h:1"], ["a machine with 0 ranks only votes"]),
        (["-n", "0", "--nodes", "2", "--node-rank", "0", "--store", "h:1"], ["'0' is not a number of ranks"]),
        (["-n", "2", "--nodes", "2", "--node-rank", "0"], ["the place where all ranks meet", "--store node0:29500"]),
        (["-n", "2", "--nodes", "2", "--node-rank", "0", "--store", "h"], ["'h' is not a place to meet"]),
        (["-n", "2", "--nodes", "2", "--node-rank", "0", "--store", "fd00::1:5"], ["[fd00::1]:29500"]),
        (["-n", "2", "--nodes", "2", "--node-rank", "0", "--store", "h:1"], ["`malt token`", "--token-file FILE"]),
        (
            ["-n", "2", "--nodes", "2", "--node-rank", "0", "--store", "h:1", "--token-file", "/nowhere"],
            ["--token-file '/nowhere' cannot be read [Errno 2] No such file"],
        ),
        (
            ["-n", "2", "--nodes", "2", "--node-rank", "0", "--store", "h:1", "--token-file", os.devnull],
            ["holds no secret", "`malt token`"],
        ),
    ],
)
def test_a_wrong_command_line_says_what_to_do(
    arguments: Sequence[str], said: Sequence[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALT_TOKEN", raising=False)
    assert main(["run", *arguments, "--", "true"]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert err.startswith("malt run: ")
    assert all(part in err for part in said), err


def test_a_token_that_could_be_guessed_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("fifteen-letters\n")
    nodes = ["-n", "1", "--nodes", "2", "--node-rank", "0", "--store", "h:1"]
    monkeypatch.setenv("MALT_TOKEN", "fifteen-letters")
    for arguments in (nodes, [*nodes, "--token-file", str(file)], ["-H", "localhost:1"]):
        assert main(["run", *arguments, "--", "true"]) == 2
        err = " ".join(capsys.readouterr().err.split())
        assert "has fewer than 16 characters it could be guessed Make one with `malt token`" in err
        assert "fifteen" not in err


@pytest.mark.parametrize(
    ("machines", "said", "alone"),
    [
        (
            ["-n 1 --nodes 2 --node-rank 0", "-n 1 --nodes 3 --node-rank 1"],
            ["one of 3", "malt run -n and --nodes)"],
            False,
        ),
        (
            ["-n 1,1 --node-rank 0", "-n 1 --nodes 2 --node-rank 0"],
            ["in use", "needs another number (", "--node-rank)"],
            True,
        ),
        (
            ["-n 2,2 --node-rank 0", "-n 1,3 --node-rank 1"],
            ["along with ranks 0 to 1", "along with ranks 1 to 3", "the same -n", "--node-rank"],
            False,
        ),
        (
            ["-n 1,1 --node-rank 0", "-n 1,1 --node-rank 1 --token-file TOKEN"],
            ["not let in", "is wrong", "malt run --token-file)", "MALT_TOKEN"],
            True,
        ),
        (
            ["-n 1,1 --node-rank 0", "-n 1,1 --node-rank 1 --encrypt"],
            [
                "rank 1 (at 127.0.0.1) encrypts, and rank 0 (",
                "this rank does, and the other does not",
                "malt run --encrypt",
            ],
            False,
        ),
    ],
    ids=["nodes", "node-rank", "ranks", "token", "encrypt"],
)
def test_machines_that_were_told_different_things_say_which(
    machines: Sequence[str], said: Sequence[str], alone: bool, tmp_path: Path
) -> None:
    path = script(tmp_path, "import malt\nmalt.init()\nmalt.barrier()")
    (tmp_path / "token").write_text("another-secret-than-theirs")
    place = [str(random.randrange(1, 255)) for _ in range(3)]
    store = ["--store", f"127.{'.'.join(place)}:29500"]
    words = [machine.replace("TOKEN", str(tmp_path / "token")).split() for machine in machines]
    env = {**SECRET, "MALT_ENCRYPT": "0"}
    with launched(*words[0], *store, path, env=env) as one, launched(*words[1], *store, path, env=env) as other:
        if alone:  # the other one waits for a rank that will not come
            first = select.select(ends := [os.pidfd_open(job.pid) for job in (one, other)], [], [], LONG)[0]
            for job, end in zip((one, other), ends, strict=True):
                if end not in first:
                    job.process.kill()
                os.close(end)
        assert 1 in [one.finish(), other.finish()], one.err + other.err
    err = one.err + other.err
    assert all(part in err for part in said), err


def test_a_machine_of_which_all_ranks_were_killed(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import contextlib, select, malt
        pid = int(malt.allreduce(os.getpid() * (r == 2), "sum"))
        if r == 2: os.kill(os.getpid(), signal.SIGKILL)
        while 2 in malt.alive(): malt.barrier()
        if r == 3:
            with contextlib.suppress(ProcessLookupError):
                select.select([os.pidfd_open(pid)], [], [])  # from then on the launcher can see it, too
            os.kill(os.getpid(), signal.SIGSEGV)
        while 3 in malt.alive(): malt.barrier()
        """,
    )
    store = f"127.{'.'.join(str(random.randrange(1, 255)) for _ in range(3))}:29500"
    command = ["-q", "--on-death", "continue", "-n", "2", "--nodes", "2", "--store", store, "--summary"]
    with (
        launched(*command, "--node-rank", "0", path, env=SECRET) as one,
        launched(*command, "--node-rank", "1", path, env=SECRET) as other,
    ):
        assert (one.finish(), other.finish()) == (0, 128 + signal.SIGSEGV), one.err + other.err
    first, second = (line for line in other.err.splitlines() if " left on this machine" in line)
    fate = r"malt run: rank {} was killed by {} after .* s; {} is left on this machine"
    assert re.fullmatch(fate.format(2, "SIGKILL", "(rank 3|no other rank)"), first)  # where it sees both at once
    assert re.fullmatch(fate.format(3, "SIGSEGV", "no other rank"), second)
    assert "went on." not in other.err
    assert other.err.splitlines()[-1].startswith("malt run: rank 3 was killed by SIGSEGV"), other.err


def test_another_program_at_the_store_that_says_nothing_is_no_rank_that_has_been_started(tmp_path: Path) -> None:
    path = script(tmp_path, "import malt\nmalt.init()")
    with socket.create_server(("127.0.0.1", 0)) as other:
        store = f"127.0.0.1:{other.getsockname()[1]}"
        node = ["-n", "1", "--nodes", "2", "--node-rank", "1", "--store", store]
        err = run(*node, path, env={**SECRET, "MALT_TIMEOUT": "0.5"}).err
    assert "TimeoutError" in err
    assert store in err.partition("TimeoutError")[2], err
    assert "rank 0 of 2" in err
    assert "all ranks have been started" not in err


def test_a_new_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token"]) == 0
    assert main(["token"]) == 0
    one, other = capsys.readouterr().out.split()
    assert len(one) == len(other) == 32
    assert one != other
