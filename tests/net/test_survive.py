"""Survivors under other launchers: the option that each of them needs, and what is refused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from launching import LONG
from net.slurm import Slurm
from net.ssh import Ssh
from net.starting import mpirun

from malt._sim import Host, Network

JOB = """\
import os, signal, sys
import malt
malt.barrier()
if malt.rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
while malt.generation() == 1:
    malt.confirm()
total = malt.allreduce(float(malt.rank()), "sum")
if sys.argv[1:]:
    signal.pause()  # until the launcher ends this rank
with open(f"done-{malt.rank()}", "w") as file:  # a launcher may lose what is printed
    file.write(f"{malt.alive()} {total}")
"""

ALL_GO_ON = {"done-0": "[0, 2] 2.0", "done-2": "[0, 2] 2.0"}

PLACES = ["h0", "h0", "h0"]

# Says that the program was killed, and is not killed itself.
SHELL = ["sh", "-c", '"$@"; exit $?', "sh"]


def done(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("done-*")}


def start(host: Host, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Run a command that starts ranks; return its exit code, and what it wrote."""
    (folder / "job.py").write_text(JOB)
    env = {**os.environ, "MALT_ON_DEATH": "continue", **env}
    job = host.start(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out, _ = job.communicate(timeout=LONG)
    return job.returncode, out


@pytest.mark.parametrize(
    ("name", "options", "shell", "go_on"),
    [
        ("openmpi", ["--enable-recovery"], [], True),
        ("openmpi", [], [], False),
        ("mpich-4", ["-disable-auto-cleanup"], SHELL, True),
        ("mpich-5", ["-disable-auto-cleanup"], SHELL, True),
        # Hydra kills all if a signal has ended one, whatever the option.
        ("mpich-5", ["-disable-auto-cleanup"], [], False),
    ],
)
def test_mpi(name: str, options: list[str], shell: list[str], go_on: bool, ssh: Ssh, tmp_path: Path) -> None:
    with Network(1) as net:
        (program, *argv), env = mpirun(name, ssh(net.hosts), tmp_path, PLACES)
        handed = ["-x", "MALT_ON_DEATH"] if name == "openmpi" else []
        command = [program, *options, *argv, *handed, *shell, sys.executable, "job.py"]
        code, out = start(net.hosts[0], [*command, *([] if go_on else ["wait"])], tmp_path, env)
    assert done(tmp_path) == (ALL_GO_ON if go_on else {}), out
    assert go_on or code != 0, out


WITNESSED = """\
import os, signal, sys
import malt
malt.barrier()
print("joined", flush=True)
if malt.rank() == 0:
    open("go").close()
    os.kill(os.getpid(), signal.SIGKILL)
for generation in range(2, int(sys.argv[1]) + 1):
    while malt.generation() < generation:
        malt.confirm()
    print("generation", generation, flush=True)
print(malt.size(), malt.alive(), malt.allreduce(1.0, "sum"), flush=True)
"""


def process(*variables: bytes) -> int:
    """Return the id of the one process that was started with some variables."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended
            if {*variables} <= {*path.read_bytes().split(b"\0")}:
                found.append(int(path.parent.name))
    (one,) = found
    return one


@pytest.mark.parametrize("dies", [False, True])
def test_malt_run_starts_a_witness_where_a_host_has_no_ranks(dies: bool, ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(WITNESSED)
    os.mkfifo(tmp_path / "go")
    with Network(3) as net:
        malt = str(Path(sys.executable).with_name("malt"))
        hosts = ["-H", "h0:1,h1:2,h2:0", "--on-death", "continue", "--summary", "-x", f"JOB={tmp_path}"]
        generation = "3" if dies else "2"
        argv = [malt, "run", "-q", *hosts, "--ssh", ssh(net.hosts), "job.py", generation]
        job = net.hosts[0].start(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert job.stdout is not None
        said = ""
        for line in job.stdout:
            said += line
            if "] joined" in line and said.count("] joined") == 3:
                (tmp_path / "go").write_text("")  # when rank 0 reads
            if dies and line == "[1] generation 2\n":
                os.kill(process(b"MALT_RANK=3", f"JOB={tmp_path}".encode()), signal.SIGKILL)
        assert job.wait(LONG) == 0, said
    assert "rank 0 on host h0 was killed by SIGKILL after" in said
    assert "; ranks 1 and 2 are left" in said
    assert said.count("] 3 [1, 2] 2.0") == 2, said
    if dies:
        assert "witness 0 on host h2 was killed by SIGKILL after" in said
        assert " died\n" in said
    else:
        assert "witness 0  only votes" in said


def test_srun(tmp_path: Path) -> None:
    with Network(1) as net, Slurm(net.hosts, tmp_path) as slurm:
        for options, go_on in (([], True), (["-K"], False)):
            command = slurm.command("srun", "-n", "3", *options, sys.executable, "job.py", *([] if go_on else ["wait"]))
            code, out = start(net.hosts[0], command, tmp_path, slurm.env)
            assert code != 0, out  # srun's is that of the rank that died
            assert done(tmp_path) == (ALL_GO_ON if go_on else {}), out + slurm.logs()
            for path in tmp_path.glob("done-*"):
                path.unlink()


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch: make torch")
def test_torchrun(tmp_path: Path) -> None:
    with Network(1) as net:
        options = ["--nproc-per-node", "3", "--master-port", "29500", "--monitor-interval", "0.1"]
        command = [sys.executable, "-m", "torch.distributed.run", *options, "job.py"]
        code, out = start(net.hosts[0], command, tmp_path, {"OMP_NUM_THREADS": "1"})
    assert code == 1
    assert "malt.UnsupportedError: malt: on_death=continue is not possible under torchrun" in out
    assert done(tmp_path) == {}


def test_ranks_of_several_hosts_without_shared_memory_are_refused(tmp_path: Path) -> None:
    """As those are that have chosen transport tcp."""
    (tmp_path / "job.py").write_text(JOB)
    with Network(2) as net:
        pods = []
        for host in net.hosts:
            who = {"MALT_RANK": str(host.number), "MALT_SIZE": "2", "MALT_TRANSPORT": "tcp"}
            told = {"MALT_STORE": "h0:29500", "MALT_TOKEN": "0123456789abcdef", "MALT_ON_DEATH": "continue"}
            argv, env = [sys.executable, "job.py"], {**os.environ, **who, **told}
            pods.append(host.start(argv, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True))
        said = [pod.communicate(timeout=LONG)[1] for pod in pods]
    assert [pod.returncode for pod in pods] == [1, 1]
    for err in said:
        assert "malt.UnsupportedError: malt: on_death=continue needs shared memory on each machine" in err


def test_pods_of_an_indexed_job(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with Network(3) as net:
        pods = []
        for host in net.hosts:
            who = {"HOSTNAME": f"train-{host.number}", "JOB_COMPLETION_INDEX": str(host.number), "MALT_SIZE": "3"}
            told = {"MALT_STORE": "h0:29500", "MALT_TOKEN": "0123456789abcdef", "MALT_ON_DEATH": "continue"}
            argv, env = [sys.executable, "job.py"], {**os.environ, **who, **told}
            pods.append(host.start(argv, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True))
        said = [pod.communicate(timeout=LONG)[1] for pod in pods]
    assert [pod.returncode for pod in pods] == [0, -9, 0], said
    assert done(tmp_path) == ALL_GO_ON
