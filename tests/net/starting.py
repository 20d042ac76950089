"""Every way in which two ranks are started: a table of launchers, on the hosts of one network.

An entry gives the commands that start the ranks: one, or one on each host.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from net.environments import environment
from net.slurm import Slurm
from net.ssh import servers

from malt._sim import Host, Network

PYTHON = sys.executable


class Command(NamedTuple):
    """What is to be started, and where."""

    host: Host
    argv: Sequence[str]
    env: Mapping[str, str] = {}


class Ground(ExitStack):
    """Two hosts, an sshd on each and a Slurm, which are started when an entry needs them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.hosts = self.enter_context(Network(2)).hosts
        (folder / "token").write_text("0123456789abcdef")

    @cached_property
    def ssh(self) -> str:
        """The command that leads to the hosts."""
        return self.enter_context(servers(self.folder))(self.hosts)

    @cached_property
    def slurm(self) -> Slurm:
        """A Slurm of both hosts."""
        return self.enter_context(Slurm(self.hosts, self.folder))


def mpirun(name: str, ssh: str, folder: Path, places: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command, less the program, by which an MPI starts ranks on these hosts, and its variables."""
    program = str(environment(name) / "bin" / "mpirun")
    wrapper = folder / "ssh"
    if not wrapper.exists():  # it may be running
        wrapper.write_text(f'#!/bin/sh\nexec {ssh} "$@"\n')
        wrapper.chmod(0o755)
    hosts = ",".join(f"{host}:{places.count(host)}" for host in dict.fromkeys(places))
    if name.startswith("mpich"):
        argv = [program, "-launcher", "ssh", "-launcher-exec", str(wrapper), "-hosts", hosts, "-n", str(len(places))]
        return argv, {}
    agent = ["--prtemca", "plm_ssh_agent", str(wrapper)]
    handed = [word for name in ("PYTHONPATH", "LD_LIBRARY_PATH") for word in ("-x", name)]
    argv = [program, *agent, "--bind-to", "none", *handed, "--host", hosts, "-n", str(len(places))]
    return argv, {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def _malt(ground: Ground, *options: str) -> list[Command]:
    return [Command(ground.hosts[0], [PYTHON, "-m", "malt", "run", "-q", *options])]


def _by_ssh(ground: Ground) -> list[Command]:
    return _malt(ground, "--ssh", ground.ssh, "-H", "h0:1,h1:1")


def _nodes(ground: Ground) -> list[Command]:
    said = ["-n", "1", "--nodes", "2", "--store", f"h0:{_port()}", "--token-file", str(ground.folder / "token")]
    return [
        Command(host, [PYTHON, "-m", "malt", "run", "-q", *said, "--node-rank", str(host.number)])
        for host in ground.hosts
    ]


_ports = iter(range(29500, 29600))


def _port() -> str:
    return str(next(_ports))


def _torchrun(ground: Ground) -> list[Command]:
    if find_spec("torch") is None:
        pytest.skip("needs PyTorch: make torch")
    options = ["--nproc-per-node", "2", "--master-port", _port(), "--monitor-interval", "0.1"]
    argv = [PYTHON, "-m", "torch.distributed.run", *options]
    return [Command(ground.hosts[0], argv, {"OMP_NUM_THREADS": "1"})]


def _mpi(name: str, places: Sequence[str], ground: Ground) -> list[Command]:
    argv, env = mpirun(name, ground.ssh, ground.folder, places)
    return [Command(ground.hosts[0], [*argv, PYTHON], env)]


def _srun(kind: str, ground: Ground) -> list[Command]:
    argv = ground.slurm.command("srun", "-n", "2", "-N", "2", f"--mpi={kind}", PYTHON)
    return [Command(ground.hosts[0], argv, {"SLURM_CONF": ground.slurm.env["SLURM_CONF"]})]


def _pods(ground: Ground) -> list[Command]:
    port = _port()  # in a cluster each job has its own name; here all have that of the host

    def env(host: Host) -> dict[str, str]:
        index = str(host.number)
        said = {"JOB_COMPLETION_INDEX": index, "MALT_SIZE": "2", "HOSTNAME": f"train-{index}"}
        return {**said, "MALT_STORE": f"h0:{port}", "MALT_TOKEN": "0123456789abcdef"}

    return [Command(host, [PYTHON], env(host)) for host in ground.hosts]


LAUNCHERS: Mapping[str, Callable[[Ground], list[Command]]] = {
    "malt run": lambda ground: _malt(ground, "-n", "2"),
    "malt run -H": _by_ssh,
    "malt run --nodes": _nodes,
    "torchrun": _torchrun,
    "openmpi": partial(_mpi, "openmpi", ["h0", "h1"]),
    "mpich-4": partial(_mpi, "mpich-4", ["h0", "h1"]),
    "mpich-5": partial(_mpi, "mpich-5", ["h0", "h1"]),
    "mpich-4 on one host": partial(_mpi, "mpich-4", ["h0", "h0"]),
    "mpich-5 on one host": partial(_mpi, "mpich-5", ["h0", "h0"]),
    "srun --mpi=pmi2": partial(_srun, "pmi2"),
    "srun --mpi=pmix": partial(_srun, "pmix"),
    "pods": _pods,
}
