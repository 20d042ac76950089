"""Tasks of Slurm as ranks: on one node and several, with PMI and without, and what is none."""

from __future__ import annotations

import glob
import sys
from pathlib import Path

import pytest
from net.across import JOB, means
from net.slurm import Slurm

from malt._sim import Network


def said(out: str) -> list[str]:
    return sorted(f"[{line[0]}] {line}" for line in out.splitlines())


def test_steps(tmp_path: Path) -> None:
    """One Slurm for all, since it takes a second to start."""
    (tmp_path / "job.py").write_text(JOB)
    rank = [sys.executable, "job.py"]
    with Network(3) as net, Slurm(net.hosts, tmp_path) as slurm:
        # With a secret of the user's the address follows from the names; by PMI both are carried.
        for options, env in [
            (["-n", "4", "-N", "3"], {"MALT_TOKEN": "a-secret-of-its-own"}),
            (["-n", "4", "-N", "3"], {"MALT_TOKEN": "a-secret-of-its-own", "MALT_INTERFACE": "eth0"}),
            (["-n", "4", "-N", "3", "--mpi=pmi2"], {}),
        ]:
            done = slurm.run("srun", *options, *rank, **env)
            assert said(done.stdout) == means(["h0", "h0", "h1", "h2"]), done.stderr
        done = slurm.run("srun", "-n", "3", "-N", "1", "-w", "h1", *rank)
        assert said(done.stdout) == means(["h1", "h1", "h1"]), done.stderr
        done = slurm.run("srun", "-n", "2", "-N", "2", *rank)
        assert done.returncode != 0
        assert "any process that reaches h0:" in done.stderr
        assert "Set MALT_TOKEN to what `malt token` prints, before srun, which passes it on" in done.stderr
        # Two steps of a job at once meet apart.
        script = (
            f"#!/bin/sh\nsrun -n 2 -N 2 --overlap {' '.join(rank)} &\nsrun -n 2 -N 2 --overlap {' '.join(rank)}\nwait\n"
        )
        (tmp_path / "two.sh").write_text(script)
        for _ in range(3):  # a slurmd may close the connection by which srun launches: Slurm ends such steps
            done = slurm.run("sbatch", "--wait", "-N", "2", "-o", "two.out", "two.sh", MALT_TOKEN="a-secret-of-its-own")
            two = (tmp_path / "two.out").read_text()
            if "Task launch for StepId" not in two:
                break
        assert said(two) == sorted(2 * means(["h0", "h1"])), done.stderr + two + slurm.logs()
        # A batch script is no rank, whatever it starts itself, and malt run in it makes ranks of its own.
        (tmp_path / "one.sh").write_text(f"#!/bin/sh\n{' '.join(rank)}\n{sys.executable} -m malt run -q -n 2 job.py\n")
        done = slurm.run("sbatch", "--wait", "-n", "4", "-o", "one.out", "one.sh")
        alone, *ranks = (tmp_path / "one.out").read_text().splitlines()
        assert alone == "0 0 h0 [0.0, 0.0, 0.0]", done.stderr
        assert sorted(ranks) == means(["h0", "h0"])


@pytest.mark.skipif(
    not glob.glob("/usr/lib/*/pmix2/lib/libpmix.so"),
    reason="needs what Slurm loads for --mpi=pmix: apt install libpmix-dev",
)
def test_pmix(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with Network(3) as net, Slurm(net.hosts, tmp_path) as slurm:
        done = slurm.run("srun", "-n", "4", "-N", "3", "--mpi=pmix", sys.executable, "job.py")
        assert said(done.stdout) == means(["h0", "h0", "h1", "h2"]), done.stderr
