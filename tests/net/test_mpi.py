"""Ranks that Open MPI and MPICH have started on several hosts, by ssh, and on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG
from net.across import JOB, means
from net.ssh import Ssh
from net.starting import mpirun

from malt._sim import Network


@pytest.mark.parametrize("name", ["openmpi", "mpich-4", "mpich-5"])
def test_on_several_hosts(name: str, ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    places = ["h0", "h0", "h1"]
    with Network(2) as net:
        argv, env = mpirun(name, ssh(net.hosts), tmp_path, places)
        argv += [sys.executable, "job.py"]
        env = {**os.environ, **env}
        job = net.hosts[0].start(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = job.communicate(timeout=LONG)
    assert sorted(f"[{line[0]}] {line}" for line in out.splitlines()) == means(places), err
    assert job.returncode == 0
