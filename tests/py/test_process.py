"""Forks, helper processes, signals and ends: what MALT does with the process it lives in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import jobs
import pytest

# Runs a function in a forked child and gives back what it printed; a child that hangs fails the test.
FORK = """
def forked(do):
    sys.stdout.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.dup2(writer, 1)
        try:
            do()
        except BaseException as e:
            print(type(e).__name__, isinstance(e, RuntimeError), e)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read().strip()
    os.waitpid(pid, 0)
    return text
"""


@pytest.mark.parametrize(
    "call",
    [
        "malt.barrier()",
        "malt.init()",
        "malt.allreduce(1)",
        "malt.Vector(3)",
        "malt.Segment(3)",
        "malt.Graph('ring', 4)",
        "v.sync()",
        "v.gather()",
        "v.gather(lambda own, updates: own)",
        "v.clock",
        "v.stats()",
        "v.close()",
        "v.receivers",
    ],
)
def test_a_forked_child_that_touches_malt_gets_an_error(call: str) -> None:
    said = jobs.run(2, FORK + f"v = malt.Vector(3)\nprint(forked(lambda: {call}))\nv.sync()\n")
    for line in said:
        assert line.startswith("StateError True malt: process ")
        assert "do not survive a fork" in line
        assert "spawn" in line


def test_a_child_forked_while_a_thread_waits_does_not_hang() -> None:
    with jobs.Job(
        2,
        FORK
        + """
v = malt.Vector(3)
if r == 0:
    import threading
    def sync():
        while True:                       # it may be refused while the other thread looks
            try:
                return v.sync()
            except malt.StateError:
                pass
    thread = threading.Thread(target=sync)
    thread.start()
    while True:                           # until the thread is inside, where it waits for rank 1
        try:
            v.stats()
        except malt.StateError:
            break
    print(forked(v.sync), flush=True)
    thread.join()
else:
    sys.stdin.readline()
    v.sync()
""",
    ) as job:
        job.ranks[0].out.wait_for("StateError True malt: process ")
        job.ranks[1].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0]


def test_a_child_forked_while_a_thread_joins_does_not_hang() -> None:
    with jobs.Job(
        2,
        "import os, sys\nimport malt\n"
        + FORK
        + """
if os.environ["MALT_RANK"] == "1":
    sys.stdin.readline()
    malt.init()
else:
    import threading
    thread = threading.Thread(target=malt.init)
    thread.start()
    import malt._lib, malt._job.world
    while not malt._lib.JOB._lock.locked():
        pass
    print(forked(malt.barrier), flush=True)
    print(forked(lambda: print(malt.rank(), malt.size())), flush=True)
    thread.join()
""",
        prelude=False,
    ) as job:
        job.ranks[0].out.wait_for("StateError True malt: process ")
        job.ranks[0].out.wait_for("^0 2$")
        job.ranks[1].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0]


def test_a_forked_child_knows_who_it_is_and_may_compute_with_the_arrays() -> None:
    said = jobs.run(
        3,
        FORK
        + """
v = malt.Vector(np.full(3, 2.0))
print(forked(lambda: print(malt.rank(), malt.size(), malt.local_rank(), malt.generation(), v.array.sum())))
v.sync()
""",
    )
    assert said == [f"{rank} 3 {rank} 1 6.0" for rank in range(3)]


def test_a_forked_child_ends_quietly_through_exit_handlers_and_finalizers() -> None:
    said = jobs.run(
        2,
        """
        import gc
        v = malt.Vector(1000)
        w = v.array
        if os.fork() == 0:
            del v, w
            gc.collect()
            sys.exit()                    # runs what atexit has
        assert os.wait()[1] == 0
        v.array += 1
        assert v.sync() == 1              # the child has closed nothing
        print("fine")
        """,
    )
    assert said == ["fine", "fine"]


def test_multiprocessing_workers_that_do_not_touch_malt_work() -> None:
    said = jobs.run(
        2,
        """
        import multiprocessing
        v = malt.Vector(3)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(abs, [-1, -2]), pool.apply(malt.rank))
        v.sync()
        """,
    )
    assert said == ["[1, 2] 0", "[1, 2] 1"]


def test_a_child_forked_before_the_rank_has_joined_does_not_become_it() -> None:
    said = jobs.run(
        2,
        "import os, sys\nimport malt\n"
        + FORK
        + """
