"""Ranks that Open MPI and MPICH have started on several hosts, by ssh, and on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG
from net.across import JOB, means
from net.environments import mpi4py
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


ONE_CONNECTION = """\
from mpi4py import MPI
import subprocess
import sys

def refused(*_, **__):
    raise AssertionError("a process is started, which would be a second user of PMIx with this rank")

subprocess.run = refused
import malt
sys.stdout.write(f"{malt.allreduce(malt.rank() + 1, 'sum')}\\n")
"""


STAYS = """\
import os, re, socket, stat, sys
import malt
malt.init()
uris = [uri for name, uri in os.environ.items() if name.startswith("PMIX_SERVER_URI")]
server = {int(port) for uri in uris for port in re.findall(r":([0-9]+)$", uri)}
ends = []
for fd in range(100):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            ends.append(socket.socket(fileno=os.dup(fd)).getpeername()[1:2])
    except OSError:  # no descriptor, or a socket that listens
        pass
open_still = sum((port,) in ends for port in server)
malt.barrier()
sys.stdout.write(f"{len(server)} server, {open_still} connection\\n")
"""


def started(ssh: Ssh, folder: Path, program: str, env: dict[str, str]) -> tuple[str, str, int]:
    """Run a program as two ranks of Open MPI on two hosts; return what they write, and the status."""
    (folder / "job.py").write_text(program)
    with Network(2) as net:
        argv, own = mpirun("openmpi", ssh(net.hosts), folder, ["h0", "h1"])
        argv += [sys.executable, "job.py"]
        env = {**os.environ, **own, **env}
        job = net.hosts[0].start(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = job.communicate(timeout=LONG)
    return out, err, job.returncode


def test_the_connection_by_which_ranks_meet_stays_open(ssh: Ssh, tmp_path: Path) -> None:
    """If it is closed too soon after the goodbye, an MPI that comes later waits for ever: 20 of 150 jobs."""
    out, err, status = started(ssh, tmp_path, STAYS, {})
    assert (out, status) == ("1 server, 1 connection\n" * 2, 0), err


def test_ranks_meet_by_the_connection_of_an_mpi_that_came_first(ssh: Ssh, tmp_path: Path) -> None:
    """A second one lets some jobs hang in MPI_Finalize: 11 of 52, two short ranks on two hosts."""
    out, err, status = started(ssh, tmp_path, ONE_CONNECTION, mpi4py("openmpi"))
    assert (out, status) == ("3\n3\n", 0), err
