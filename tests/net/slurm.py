"""A Slurm of one's own, whose nodes are hosts of a simulated network."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from launching import LONG

from malt._sim import Host, kernel

CONFIG = """\
ClusterName=test
SlurmctldHost={first}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={nodes} CPUs=16
PartitionName=all Nodes=ALL Default=YES State=UP
"""

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")


class Slurm(ExitStack):
    """Controller and nodes; they have ended when the block is left.

    Parameters
    ----------
    hosts : sequence of Host
        The nodes; the controller is on the first.
    folder : Path
        For all that they write.
    """

    def __init__(self, hosts: Sequence[Host], folder: Path) -> None:
        super().__init__()
        path = f"{os.environ.get('PATH', '')}:/usr/sbin"
        self._programs = {name: shutil.which(name, path=path) for name in PROGRAMS}
        missing = [name for name, found in self._programs.items() if found is None]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}: apt install slurmctld slurmd slurm-client munge")
        if os.geteuid() != 0 or kernel.own_user() is not None:
            pytest.skip("needs root, as which slurmd runs")
        self._hosts = hosts
        self._folder = folder
        self.env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def __enter__(self) -> Slurm:
        folder = self._folder
        key = folder / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)
        (folder / "state").mkdir()
        for host in self._hosts:
            (folder / f"tmp-{host.name}").mkdir()
        text = CONFIG.format(folder=folder, first=self._hosts[0].name, nodes=",".join(h.name for h in self._hosts))
        (folder / "slurm.conf").write_text(text)
        files = [
            f"--{what}={folder}/munge.{what.split('-')[0]}" for what in ("socket", "pid-file", "log-file", "seed-file")
        ]
        self._start(self._hosts[0], "munged", "--foreground", "--force", f"--key-file={key}", *files)
        self._start(self._hosts[0], "slurmctld", "-D")
        for host in self._hosts:
            self._start(host, "slurmd", "-D", "-N", host.name)
        self._wait()
        return self

    def _start(self, host: Host, name: str, *arguments: str) -> None:
        with open(self._folder / f"{name}-{host.name}.log", "w") as log:
            process = host.start([self._programs[name], *arguments], env=self.env, stdout=log, stderr=log)  # type: ignore[list-item]
        self.callback(process.wait)
        self.callback(process.kill)

    def _wait(self) -> None:
        """Return once all nodes are idle."""
        until = time.monotonic() + LONG
        while True:
            said = self.run("sinfo", "--noheader", "--format=%t", "--Node").stdout
            if said.split() == ["idle"] * len(self._hosts):
                return
            if time.monotonic() > until:
                raise TimeoutError(f"the nodes of Slurm are {said.split()}:\n{self.logs()}")
            time.sleep(0.05)

    def logs(self) -> str:
        """Return the end of what each daemon wrote."""
        return "".join(f"{path.name}:\n{path.read_text()[-2000:]}" for path in self._folder.glob("*.log"))

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return one of Slurm's commands, which wants `env`."""
        return [self._programs[name], *arguments]  # type: ignore[list-item]

    def run(self, name: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands on the first host."""
        process = self._hosts[0].start(
            self.command(name, *arguments),
            env=self.env | env,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        out, err = process.communicate(timeout=LONG)
        return subprocess.CompletedProcess(name, process.returncode, out, err)