print(forked(lambda: print(malt.rank(), malt.size())))
print(forked(malt.local_rank))
print(forked(malt.barrier))
malt.barrier()
""",
        prelude=False,
    )
    for rank, text in enumerate(said):
        who, unknown, _, _, refused, *_ = text.splitlines()
        assert who == f"{rank} 2"
        assert f"was started by rank {rank} before that rank had joined" in unknown
        assert refused.startswith(f"StateError True malt: this process was started by rank {rank} of 2")


def test_a_fork_while_a_thread_imports_does_not_hang() -> None:
    said = jobs.run(
        1,
        FORK
        + """
import threading
from importlib.machinery import PathFinder
for name in [name for name in os.environ if name.startswith("MALT_")]:
    del os.environ[name]
import malt
inside, go = threading.Event(), threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "malt._launchers.slurm":
            spec = PathFinder.find_spec(name, path)
            real = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (inside.set(), go.wait(), real(module))
            return spec
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: __import__("malt._launchers"))
thread.start()
inside.wait()
threading.Timer(0.2, go.set).start()
signal.alarm(20)                          # for the parent, which would wait for ever
print(forked(lambda: print("fine")))
thread.join()
""".replace("import threading", "import os, signal, sys, threading", 1),
        prelude=False,
    )
    assert said == ["fine"]


def test_a_fork_hook_that_comes_before_ours_does_not_make_the_child_a_rank() -> None:
    said = jobs.run(
        2,
        """
import os, sys
def hook():
    import malt
    try:
        print(malt.rank(), malt.size(), malt.local_rank())
    except malt.StateError as e:
        print(e)
os.register_at_fork(after_in_child=hook)
import malt
"""
        + FORK
        + """
print(forked(lambda: None))
malt.barrier()
""",
        prelude=False,
    )
    for rank, text in enumerate(said):
        assert f"was started by rank {rank} before that rank had joined" in text


def test_a_fork_hook_that_comes_before_ours_may_load_the_library() -> None:
    said = jobs.run(
        1,
        """
import os, sys
for name in [name for name in os.environ if name.startswith("MALT_") and name != "MALT_TEST_MARK"]:
    del os.environ[name]
os.register_at_fork(after_in_child=lambda: malt.Graph("ring", 4))
import malt
"""
        + FORK
        + """
print(forked(lambda: print(malt.allreduce(3, "sum"))))
""",
        prelude=False,
    )
    assert said == ["3"]


def test_a_launcher_may_fork_ranks_of_its_own() -> None:
    with jobs.Job(
        1,
        """
import os, sys
for name in [name for name in os.environ if name.startswith("MALT_") and name != "MALT_TEST_MARK"]:
    del os.environ[name]
import malt, uuid
job = {"MALT_SIZE": "2", "MALT_STORE": "local:" + uuid.uuid4().hex, "MALT_TOKEN": "a-secret-of-its-own"}
for rank in range(2):
    if os.fork() == 0:
        os.environ.update(job, MALT_RANK=str(rank))
        os.write(1, b"%r\\n" % malt.allgather(malt.rank()))
        sys.exit()
for _ in range(2):
    assert os.wait()[1] == 0
