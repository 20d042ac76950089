"""Ranks that Open MPI and MPICH have started on several hosts, by ssh, and on one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from launching import LONG
from net.across import JOB, Ssh, means
from net.environments import environment

from malt._sim import Network

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def command(name: str, ssh: str, folder: Path, places: Sequence[str]) -> list[str]:
    """Return the command that starts ranks on these hosts."""
    program = environment(name)
    wrapper = folder / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {ssh} "$@"\n')
    wrapper.chmod(0o755)
    hosts = ",".join(f"{host}:{places.count(host)}" for host in dict.fromkeys(places))
    if name == "mpich":
        return [program, "-launcher", "ssh", "-launcher-exec", str(wrapper), "-hosts", hosts, "-n", str(len(places))]
    agent = ["--prtemca", "plm_ssh_agent", str(wrapper)]
    return [program, *agent, "--bind-to", "none", "--host", hosts, "-n", str(len(places))]


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_on_several_hosts(name: str, ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    places = ["h0", "h0", "h1"]
    with Network(2) as net:
        argv = [*command(name, ssh(net.hosts), tmp_path, places), sys.executable, "job.py"]
        env = {**os.environ, **AS_ROOT}
        job = net.hosts[0].start(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = job.communicate(timeout=LONG)
    assert sorted(f"[{line[0]}] {line}" for line in out.splitlines()) == means(places), err
    assert job.returncode == 0
