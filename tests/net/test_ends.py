"""Ranks that end long after the others, by every launcher, with MPI in the process and without.

A launcher that takes the end of one rank for a failure ends the others: their last words are missing,
or the exit status is its own. Each gets 3 s for that, all of them the same 3 s.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest
from launching import LONG
from net.across import alone
from net.environments import mpi4py
from net.starting import LAUNCHERS, Ground

PROGRAM = """\
import sys, time
late, status, mpi = sys.argv[1:]
if mpi == "by hand":  # it comes and goes
    import mpi4py
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
if mpi == "before":
    from mpi4py import MPI
import malt
total = malt.allreduce(malt.rank() + 1, "sum")
if mpi in ("after", "by hand"):
    from mpi4py import MPI
if mpi == "by hand":
    MPI.Init()
if mpi != "without":
    total += MPI.COMM_WORLD.allreduce(malt.rank() + 1)
if mpi == "by hand":
    MPI.Finalize()
if malt.rank() == int(late):
    time.sleep(3)
sys.stdout.write(f"rank {malt.rank()} ends, {total}\\n")  # in one piece
sys.stdout.flush()
if malt.rank() == int(late):
    sys.exit(int(status))
"""

# Which rank ends late, with which status, and which MPI is in the process. A status other than 0 that arrives
# shows that the rank has come to its end; 0 that all have.
ENDS = [("0", "7", "without"), ("1", "0", "without")]
WITH_MPI = [("0", "0", mpi) for mpi in ("before", "after", "by hand")]
OF_MPI = {  # whose library is loaded: PMI-1 is the same protocol whoever speaks it
    "openmpi": "openmpi",
    "mpich-4": "mpich-4",
    "mpich-5": "mpich-5",
    "mpich-4 on one host": "mpich-4",
    "mpich-5 on one host": "mpich-5",
    "srun --mpi=pmi2": "mpich-4",
}

CASES = [(launcher, *end) for launcher in LAUNCHERS for end in ENDS + WITH_MPI * (launcher in OF_MPI)]


class Started:
    """A job that runs."""

    def __init__(self, ground: Ground, launcher: str, late: str, status: str, mpi: str) -> None:
        env = {} if mpi == "without" else mpi4py(OF_MPI[launcher])
        name = "-".join((launcher, late, mpi)).replace(" ", "-")
        self._texts = [ground.folder / f"{name}.{stream}" for stream in ("out", "err")]
        with self._texts[0].open("a") as out, self._texts[1].open("a") as err:
            self._processes = [
                host.start(
                    [*argv, "ends.py", late, status, mpi],
                    cwd=ground.folder,
                    env={**os.environ, **own, **env},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                )
                for host, argv, own in LAUNCHERS[launcher](ground)
            ]

    def end(self) -> tuple[list[int], str, str]:
        """Return the statuses, and what has been written."""
        try:
            codes = [process.wait(LONG) for process in self._processes]
        except TimeoutError as late:
            raise TimeoutError(f"{late}; so far it has written {self._written()}") from None
        return codes, *self._written()

    def _written(self) -> tuple[str, str]:
        out, err = (text.read_text(errors="replace") for text in self._texts)
        return out, err

    def kill(self) -> None:
        """See that it does not outlive the test."""
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture(name="_alone", autouse=True)
def _together() -> None:
    """Let the tests share a network."""


def begun(ground: Ground, case: tuple[str, ...]) -> Started | BaseException:
    """Start a job, or say why it cannot be."""
    try:
        job = Started(ground, *case)
    except (Exception, pytest.skip.Exception) as why:
        return why
    ground.callback(job.kill)
    return job


@pytest.fixture(name="jobs", scope="module")
def _jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, ...], Started | BaseException]]:
    """Start all jobs at once; where one cannot be, its test is told why."""
    alone()
    with Ground(tmp_path_factory.mktemp("ends")) as ground:
        (ground.folder / "ends.py").write_text(PROGRAM)
        jobs = {case: begun(ground, case) for case in CASES}
        yield jobs


@pytest.mark.parametrize(("launcher", "late", "status", "mpi"), CASES)
def test_a_rank_that_ends_late(
    jobs: dict[tuple[str, ...], Started | BaseException], launcher: str, late: str, status: str, mpi: str
) -> None:
    job = jobs[launcher, late, status, mpi]
    if isinstance(job, BaseException):
        raise job
    codes, out, err = job.end()
    total = 3 if mpi == "without" else 6
    assert sorted(re.findall(r"rank \d ends, \d+", out)) == [f"rank {r} ends, {total}" for r in range(2)], (out, err)
    if len(codes) > 1:  # one on each host, where the ranks are in order
        assert codes == [int(status) if rank == int(late) else 0 for rank in range(2)], (out, err)
    elif launcher == "torchrun":  # it says 1 for whatever a rank says
        assert codes == [int(status != "0")], (out, err)
    else:
        assert codes == [int(status)], (out, err)