""",
        prelude=False,
    ) as launcher:
        (rank,) = launcher.finish()
        assert rank.out.text.split("\n")[:2] == ["[0, 1]", "[0, 1]"], rank.err.text


def test_a_process_that_a_rank_starts_is_no_rank() -> None:
    said = jobs.run(
        2,
        """
        import subprocess
        malt.init()
        from malt._job.identity import RANK_VARIABLES
        assert not os.environ.keys() & set(RANK_VARIABLES)
        code = "import malt; print(malt.rank(), malt.size()); malt.Vector(3)"
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        print(child.stdout.strip(), child.returncode, child.stderr[child.stderr.rindex("malt.StateError") :])
        malt.barrier()
        """,
        env={"MALT_TOGETHER": "0-1"},
    )
    for rank, text in enumerate(said):
        assert text.startswith(f"{rank} 2 1 malt.StateError: malt: this process was started by rank {rank} of 2")


def test_a_rank_may_launch_a_job_of_its_own() -> None:
    said = jobs.run(
        1,
        """
        import subprocess, uuid
        malt.init()
        job = dict(os.environ, MALT_SIZE="2", MALT_STORE="local:" + uuid.uuid4().hex, MALT_TOKEN="a-secret-of-its-own")
        code = "import malt; print(malt.allgather(malt.rank()))"
        children = [
            subprocess.Popen([sys.executable, "-c", code], env=dict(job, MALT_RANK=str(i)), stdout=subprocess.PIPE)
            for i in range(2)
        ]
        print([child.communicate()[0] for child in children])
        """,
    )
    assert said == [r"[b'[0, 1]\n', b'[0, 1]\n']"]


def test_a_process_alone_leaves_the_environment_alone() -> None:
    code = "import malt, os; malt.init(); print(sorted(name for name in os.environ if name.startswith('MALT_')))"
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALT_")}
    result = subprocess.run(
        [sys.executable, "-c", code], env={**env, "MALT_TIMEOUT": "7"}, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "['MALT_TIMEOUT']"


def test_a_mark_that_says_nothing_is_refused() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "import malt; malt.rank()"],
        env={**os.environ, "MALT_INSIDE": "here"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "MALT_INSIDE='here' is not rank,size,local_rank,generation\nUnset it." in result.stderr


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"MALT_RANK": "one"}, "MALT_RANK.*one.*whole number"),
        ({"MALT_RANK": "5"}, "rank 5 of 2"),
        ({"MALT_SIZE": "0"}, "MALT_SIZE"),
        ({"MALT_TIMEOUT": "soon"}, "MALT_TIMEOUT.*soon"),
        ({"MALT_TIMEOUT": "nan"}, "MALT_TIMEOUT.*nan"),
        ({"MALT_TIMEOUT": "-1"}, "MALT_TIMEOUT.*-1"),
        ({"MALT_STORE": "nowhere:x"}, "nowhere"),
        ({"MALT_STORE": ""}, "rank 0 of 2.*malt run"),
    ],
)
def test_an_environment_that_is_wrong(env: dict[str, str], words: str) -> None:
    with jobs.Job(1, "", env={"MALT_SIZE": "2", **env}) as job:
        (rank,) = job.finish()
        assert rank.process.returncode == 1
        assert re.search(f"Error: malt: .*{words}", rank.err.text, re.DOTALL), rank.err.text


def test_init_by_arguments() -> None:
    said = jobs.run(
        2,
        """
import os, sys
job = {name: os.environ.pop("MALT_" + name.upper()) for name in ("rank", "size", "store", "token", "timeout")}
import malt
malt.init(rank=int(job["rank"]), size=int(job["size"]), store=job["store"], token=job["token"], timeout=12.5)
print(malt.rank(), malt.size(), malt._lib.JOB.timeout, "MALT_RANK" in os.environ, os.environ["MALT_INSIDE"])
malt.init()
malt.barrier()
os.execvp(sys.executable, [sys.executable, "-c", "import os; print('MALT_RANK' in os.environ)"])
""",
        prelude=False,
    )
    assert [text.split() for text in said] == [
        [str(rank), "2", "12.5", "False", f"{rank},2,{rank},1", "False"] for rank in range(2)
    ]


def test_an_end_in_good_order_is_no_death() -> None:
    jobs.run(3, "v = malt.Vector(3)\nv.array += 1\nfor _ in range(1 + r):\n    v.sync()\n")


def test_an_end_while_a_daemon_thread_waits_is_in_good_order() -> None:
    with jobs.Job(
        2,
        """
        import threading
        v = malt.Vector(3)
        if r == 0:
            threading.Thread(target=malt.barrier, daemon=True).start()
            while not malt._lib.JOB._lock.locked():
                pass
            sys.exit()
        sys.stdin.readline()
        v.sync()
        try:
            malt.barrier()                # rank 0 may have come so far
            malt.barrier()
        except malt.StateError as e:
            print(e)
        """,
    ) as job:
        assert job.ranks[0].wait() == 0
        assert job.ranks[0].err.finish() == ""
        job.ranks[1].say("go on")
        job.finish()
        assert "rank 0 has ended" in job.ranks[1].out.text, job.ranks[1].err.text


def test_sys_exit_keeps_its_code() -> None:
    with jobs.Job(2, "malt.init()\nsys.exit(3 * r)\n") as job:
        assert [rank.process.returncode for rank in job.finish()] == [0, 3]


def test_an_exception_hook_of_the_users_still_runs() -> None:
    with jobs.Job(
        1,
        """
