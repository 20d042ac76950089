"""``%%malt`` when things end: the stop button, deaths of ranks, the end of the kernel."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ipykernel", reason="needs ipykernel: pip install ipykernel")
pytest.importorskip("jupyter_client", reason="needs jupyter_client: pip install jupyter_client")

from launching import launched, soon, wait_for_end

from notebooks import PATIENT, Kernel

N = 3


@pytest.fixture(name="kernel", scope="module")
def _kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        kernel.ok("%load_ext malt")
        yield kernel


@pytest.fixture(name="ranks")
def _ranks(kernel: Kernel) -> Kernel:
    """Return the kernel with N ranks that have a vector."""
    if not kernel.ok("%malt status").out.startswith(f"{N} ranks"):
        kernel.ok(f"%malt restart -n {N}")
    kernel.ok(
        "%%malt\nimport os, signal, sys, time\nimport numpy as np\nr = malt.rank()\n"
        "v = malt.Vector(np.full(3, float(r)), start='own')\nv.array += 1; v.sync()"
    )
    kernel.ok(PATIENT)
    return kernel


def usable(kernel: Kernel) -> bool:
    """Return whether all ranks are there, with their variables, and in step."""
    return kernel.ok("%%malt\n(malt.allreduce(r, 'sum'), len(v.array))").texts == [f"[0] ({N * (N - 1) // 2}, 3)"]


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "time.sleep(1000)",
        "malt.barrier() if r else time.sleep(1000)",
        "while True:\n    v.array += 1; v.sync()",
        "while True:\n    malt.allreduce(1.0)",
        "if r == 1: time.sleep(1000)",
        "import asyncio; await asyncio.sleep(1000)",
        "while True: print('x' * 100)",
        "os.system('sleep 1000')",
        "!sleep 1000",
        "import subprocess; subprocess.run(['sleep', '1000'])",
        "while True: display(r)",
    ],
)
def test_the_stop_button_interrupts_all_ranks_and_they_can_be_used_on(ranks: Kernel, code: str) -> None:
    # What is done by every rank before it hangs tells that it is about to.
    wait = ranks.start(f"%%malt\nprint('begun', flush=True)\n{code}")
    for r in range(N):
        ranks.wait_for(rf"\[{r}\] begun")
    ranks.interrupt()
    cell = wait()
    assert cell.name == "Interrupted"
    assert cell.error.startswith("KeyboardInterrupt: the ranks can be used again")
    by_shell = code.startswith("os.system")  # its end by a signal is no exception in Python
    assert re.search("had ended the cell" if by_shell else r"interrupted at line \d: ", cell.error)
    assert usable(ranks)


PRESS = "signal.raise_signal(signal.SIGINT)"


@pytest.mark.parametrize(
    "code",
    [
        # An error takes the place of Ctrl-C, as in IPython's own pretty-printer; formatters show errors and go on.
        f"class A:\n    def __repr__(self):\n        try: {PRESS}\n        finally: raise IndexError\n"
        "while True: display(A())",
        f"class A:\n    def __del__(self):\n        {PRESS}\na = A(); del a\nwhile True: pass",
        # IPython catches it here, ends the command, and goes on with the next one.
        "while True:\n    !kill -INT $PPID; sleep 1000",
        "while True:\n    x = !kill -INT $PPID; sleep 1000",
    ],
)
def test_an_interrupt_that_ipython_or_python_catches_ends_the_cell(ranks: Kernel, code: str) -> None:
    cell = ranks.run(f"%%malt\n{code}")
    assert "KeyboardInterrupt" in cell.error
    assert usable(ranks)


def test_an_interrupt_before_the_first_statement(ranks: Kernel) -> None:
    ranks.ok(f"%%malt\ndef press(): {PRESS}\nget_ipython().events.register('pre_execute', press)")
    cell = ranks.run("%%malt\nprint('has run')")
    assert "KeyboardInterrupt" in cell.error
    assert "has run" not in cell.out
    ranks.ok("%malt stop")


def test_interrupted_twenty_times_in_a_row(ranks: Kernel) -> None:
    pids = ranks.pids()
    for i in range(20):
        wait = ranks.start(
            f"%%malt\nprint('begun', flush=True)\nwhile True: {'v.sync()' if i % 2 else 'malt.barrier()'}"
        )
        ranks.wait_for("begun")
        ranks.interrupt()
        assert wait().name == "Interrupted"
    assert usable(ranks)
    assert ranks.pids() == pids


def test_twenty_interrupts_of_one_cell(ranks: Kernel) -> None:
    wait = ranks.start("%%malt\nprint('begun', flush=True)\nwhile True: v.sync()")
    ranks.wait_for("begun")
    for _ in range(20):
        os.kill(ranks.pid, signal.SIGINT)
    assert wait().name in ("Interrupted", "KeyboardInterrupt")  # of the kernel's own, where the cell has ended
    ranks.run("1")  # where some of them came after the cell
    assert usable(ranks)


# Presses the button while the kernel is packing what the ranks get.
SLOW = (
    "import os, signal\nclass Slow:\n    def __reduce__(self):\n        os.kill(os.getpid(), signal.SIGINT)\n"
    "        return int, ()\nslow = Slow()"
)


def test_an_interrupt_before_the_ranks_have_begun(ranks: Kernel) -> None:
    ranks.ok(SLOW)
    cell = ranks.run("%%malt -i slow\nwhile True: pass")
    assert cell.name == "Interrupted"
    assert usable(ranks)


def test_an_interrupt_while_the_ranks_are_started(kernel: Kernel) -> None:
    kernel.run("%malt stop")
    kernel.ok(SLOW)
    cell = kernel.run("%%malt -n 2 -i slow\nprint('run')")
    assert "the ranks had not started yet, and have been ended" in cell.error
    assert cell.out == ""
    assert "no ranks are running" in kernel.ok("%malt status").out


def test_an_interrupt_when_the_ranks_have_ended_the_cell(ranks: Kernel) -> None:
    # It is pressed while the kernel unpacks what has come.
    ranks.ok("def late():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\n    return 7")
    cell = ranks.run("%%malt -i late -o back\nclass Late:\n    def __reduce__(self): return late, ()\nback = Late()")
    assert cell.error == "KeyboardInterrupt: the ranks had ended the cell"
    assert ranks.ok("back").result == str([7] * N)
    assert usable(ranks)


def test_a_rank_that_catches_the_interrupt_may_end_its_cell(ranks: Kernel) -> None:
    wait = ranks.start(
        "%%malt\nprint('begun', flush=True)\ntry:\n    time.sleep(1000)\nexcept KeyboardInterrupt:\n    saved = True"
    )
    for r in range(N):
        ranks.wait_for(rf"\[{r}\] begun")
    ranks.interrupt()
    assert "rank 0, 1, 2 had ended the cell" in wait().error
    assert ranks.ok("%%malt\nsaved").texts == ["[0] True"]


def test_ranks_that_do_not_react_can_be_ended(ranks: Kernel) -> None:
    wait = ranks.start(
        "%%malt\nprint('begun', flush=True)\nwhile r == 1:\n    try:\n        time.sleep(1000)\n"
        "    except KeyboardInterrupt:\n        pass"
    )
    ranks.wait_for(r"\[1\] begun")
    ranks.interrupt()
    ranks.wait_for(r"interrupted .*, still running: rank (0, )?1[,.]")
    ranks.interrupt()
    cell = wait()
    assert "did not react and have been ended" in cell.error
    cell = ranks.run("%%malt\nr")
    assert f"{N} new ranks, without variables" in cell.err
    assert "NameError" in cell.error


CLOSE = "import gc; [o.close() for o in gc.get_objects() if type(o).__name__ == 'Channel']"
DEATHS = {
    "os._exit(3)": "rank 1 ended with exit code 3 in this cell",
    "os._exit(0)": "rank 1 ended with exit code 0 in this cell",
    "os.kill(os.getpid(), signal.SIGKILL)": "rank 1 was killed by SIGKILL .* in this cell",
    "os.kill(os.getpid(), signal.SIGSEGV)": "rank 1 was killed by SIGSEGV in this cell",
    f"{CLOSE}; time.sleep(1000)": "rank 1 has closed its connection to the notebook in this cell",
}


@pytest.mark.parametrize("how", DEATHS)
def test_a_rank_that_dies_ends_all_and_the_next_cell_starts_anew(ranks: Kernel, how: str) -> None:
    pids = ranks.pids()
    with soon():
        cell = ranks.run(f"%%malt\nif r == 1: {how}\nmalt.barrier()")
    assert re.search(DEATHS[how], cell.error)
    assert f"the other {N - 1} ranks were ended" in cell.error
    assert all(wait_for_end(pid) for pid in pids)
    cell = ranks.ok("%%malt\nmalt.allreduce(1, 'sum')")
    assert cell.texts == [f"[0] {N}"]
    assert re.search(rf"{N} new ranks, without variables: rank 1 ", cell.err)


def test_a_rank_killed_between_cells(ranks: Kernel) -> None:
    for command in ("%%malt\nprint('run')", "%malt status"):
        ranks.ok(f"%%malt -n {N}\n1")
        pids = ranks.pids()
        os.kill(pids[1], signal.SIGKILL)
        assert wait_for_end(pids[1])
        cell = ranks.run(command)
        assert "rank 1 was killed by SIGKILL" in cell.error
        assert "since the last cell" in cell.error
        assert cell.out == ""
        assert all(wait_for_end(pid) for pid in pids)


def test_restart_and_stop(ranks: Kernel) -> None:
    before = ranks.pids()
    assert ranks.ok("%malt restart").out == f"malt: {N} new ranks; their variables are gone\n"
    assert all(wait_for_end(pid) for pid in before)
    assert "NameError" in ranks.run("%%malt\nr").error
    assert ranks.ok("%malt restart -n 2").out == "malt: 2 new ranks; their variables are gone\n"
    assert ranks.ok("%%malt -n 2\nmalt.size()").texts == ["[0] 2"]
    pids = ranks.pids()
    assert ranks.ok("%malt stop").out == "malt: 2 ranks ended\n"
    assert all(wait_for_end(pid) for pid in pids)
    assert ranks.ok("%malt stop").out == "malt: no ranks are running\n"
    assert "no ranks are running" in ranks.ok("%malt status").out


def test_exit_handlers_of_ranks_run_when_they_are_stopped(ranks: Kernel, tmp_path: Path) -> None:
    ranks.ok(f"%%malt\nimport atexit, pathlib\natexit.register(pathlib.Path('{tmp_path}', f'ended-{{r}}').touch)")
    ranks.ok("%malt stop")
    assert sorted(os.listdir(tmp_path)) == [f"ended-{r}" for r in range(N)]


def test_unloading_ends_the_ranks_and_takes_the_commands_away(kernel: Kernel) -> None:
    kernel.ok("%malt restart -n 2")
    pids = kernel.pids()
    kernel.ok("%unload_ext malt")
    assert all(wait_for_end(pid) for pid in pids)
    assert "not found" in kernel.run("%malt status").err + kernel.run("%malt status").error
    kernel.ok("%load_ext malt")
    assert "no ranks are running" in kernel.ok("%malt status").out


BUSY = {
    "idle": "pass",
    "computing": "while True: pass",
    "waiting": "malt.barrier() if malt.rank() else time.sleep(1000)",
    "with a child": "import subprocess; subprocess.run(['sleep', '1000'])",
    "deaf": "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)]; time.sleep(1000)",
}


@pytest.mark.parametrize(("busy", "kill"), [("idle", False), *((busy, True) for busy in BUSY)])
def test_everything_ends_with_the_kernel(busy: str, kill: bool) -> None:
    kernel = Kernel()
    dead = True
    try:
        kernel.ok("%load_ext malt")
        wait = kernel.start(f"%%malt -n 2\nimport signal, time\nprint('begun', flush=True)\n{BUSY[busy]}")
        if busy == "idle":
            wait()
        else:
            for r in range(2):
                kernel.wait_for(rf"\[{r}\] begun")
        dead = kill
    finally:
        kernel.close(kill=dead)  # asserts that nothing is left


SCRIPT = """
import os, signal, sys, threading
from IPython.terminal.interactiveshell import TerminalInteractiveShell
shell = TerminalInteractiveShell.instance(simple_prompt=True, colors="nocolor")
shell.run_cell("%load_ext malt")
shell.run_cell("%%malt -n 2\\nr = malt.rank()\\nprint('hello', end='')\\nmalt.allreduce(r, 'sum')")
shell.run_cell("%%malt -o r\\nimport sys\\nfor i in range(9): print(f'\\\\r{i}', end='', file=sys.stderr)")
shell.run_cell("print('back', r)")
shell.run_cell("%%malt\\nr / (1 - r)")
shell.run_cell("%%malt\\nprint('begun', flush=True)\\nwhile True: pass")
shell.run_cell("%%malt\\nr")
"""


def test_in_ipython_without_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    env = {"IPYTHONDIR": str(tmp_path / "ipython"), "TERM": "dumb"}
    with launched(command=[sys.executable, str(tmp_path / "script.py")], env=env) as ipython:
        ipython.wait_for(r"\[\d\] begun", 2)
        ipython.signal(signal.SIGINT)
        assert ipython.finish() == 0
    out = ipython.out.replace("\r", "")
    assert sorted(re.findall(r"^\[\d\] hello$", out, re.MULTILINE)) == ["[0] hello", "[1] hello"]
    assert "[0] 1\n" in out
    assert "back [0, 1]" in out
    assert "On rank 1:" in out
    assert "ZeroDivisionError" in out
    assert "KeyboardInterrupt: the ranks can be used again" in out
    assert out.rstrip().endswith("[0] 0")


def test_without_ipython_the_error_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "IPython.py").write_text("raise ModuleNotFoundError(name='IPython')")
    done = subprocess.run(
        [sys.executable, "-c", "import malt\nmalt.load_ipython_extension(None)"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        "malt.PackageError: malt: %load_ext malt needs IPython, which is not installed\nInstall it: pip install"
        in done.stderr
    )


def test_without_cloudpickle_what_is_defined_in_the_notebook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cloudpickle.py").write_text("raise ImportError")
    with Kernel(PYTHONPATH=str(tmp_path)) as kernel:
        kernel.ok("%load_ext malt")
        kernel.ok("def f(): pass\nx = [1, 'a']")
        assert (
            "-i f was defined in the notebook\nsuch objects cannot be sent" in kernel.run("%%malt -n 2 -i f\n1").error
        )
        assert kernel.ok("%%malt -n 2 -i x\nx").texts == ["[0] [1, 'a']"]
        assert "pip install cloudpickle" in kernel.run("import malt\nmalt.run(f, 2)").error


@pytest.mark.parametrize("late", [0, 1])
def test_a_rank_that_ends_its_cell_late(ranks: Kernel, late: int) -> None:
    """Later than any limit that the notebook has for ranks (`_team.CLOSE`, `FOLLOW`) without being stopped for it."""
    cell = ranks.ok(f"%%malt --show all\ntime.sleep(2.5 * (r == {late}))\nprint('ends', r)\nmalt.rank()")
    assert sorted(re.findall(r"\[(\d)\] ends \1", cell.out)) == ["0", "1", "2"]
    assert sorted(cell.texts) == ["[0] 0", "[1] 1", "[2] 2"]
    assert usable(ranks)


# ------------------------------------------------------------------ --on-death continue


@pytest.fixture(name="surviving")
def _surviving(kernel: Kernel) -> Kernel:
    """Return the kernel with N ranks that have joined and go on after a death."""
    kernel.ok(f"%malt restart -n {N} --on-death continue")
    kernel.ok("%%malt\nimport os, signal, time\nr = malt.rank()\nmalt.barrier()")
    return kernel


def test_the_cell_and_later_ones_go_on_without_a_rank_that_died(surviving: Kernel) -> None:
    cell = surviving.ok(
        "%%malt -o left\nif r == 1: os.kill(os.getpid(), signal.SIGKILL)\nmalt.barrier()\nleft = malt.alive()"
    )
    assert re.search(r"^malt: rank 1 was killed by SIGKILL after \d+\.\d s; ranks 0, 2 are left$", cell.err, re.M)
    assert cell.err.count("DeathWarning") == 2
    later = surviving.ok("left[0], left[2], type(left[1]).__name__, left[1].rank, str(left[1])").result or ""
    for said in ("([0, 2],\n [0, 2],\n 'PeerError',\n 1,", "rank 1 is dead: it was killed by SIGKILL after "):
        assert said in later
    assert surviving.ok("%%malt\nmalt.allreduce(r, 'sum')").texts == ["[0] 2"]
    assert re.search(r"^ +1 +\d+ was killed by SIGKILL after \d", surviving.ok("%malt status").out, re.M)


def test_rank_0_dies_between_cells_and_the_next_rank_shows_its_results(surviving: Kernel) -> None:
    pids = surviving.pids()
    os.kill(pids[0], signal.SIGKILL)
    assert wait_for_end(pids[0])
    cell = surviving.ok("%%malt\nmalt.barrier()\nmalt.first()")
    assert cell.texts == ["[1] True"]
    assert "rank 0 was killed by SIGKILL" in cell.err


def test_survivors_are_brought_in_step_and_can_be_interrupted(surviving: Kernel) -> None:
    surviving.ok("%%malt\nif r == 2: os.kill(os.getpid(), signal.SIGKILL)\nmalt.barrier()")
    cell = surviving.run("%%malt\nif r == 1: raise KeyError('mine')\nmalt.barrier()")
    assert "KeyError" in cell.error
    wait = surviving.start("%%malt\nprint('begun', flush=True)\nwhile True: malt.barrier()")
    for r in (0, 1):
        surviving.wait_for(rf"\[{r}\] begun")
    surviving.interrupt()
    assert wait().name == "Interrupted"
    assert surviving.ok("%%malt\nmalt.allreduce(r, 'sum')").texts == ["[0] 1"]


def test_the_last_rank_dies(surviving: Kernel) -> None:
    surviving.ok("%%malt\nif r: os.kill(os.getpid(), signal.SIGKILL)\nmalt.barrier()")
    cell = surviving.run("%%malt\nos.kill(os.getpid(), signal.SIGKILL)")
    assert cell.name == "RankDiedError"
    assert "rank 0 was killed by SIGKILL" in cell.error
    assert "other" not in cell.error  # they had died before
    assert surviving.ok("%%malt\nlen(malt.alive())").texts == [f"[0] {N}"]  # new ones, as before


def test_a_rank_that_ends_by_itself_ends_all(surviving: Kernel) -> None:
    cell = surviving.run("%%malt\nif r == 1: os._exit(3)\nmalt.barrier()")
    assert cell.name == "RankDiedError"
    assert "rank 1 ended with exit code 3" in cell.error


def test_on_death_is_said_once(surviving: Kernel) -> None:
    surviving.ok("%%malt --on-death continue\npass")
    cell = surviving.run("%%malt --on-death stop\npass")
    assert "--on-death stop, but 3 ranks run with --on-death continue" in cell.error
    assert "Did you mean 'stop'?" in surviving.run("%%malt --on-death stp\npass").error
    assert "goes with restart" in surviving.run("%malt status --on-death stop").error
    surviving.ok(f"%malt restart -n {N} --on-death stop")


def test_only_malt_run_replaces_ranks(surviving: Kernel) -> None:
    for command in ("%%malt --on-death replace\npass", "%malt restart --on-death replace"):
        error = surviving.run(command).error
        assert "'replace' is for malt run\nonly malt run starts a new process in the place of a dead rank\n" in error
    assert surviving.ok("%%malt\nmalt.allreduce(1, 'sum')").texts == [f"[0] {N}"]
    surviving.ok("%unload_ext malt\n%load_ext malt\nimport os\nos.environ['MALT_ON_DEATH'] = 'replace'")
    assert "MALT_ON_DEATH='replace' is for malt run" in surviving.run(f"%%malt -n {N}\npass").error
    surviving.ok("del os.environ['MALT_ON_DEATH']")
