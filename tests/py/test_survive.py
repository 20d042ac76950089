"""``malt run --on-death continue``: what the launcher does and says when ranks die and the others go on."""

from __future__ import annotations

import os
import re
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import jobs
import pytest
from launching import launched, run, script, soon, wait_for_end

import malt
from malt._cli.summary import deaths
from malt._ranks.rank import Outcome

GO_ON = ("-q", "--on-death", "continue")

# A rank that is to end does so in its tenth step, when all have joined.
STEPS = """
import numpy as np
import malt
v = malt.Vector(np.zeros(100))
for step in range(30):
    if step == 10 and r in (1,): {end}
    v.array += 1
    v.sync()
print("done", malt.alive(), v.array[0], flush=True)
"""

KILL = "os.kill(os.getpid(), signal.SIGKILL)"

GO = "(ranks 0 and 2 are|rank [02] is|no other rank is) left"
"""What the launcher says of the others, which may soon have ended, too, when rank 1 has died."""


pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.parametrize(
    ("end", "fate"),
    [
        (KILL, "was killed by SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
        ("os.abort()", "was killed by SIGABRT"),
        ("signal.signal(15, signal.SIG_DFL); os.kill(os.getpid(), 15)", "was killed by SIGTERM"),
    ],
    ids=["kill", "segv", "abort", "term"],
)
def test_the_others_go_on_without_a_rank_that_a_signal_ended(tmp_path: Path, end: str, fate: str) -> None:
    done = run(*GO_ON, "-n", "3", script(tmp_path, STEPS.format(end=end)))
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == [f"[{r}] done [0, 2] 30.0" for r in (0, 2)]
    assert re.search(rf"^malt run: rank 1 {fate} after \d+\.\d s; {GO}$", done.err, re.M), done.err
    assert done.err.count("DeathWarning: rank 1 has died") == 2  # one for each that goes on


def test_a_shell_that_says_that_its_program_was_killed(tmp_path: Path) -> None:
    path = script(tmp_path, STEPS.format(end=KILL))
    done = run(*GO_ON, "-n", "3", "--", "sh", "-c", f"{sys.executable} {path}; exit $?")
    assert done.process.returncode == 0, done.err
    assert re.search(rf"^malt run: rank 1 ended with exit code 137 after .* s; {GO}$", done.err, re.M)


@pytest.mark.parametrize(
    ("end", "code", "last"),
    [
        ("sys.exit(3)", 3, "rank 1 ended with exit code 3"),
        ("sys.exit(137)", 137, "rank 1 ended with exit code 137"),  # not of a shell
        ("malt._lib.abort(ValueError('mine')); os.abort()", 134, "rank 1 was killed by SIGABRT"),
        ("time.sleep(0); os._exit(3)", 3, "rank 1 ended with exit code 3"),
        ("raise ValueError('mine')", 1, "rank 1 failed with ValueError"),
        ("malt._lib.abort(ValueError('mine')); os._exit(7)", 7, "rank 1 ended with exit code 7"),
    ],
    ids=["exit", "exit 137", "abort, SIGABRT", "_exit", "raise", "abort"],
)
def test_an_error_of_its_own_stops_the_job(tmp_path: Path, end: str, code: int, last: str) -> None:
    done = run(*GO_ON, "-n", "3", script(tmp_path, STEPS.format(end=end) + "\nsignal.pause()"))
    assert done.process.returncode == code, done.err
    assert f"malt run: {last}" in done.err
    assert not re.search("^malt run.* left$", done.err, re.M)


def test_a_rank_that_ends_early_is_no_death(tmp_path: Path) -> None:
    done = run(*GO_ON, "-n", "3", script(tmp_path, STEPS.format(end="sys.exit(0)")))
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == [f"[{r}] done [0, 1, 2] 30.0" for r in (0, 2)]
    assert not done.err


@pytest.mark.parametrize("hosts", [["-n", "3"], ["-H", "localhost:1,127.0.0.1:2"]])
def test_an_end_with_code_0_of_which_the_others_are_not_told(tmp_path: Path, hosts: list[str]) -> None:
    done = run(*GO_ON, "--summary", *hosts, script(tmp_path, STEPS.format(end="os._exit(0)")))
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == [f"[{r}] done [0, 2] 30.0" for r in (0, 2)]
    assert "DeathWarning: rank 1 has died" in done.err
    assert re.search(rf"rank 1 .*ended without leaving the job \(exit code 0\) after .* s; {GO}$", done.err, re.M)
    assert re.search(r"^ +1 +died$", done.err, re.M), done.err
    assert re.search(r"^ +1 +\d+\.\d\d  rank 0 \+\d+\.\d{3}, rank 2 \+\d+\.\d{3}$", done.err, re.M), done.err


def test_the_last_one_that_ends_with_code_0_has_died_too(tmp_path: Path) -> None:
    text = STEPS.format(end="pass").replace("print", "os._exit(0); print")
    done = run(*GO_ON, "--summary", "-n", "3", script(tmp_path, text))
    assert (done.process.returncode, done.out) == (0, ""), done.err
    assert len(re.findall(r"^ +\d +died$", done.err, re.M)) == 3, done.err
    assert "does it pay? Ranks 0-2 died.\n" in done.err


@pytest.mark.parametrize("options", [("--on-death", "stop"), ("--on-death", "continue", "--min-ranks", "3")])
@pytest.mark.parametrize("hosts", [("-n", "3"), ("-H", "localhost:1,127.0.0.1:2")])
def test_an_end_with_code_0_that_ends_the_job(tmp_path: Path, hosts: list[str], options: tuple[str, ...]) -> None:
    path = script(tmp_path, STEPS.format(end="os._exit(0)"))
    done = run("-q", "--summary", *options, *hosts, path)
    assert done.process.returncode == 1, done.err
    assert re.search(r"ranks 0 and 2 failed because rank 1 was gone \(PeerError\), at .*: v.sync\(\)$", done.err, re.M)
    assert re.fullmatch(r"malt run: rank 1 .*ended without leaving the job \(exit code 0\)", done.err.splitlines()[-1])
    assert re.search(r"^ +1 +\d+\.\d\d  ended the job$", done.err, re.M), done.err
    assert ("2 ranks are left, and the job needs 3" in done.err) == ("--min-ranks" in options)


@pytest.mark.parametrize("hosts", [("-n", "3"), ("-H", "localhost:1,127.0.0.1:2")])
@pytest.mark.parametrize("first", [0, 1])
def test_an_end_with_code_0_before_the_others_have_joined(tmp_path: Path, hosts: list[str], first: int) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    early, late = f"open({str(fifo)!r}, 'w'); sys.exit()", f"open({str(fifo)!r}).read()"
    path = script(
        tmp_path, f"if r == 1: {early if first else 'sys.exit()'}\nif r and {first}: {late}\nimport malt\nmalt.init()"
    )
    with soon():
        done = run("-q", *hosts, path)
    assert done.process.returncode == 1, done.err
    assert re.search(r"^malt run: rank 1 .*ended without joining the job \(exit code 0\)", done.err.splitlines()[-1])


def test_an_end_with_code_0_in_the_middle_of_joining(tmp_path: Path) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    text = f"""
        import threading, malt
        if r == 1:
            end = open({str(fifo)!r}, "w")
            threading.Timer(0.3, os._exit, (0,)).start()
        if r == 0:
            open({str(fifo)!r}).read()  # until that rank has ended
        malt.init()
        """
    with soon():
        done = run("-q", "-n", "3", script(tmp_path, text))
    assert done.process.returncode == 1, done.err
    assert re.search(r"^malt run: rank 1 ended without joining the job \(exit code 0\)", done.err.splitlines()[-1])


def test_ranks_that_make_a_job_of_their_own_do_not_need_the_others(tmp_path: Path) -> None:
    text = """
        import malt
        if r == 2: sys.exit()
        malt.init(size=2)
        print(malt.allreduce(1, "sum"))
        """
    done = run("-q", "-n", "3", script(tmp_path, text))
    assert (done.process.returncode, sorted(done.out.splitlines())) == (0, ["[0] 2", "[1] 2"]), done.err


@pytest.mark.skipif(find_spec("sklearn") is None, reason="needs scikit-learn")
@pytest.mark.parametrize("dead", [0, 1])
def test_ranks_agree_on_an_estimator_without_a_dead_one(tmp_path: Path, dead: int) -> None:
    text = f"""
        import numpy as np, malt, malt.sklearn
        from sklearn.linear_model import SGDClassifier
        malt.barrier()
        if r == {dead}: os.kill(os.getpid(), signal.SIGKILL)
        while len(malt.alive()) == n: malt.confirm()
        x = np.random.default_rng(r).normal(size=(300, 5))
        model = SGDClassifier(random_state=0)
        if r < 2: model.partial_fit(x, x[:, 0] > 0, classes=[False, True])
        v = malt.sklearn.Vector(model)
        v.sync()
        v.allreduce()
        print("model", malt.alive(), model.coef_.tobytes().hex())
    """
    done = run("-q", "-n", "3", "--on-death", "continue", script(tmp_path, text))
    assert done.process.returncode == 0, done.err
    models = [line.split("model ")[1] for line in done.out.splitlines() if "model " in line]
    assert len(models) == 2
    assert len({*models}) == 1, models


def test_rank_0_is_a_rank_like_others(tmp_path: Path) -> None:
    done = run(*GO_ON, "-n", "3", script(tmp_path, STEPS.replace("r in (1,)", "r == 0").format(end=KILL)))
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == [f"[{r}] done [1, 2] 30.0" for r in (1, 2)]
    assert (
        "malt run: rank 0 died: after that, all that only rank 0 prints or saves is missing; use malt.first()"
        in done.err
    )


def test_all_but_one_and_the_last_one_is_first(tmp_path: Path) -> None:
    path = script(tmp_path, STEPS.replace("r in (1,)", "r != 2").format(end=KILL) + "print(malt.first(), flush=True)")
    done = run(*GO_ON, "-n", "4", path)
    assert done.process.returncode == 0, done.err
    assert done.out.splitlines() == ["[2] done [2] 30.0", "[2] True"]
    assert re.search("rank 2 is left|no other rank is left", done.err)


def test_all_of_them(tmp_path: Path) -> None:
    done = run(*GO_ON, "-n", "3", script(tmp_path, STEPS.replace("r in (1,)", "True").format(end=KILL)))
    assert done.process.returncode == 128 + signal.SIGKILL
    assert "malt run: no rank is left, and the job needs 1" in done.err
    assert re.match(r"malt run: ranks? \d.* was killed by SIGKILL \(by ", done.err.splitlines()[-1])
    assert "stopped" not in done.err


def test_all_of_them_one_after_the_other(tmp_path: Path) -> None:
    first, seen = "os.kill(os.getpid(), signal.SIGSEGV)", tmp_path / "seen"
    os.mkfifo(seen)
    last = f"open({str(seen)!r}).close(); {KILL}"  # where both end at once, the launcher may see either one first
    text = (
        STEPS.replace("r in (1,)", "r == 0")
        .format(end=first)
        .replace("    v.sync()\n", f"    v.sync()\n    if malt.alive() == [1]: {last}\n")
    )
    with launched(*GO_ON, "-n", "2", script(tmp_path, text)) as job:
        job.wait_for("malt run: rank 0 was killed by SIGSEGV after", stream=2)
        seen.write_text("")
        assert job.finish() == 128 + signal.SIGKILL, job.err


def test_too_few_ranks_are_left(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        malt.barrier()
        print("ready", r, os.getpid(), flush=True)
        while True: malt.barrier()
        """,
    )
    with launched(*GO_ON, "--min-ranks", "2", "-n", "3", path) as job:
        pids = {int(r): int(pid) for r, pid in job.wait_for(r"ready (\d) (\d+)", 3)}
        os.kill(pids[2], signal.SIGKILL)
        job.wait_for("rank 2 was killed by SIGKILL after .*; ranks 0 and 1 are left", stream=2)
        os.kill(pids[0], signal.SIGKILL)
        assert job.finish() == 128 + signal.SIGKILL
        assert "malt run: 1 rank is left, and the job needs 2" in job.err
        assert job.err.splitlines()[-1].startswith("malt run: rank 0 was killed by SIGKILL")
        assert re.search("PeerError: malt: rank [02] is dead", job.err)  # perhaps it hears of both at once


@pytest.mark.parametrize("on_death", ["stop", "continue"])
def test_a_death_before_all_have_met_ends_the_job(tmp_path: Path, on_death: str) -> None:
    """The others would wait for the time of MALT_TIMEOUT for a rank that cannot come."""
    path = script(tmp_path, f"if r == 1: {KILL}\nimport malt\nmalt.barrier()")
    done = run("-q", "--on-death", on_death, "-n", "3", path)
    assert done.process.returncode == 128 + signal.SIGKILL
    said = "malt run: rank 1 was killed before all ranks had joined the job: that ends it" in done.err
    assert said == (on_death == "continue")
    assert "rank 1 was killed by SIGKILL" in done.err.splitlines()[-1]
    assert " left" not in done.err


def test_a_death_in_a_program_that_does_not_join_ends_the_job() -> None:
    done = run(*GO_ON, "-n", "2", "--", "sh", "-c", "[ $MALT_RANK = 1 ] && kill -9 $$; exec sleep 1000")
    assert done.process.returncode == 128 + signal.SIGKILL


def test_a_death_after_the_rank_has_left_is_noted_only(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        f"""
        import malt
        malt.barrier()
        if r == 1:
            from malt._malt import lib
            lib.malt_finalize()
            {KILL}
        """,
    )
    done = run(*GO_ON, "-n", "2", path)
    assert done.process.returncode == 0, done.err
    assert "rank 1 was killed by SIGKILL" in done.err


WAIT = """
import malt
malt.init()
print("ready", r, os.getpid(), flush=True)
while True: malt.barrier()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_malt_run_ends_a_job_with_deaths(tmp_path: Path, number: signal.Signals) -> None:
    with launched(*GO_ON, "-n", "3", script(tmp_path, WAIT)) as job:
        pids = {int(r): int(pid) for r, pid in job.wait_for(r"ready (\d) (\d+)", 3)}
        os.kill(pids[1], signal.SIGKILL)
        job.wait_for("ranks 0 and 2 are left", stream=2)
        job.signal(number)
        assert job.finish() == 128 + number
        assert "is left" not in job.err


@pytest.mark.parametrize("on_death", ["continue", "replace"])
def test_ctrl_c_before_all_have_joined_ends_the_job(tmp_path: Path, on_death: str) -> None:
    """No rank counts as dead then, and none is replaced."""
    path = script(
        tmp_path,
        """
        import malt
        malt.Vector  # numpy: a module that Ctrl-C interrupts while it is loaded says so in its own way
        print("here", r, flush=True)
        if r == 1: signal.pause()
        malt.init()
        """,
    )
    with launched("--on-death", on_death, "-n", "3", path) as job:
        job.wait_for(r"here (\d)", 3)
        job.signal(signal.SIGINT)
        assert job.finish() == 128 + signal.SIGINT
        assert not re.search("was killed| left|takes its place|Error", job.err), job.err


def test_a_death_does_not_hide_that_the_others_finished_on_demand(tmp_path: Path) -> None:
    path = script(tmp_path, "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n" + WAIT)
    with launched(*GO_ON, "-n", "2", path) as job:
        pids = {int(r): int(pid) for r, pid in job.wait_for(r"ready (\d) (\d+)", 2)}
        os.kill(pids[0], signal.SIGKILL)
        job.wait_for("rank 1 is left", stream=2)
        job.signal(signal.SIGTERM)
        assert job.finish() == 0


def test_a_killed_launcher_takes_the_survivors(tmp_path: Path) -> None:
    with launched(*GO_ON, "-n", "3", script(tmp_path, WAIT)) as job:
        pids = {int(r): int(pid) for r, pid in job.wait_for(r"ready (\d) (\d+)", 3)}
        os.kill(pids[1], signal.SIGKILL)
        job.wait_for("ranks 0 and 2 are left", stream=2)
        job.signal(signal.SIGKILL)
        assert all(wait_for_end(pid) for pid in pids.values())


def test_children_of_a_rank_end_when_it_dies(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) if r == 1 else None
        malt.barrier()
        print("ready", r, os.getpid(), child.pid if child else 0, flush=True)
        while not os.path.exists("/proc/self/nowhere"): malt.barrier()
        """,
    )
    with launched(*GO_ON, "-n", "2", path) as job:
        pids = {int(r): (int(pid), int(child)) for r, pid, child in job.wait_for(r"ready (\d) (\d+) (\d+)", 2)}
        os.kill(pids[1][0], signal.SIGKILL)
        assert wait_for_end(pids[1][1])
        assert not wait_for_end(pids[0][0], 0)
        job.signal(signal.SIGTERM)
        job.finish()


def test_a_stopped_rank_is_waited_for_and_can_be_expelled(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import malt
        malt.barrier()
        if r == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            malt.barrier(timeout=0.5)
        except malt.TimeoutError as error:
            assert "rank 1" in str(error)
            if malt.first():
                malt.expel(1)
        malt.barrier()
        try:
            while True:  # until it is reaped
                malt.expel(1)
        except malt.HostError as error:
            print("done", malt.alive(), error, flush=True)
        """,
    )
    done = run(*GO_ON, "-n", "2", path)
    assert done.process.returncode == 0, done.err
    assert done.out.startswith("[0] done [0] malt: rank 1 has ended, or has not arrived: no such process")
    assert "malt run: rank 1 was killed by SIGKILL" in done.err


def test_a_sync_that_timed_out_is_finished_without_the_expelled_rank(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import numpy as np
        import malt
        v = malt.Vector(np.full(3, float(r)), start="own")
        malt.barrier()
        if r == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            v.sync(timeout=0.5)
        except malt.TimeoutError:
            if malt.first():
                malt.expel(1)
            v.gather()
        print("done", malt.alive(), v.array[0], flush=True)
        """,
    )
    done = run(*GO_ON, "-n", "3", path)
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == [f"[{r}] done [0, 2] 1.0" for r in (0, 2)]


def test_ranks_that_say_different_things(tmp_path: Path) -> None:
    path = script(tmp_path, "import malt\nmalt.init(on_death='continue' if r else 'stop')")
    done = run("-q", "-n", "2", path)
    assert done.process.returncode == 1
    assert "MismatchError" in done.err
    assert "rank 0: malt.init()" in done.err
    assert "rank 1: malt.init(on_death=continue, min_ranks=1)" in done.err


@pytest.mark.parametrize("way", ["variable", "argument"])
def test_malt_run_hears_from_the_ranks_that_they_go_on(tmp_path: Path, way: str) -> None:
    head = "import malt\nmalt.init(on_death='continue')\n" if way == "argument" else ""
    env = {"MALT_ON_DEATH": "continue"} if way == "variable" else {}
    done = run("-q", "-n", "3", script(tmp_path, head + STEPS.format(end=KILL)), env=env)
    assert done.process.returncode == 0, done.err
    assert re.search(GO, done.err)


def test_the_option_comes_before_the_variable(tmp_path: Path) -> None:
    path = script(tmp_path, STEPS.format(end=KILL))
    done = run("-q", "--on-death", "stop", "-n", "3", path, env={"MALT_ON_DEATH": "continue"})
    assert done.process.returncode == 128 + signal.SIGKILL


def test_without_malt_run() -> None:
    with jobs.Job(
        3,
        """
        malt.barrier()
        print("ready")
        if r == 1: signal.pause()
        malt.barrier()
        print(malt.alive())
        """,
        env={"MALT_ON_DEATH": "continue"},
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[1].signal(signal.SIGKILL)
        assert [rank.process.returncode for rank in job.finish()] == [0, -9, 0]
        assert job.ranks[0].out.text == job.ranks[2].out.text == "ready\n[0, 2]\n"


@pytest.mark.parametrize(
    ("options", "env", "said"),
    [
        (["--on-death", "continu"], {}, "--on-death: 'continu' is not known\nDid you mean 'continue'?"),
        (["--on-death", "continue", "--min-ranks", "0"], {}, "--min-ranks: '0' is not a number of ranks"),
        (["--min-ranks", "2"], {}, "--min-ranks 2 goes with --on-death continue\notherwise the first death ends"),
        ([], {"MALT_ON_DEATH": "continu"}, "MALT_ON_DEATH: 'continu' is not known\nDid you mean 'continue'?\nMore: "),
        (["--on-death", "continue", "--min-ranks", "3"], {}, "--min-ranks 3, and the job has 2 ranks\nPass a number"),
    ],
)
def test_options_that_cannot_be(options: list[str], env: dict[str, str], said: str) -> None:
    done = run("-n", "2", *options, "--", "true", env=env)
    assert done.process.returncode == 2
    assert f"malt run: {said}" in done.err


def test_a_host_by_ssh_goes_on(tmp_path: Path) -> None:
    path = script(tmp_path, STEPS.format(end=KILL))
    done = run(*GO_ON, "--summary", "-H", "localhost:3", path)
    assert done.process.returncode == 0, done.err
    assert re.search(rf"rank 1 on host localhost was killed by SIGKILL after .* s; {GO}", done.err)
    assert re.search(r"^ +1 +\d+\.\d\d  rank 0 \+\d+\.\d{3}, rank 2 \+\d+\.\d{3}$", done.err, re.M), done.err


TWO = "localhost:1,127.0.0.1:2"  # two hosts to malt run, and one to the ranks


def test_the_only_rank_of_a_host_is_killed(tmp_path: Path) -> None:
    path = script(tmp_path, STEPS.format(end=KILL))
    with soon():
        done = run(*GO_ON, "-q", "--summary", "-H", "localhost:1,127.0.0.1:1,127.0.0.1:1", path)
    assert done.process.returncode == 0, done.err
    assert re.search(rf"rank 1 on host 127.0.0.1 was killed by SIGKILL after .* s; {GO}", done.err)
    assert re.search(r"^ +1 +\d+\.\d\d  rank 0 \+\d+\.\d{3}, rank 2 \+\d+\.\d{3}$", done.err, re.M), done.err


def test_too_few_ranks_on_all_hosts(tmp_path: Path) -> None:
    path = script(tmp_path, STEPS.format(end=KILL))
    done = run(*GO_ON, "-q", "--min-ranks", "3", "-H", TWO, path)
    assert done.process.returncode == 128 + signal.SIGKILL
    assert "2 ranks are left, and the job needs 3" in done.err


@pytest.mark.parametrize("stopped", [0, signal.SIGSTOP])  # so that nobody has said yet that the ranks have joined
def test_a_host_whose_connection_ends_is_done_without(tmp_path: Path, stopped: int) -> None:
    path = script(
        tmp_path,
        f"""
        import malt
        if r == 0: os.kill(os.getppid(), {stopped})
        malt.init()
        if r == 2: os.kill(os.getppid(), signal.SIGKILL)  # what serves malt run on its host, and so all ranks there
        while len(malt.alive()) > 1: malt.barrier()
        if r == 0: os.kill(os.getppid(), signal.SIGCONT)
        print(malt.alive())
        """,
    )
    done = run(*GO_ON, "-q", "-H", TWO, path)
    assert done.process.returncode == 0, done.err
    assert done.out == "[0] [0]\n"
    for rank in 1, 2:
        assert re.search(rf"rank {rank} is lost: the connection to host 127.0.0.1 has ended after .* s; ", done.err)


@pytest.mark.parametrize("hosts", [["-n", "3"], ["-H", TWO]])
def test_an_expelled_rank_does_not_end_the_job(tmp_path: Path, hosts: list[str]) -> None:
    path = script(
        tmp_path,
        """
        import malt
        malt.init()
        from malt._ranks.report import reporter
        malt.barrier()
        if r == 2:
            reporter()._say({"expelled": True})  # as the library does
            reporter().failed(malt.ExpelledError("the others have gone on without this rank"))
            os._exit(1)
        while malt.generation() == 1: malt.barrier()
        print(malt.alive())
        """,
    )
    done = run(*GO_ON, "-q", *hosts, path)
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == ["[0] [0, 1]", "[1] [0, 1]"]
    others = "(ranks 0 and 1 are|rank [01] is|no other rank is) left"  # as far as they have come by then
    assert re.search(rf"rank 2 (on host 127.0.0.1 )?failed with ExpelledError after .* s; {others}", done.err)


@pytest.mark.parametrize("first", ["", "from malt import run"])  # which knows the other end of a rank's reports
def test_the_summary_tells_of_deaths(tmp_path: Path, first: str) -> None:
    done = run(*GO_ON, "--summary", "-n", "3", script(tmp_path, first + STEPS.format(end=KILL)))
    assert done.process.returncode == 0, done.err
    assert re.search(r"^ +1 +died$", done.err, re.M), done.err
    assert re.search(
        r"does it pay\? Rank 1 was killed by SIGKILL \d+\.\d s after the start; the others went on\.", done.err
    )
    assert "malt run: deaths, and when the other ranks went on, in seconds:" in done.err
    assert re.search(r"^ +1 +\d+\.\d\d  rank 0 \+\d+\.\d{3}, rank 2 \+\d+\.\d{3}$", done.err, re.M), done.err


@pytest.mark.parametrize("options", [(), ("--on-death", "continue", "--min-ranks", "3")])
@pytest.mark.parametrize("hosts", [("-n", "3"), ("-H", "localhost:3")])
def test_the_summary_tells_of_the_death_that_ended_the_job(
    tmp_path: Path, options: tuple[str, ...], hosts: tuple[str, ...]
) -> None:
    done = run("-q", *options, "--summary", *hosts, script(tmp_path, STEPS.format(end=KILL)))
    assert done.process.returncode == 128 + signal.SIGKILL
    assert re.search(r"^ +1 +died$", done.err, re.M), done.err
    assert re.search(r"^ +1 +\d+\.\d\d  ended the job$", done.err, re.M), done.err


def test_an_end_that_the_user_asked_for_is_no_death() -> None:
    with launched("-q", "--summary", "-n", "2", "--", "sh", "-c", "echo here; exec sleep 1000") as job:
        job.wait_for("here", 2)
        job.signal(signal.SIGTERM)
        assert job.finish() == 128 + signal.SIGTERM
    assert job.err.count("no report") == 2, job.err
    assert "died" not in job.err


def test_the_summary_does_not_take_an_older_death_for_a_new_one() -> None:
    """A rank died twice: rank 0 heard of it at 11 s, and had ended before the second time."""
    first, second, other = Outcome(1), Outcome(1), Outcome(0)
    first.died, second.died, second.start, second.least = 10.9, 20.0, 1, 1
    other.summary = {"deaths": {"1": 11.0}}
    assert [line.split()[2:] for line in deaths([first, second], [other, first, second])[1:]] == [
        ["rank", "0", "+0.100"],
        [],
    ]
    other.summary = {"deaths": {"1": 20.25}}
    assert [line.split()[2:] for line in deaths([first, second], [other, first, second])[1:]] == [
        [],
        ["rank", "0", "+0.250"],
    ]


def test_many_jobs_with_deaths_at_any_moment(tmp_path: Path) -> None:
    """Two jobs at once, of which each loses a rank in or between its steps."""
    path = script(
        tmp_path,
        """
        import malt
        malt.init()
        print("ready", r, os.getpid(), flush=True)
        for step in range(200): malt.allreduce(1.0, "sum")
        while malt.generation() == 1: malt.confirm()
        print("done", malt.alive(), flush=True)
        """,
    )
    for turn in range(2):
        with launched(*GO_ON, "-n", "3", path) as one, launched(*GO_ON, "-n", "2", path) as other:
            for job, size in ((one, 3), (other, 2)):
                pids = {int(r): int(pid) for r, pid in job.wait_for(r"ready (\d) (\d+)", size)}
                os.kill(pids[turn % size], signal.SIGKILL)
            for job, size in ((one, 3), (other, 2)):
                assert job.finish() == 0, job.err
                left = [r for r in range(size) if r != turn % size]
                assert sorted(re.findall(r"\[(\d)\] done", job.out)) == [str(r) for r in left], (job.out, job.err)


def test_the_guide_names_tests_that_there_are() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs/concepts/failures.md").read_text()
    named = set(re.findall(r"`(test_\w+|Test\w+)`", page))
    assert len(named) > 30
    sources = [*(root / "tests").rglob("*.py"), *root.glob("[a-z]*/**/*_test.go")]
    there = {name for path in sources for name in re.findall(r"^(?:def|func) (\w+)\(", path.read_text(), re.M)}
    assert named <= there, named - there


# ------------------------------------------------------------------ malt.run


def part(who: int, killed: bool = True) -> list[int]:
    """End a rank, and return those that are left."""
    malt.barrier()
    if malt.rank() == who:
        os.kill(os.getpid(), signal.SIGKILL) if killed else os._exit(0)
    malt.barrier()
    return malt.alive()


@pytest.mark.parametrize("killed", [True, False])
def test_malt_run_returns_what_the_survivors_return(killed: bool) -> None:
    zero, one, two = malt.run(part, 3, (1, killed), on_death="continue")
    assert zero == two == [0, 2]
    assert isinstance(one, malt.PeerError)
    assert (one.rank, one.kind) == (1, "ended")
    how = "was killed by SIGKILL" if killed else r"ended without leaving the job \(exit code 0\)"
    assert re.fullmatch(rf"malt: rank 1 is dead: it {how} after \d+\.\d s", str(one))


def test_malt_run_stops_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(malt.PeerError, match="rank 1"):
        malt.run(part, 2, (1,))
    with pytest.raises(malt.PeerError, match=r"rank 1 ended without leaving the job \(exit code 0\)"):
        malt.run(part, 3, (1, False))
    monkeypatch.setenv("MALT_ON_DEATH", "continue")
    assert malt.run(part, 2, (1,))[0] == [0]
    with pytest.raises(malt.PeerError, match="rank 1"):
        malt.run(part, 2, (1,), on_death="stop")


def test_malt_run_knows_two_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"on_death='go on'\nexpected one of stop, continue$"):
        malt.run(part, 2, (1,), on_death="go on")  # type: ignore[call-overload]
    with pytest.raises(malt.UnsupportedError, match="on_death='replace' is for malt run\nonly malt run starts"):
        malt.run(part, 2, (1,), on_death="replace")  # type: ignore[call-overload]
    monkeypatch.setenv("MALT_ON_DEATH", "replace")
    with pytest.raises(malt.UnsupportedError, match="MALT_ON_DEATH='replace' is for malt run"):
        malt.run(part, 2, (1,))