import sys
sys.excepthook = lambda kind, value, traceback: print("mine", value)
import malt
malt.init()
raise ValueError("oops")
""",
        prelude=False,
    ) as job:
        (rank,) = job.finish()
        assert (rank.process.returncode, rank.out.text.strip()) == (1, "mine oops")


def test_sigterm_is_a_death_that_the_others_are_told() -> None:
    with jobs.Job(2, "malt.init()\nprint('ready')\nmalt.barrier() if r == 0 else sys.stdin.readline()\n") as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[1].signal(signal.SIGTERM)
        ended = job.finish()
        assert ended[1].process.returncode == -signal.SIGTERM
        assert "PeerError" in ended[0].err.text
        assert "rank 1 is dead" in ended[0].err.text


def test_signal_handlers_of_the_users_run_during_waits() -> None:
    with jobs.Job(
        2,
        """
        v = malt.Vector(3)
        def handler(number, frame):
            print("handled")
            try:
                v.sync()
            except malt.StateError as e:
                print("refused", e)
        signal.signal(signal.SIGUSR1, handler)
        print("ready")
        if r == 1:
            sys.stdin.readline()
        v.sync()
        """,
    ) as job:
        for rank in job.ranks:
            rank.out.wait_for("ready")
        job.ranks[0].signal(signal.SIGUSR1)
        job.ranks[0].out.wait_for("handled")
        job.ranks[1].say("go on")
        assert [rank.process.returncode for rank in job.finish()] == [0, 0]


TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "MASTER_ADDR": "localhost",
    "RANK": "{r}",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "{r}",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "{r}",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "{r}",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
SRUN = {
    "SLURM_JOB_ID": "3",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "{r}",
    "SLURM_NTASKS": "9",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_LOCALID": "{r}",
}


@pytest.mark.parametrize(
    ("env", "job"),
    [(TORCHRUN, "MASTER_PORT"), (MPIRUN, "PMIX_NAMESPACE"), (SRUN, "SLURM_CLUSTER_NAME")],
    ids=["torchrun", "mpirun", "srun"],
)
def test_ranks_of_other_launchers(env: dict[str, str], job: str) -> None:
    said = jobs.run(
        2,
        f"""
import os, sys
rank = os.environ["MALT_RANK"]
for name in [name for name in os.environ if name.startswith("MALT_") and name != "MALT_TEST_MARK"]:
    unique = os.environ[name] if name == "MALT_STORE" else None
    if unique:
        os.environ[{job!r}] = unique
    del os.environ[name]
os.environ.update((name, value.format(r=rank)) for name, value in {env}.items() if name != {job!r})
import malt
{FORK}
print(forked(lambda: print(malt.rank(), malt.size())))
print(malt.allgather((malt.rank(), malt.local_rank())), forked(malt.barrier)[:16])
""",
        prelude=False,
    )
    for rank, text in enumerate(said):
        assert text == f"{rank} 2\n[(0, 0), (1, 1)] StateError True"
