"""Whom other launchers make of a process, and how its ranks find each other: by the environment alone."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable, Mapping

import pytest
from launching import LONG

import malt
from malt import _launchers
from malt._job import identity
from malt._launchers import channel, kubernetes, pmi, slurm
from malt._ranks import addresses

# As they were, less what nobody looks at.
TORCHRUN = {
    "GROUP_RANK": "0",
    "GROUP_WORLD_SIZE": "1",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "38277",
    "RANK": "1",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_RUN_ID": "7d332d8e",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
    "WORLD_SIZE": "2",
}
TORCHRUN_NODES = {**TORCHRUN, "GROUP_WORLD_SIZE": "2", "RANK": "3", "WORLD_SIZE": "4"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_COMM_WORLD_NODE_RANK": "1",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-vm-5696@1",
    "PMIX_RANK": "1",
    "PMIX_SERVER_URI4": "prterun-vm-5696@0.0;tcp4://127.0.0.1:47341",
}
OPEN_MPI_HOSTS = {**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
MPICH = {
    "HYDI_CONTROL_FD": "7",
    "MPI_LOCALNRANKS": "2",
    "MPI_LOCALRANKID": "1",
    "PMI_FD": "11",
    "PMI_HOSTNAME": "vm",
    "PMI_RANK": "1",
    "PMI_SIZE": "2",
}
MPICH_HOSTS = {**MPICH, "PMI_RANK": "3", "PMI_SIZE": "4"}
SBATCH = {
    "SLURM_CLUSTER_NAME": "c",
    "SLURM_JOB_ID": "12",
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
}
SRUN = {
    **SBATCH,
    "SLURM_LOCALID": "1",
    "SLURM_PROCID": "3",
    "SLURM_STEP_ID": "1",
    "SLURM_STEP_NODELIST": "n[2-3]",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NUM_TASKS": "4",
}
SRUN_NODE = {**SRUN, "SLURM_STEP_NODELIST": "n2", "SLURM_STEP_NUM_NODES": "1"}
POD = {"HOSTNAME": "train-3", "JOB_COMPLETION_INDEX": "3", "MALT_SIZE": "4", "KUBERNETES_PORT": "tcp://10.96.0.1:443"}
MALT = {"MALT_RANK": "0", "MALT_SIZE": "2"}
SECRET = "the user's own secret"


@pytest.mark.parametrize(
    ("env", "by", "rank", "size", "together", "carrier"),
    [
        (TORCHRUN, "torchrun", 1, 2, True, "torchstore"),
        (TORCHRUN_NODES, "torchrun", 3, 4, False, "torchstore"),
        (OPEN_MPI, "mpirun", 1, 2, True, "pmix"),
        (OPEN_MPI_HOSTS, "mpirun", 3, 4, False, "pmix"),
        (MPICH, "mpiexec", 1, 2, True, "pmi"),
        (MPICH_HOSTS, "mpiexec", 3, 4, False, "pmi"),
        (SRUN_NODE, "srun", 3, 4, True, ""),
        (SRUN, "srun", 3, 4, False, ""),
        ({**SRUN, "PMI_FD": "5", "PMI_RANK": "3", "PMI_SIZE": "4"}, "srun", 3, 4, False, "pmi"),
        ({**SRUN, "PMIX_NAMESPACE": "slurm.pmix.12.1"}, "srun", 3, 4, False, "pmix"),
        (POD, "Kubernetes", 3, 4, False, ""),
        # One in another: the inner.
        ({**SRUN, **TORCHRUN, **OPEN_MPI}, "torchrun", 1, 2, True, "torchstore"),
        ({**SRUN, **OPEN_MPI}, "mpirun", 1, 2, True, "pmix"),
        ({**SRUN, **MPICH}, "mpiexec", 1, 2, True, "pmi"),
        ({**POD, **TORCHRUN}, "torchrun", 1, 2, True, "torchstore"),
    ],
)
def test_who_it_is(env: Mapping[str, str], by: str, rank: int, size: int, together: bool, carrier: str) -> None:
    found = _launchers.described(env)
    assert found is not None
    assert found[:4] == (by, rank, size, together)
    assert found.channel == carrier


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"},  # somebody's own
        {"PMI_RANK": "1", "PMI_SIZE": "4"},
        SBATCH,
        {**SRUN, "SLURM_STEP_ID": "4294967291"},  # a batch script of a newer Slurm
        {**SRUN, "SLURM_STEP_ID": "4294967290"},  # salloc with an interactive step
        {**POD, "MALT_SIZE": "1"},
        *({**env, **MALT} for env in (TORCHRUN, OPEN_MPI, MPICH, SRUN, POD)),  # malt run in one of them
        *({**env, "MALT_SIZE": "1"} for env in (TORCHRUN, OPEN_MPI, MPICH, SRUN)),  # told to be alone
    ],
)
def test_what_is_no_launcher(env: Mapping[str, str]) -> None:
    assert _launchers.described(env) is None


@pytest.mark.parametrize(
    ("env", "name"),
    [(TORCHRUN, "WORLD_SIZE"), (OPEN_MPI, "OMPI_COMM_WORLD_RANK"), (MPICH, "PMI_SIZE"), (SRUN, "SLURM_PROCID")],
)
def test_what_is_no_number(env: Mapping[str, str], name: str) -> None:
    with pytest.raises(ValueError, match=rf"^malt: {name}='many'\na launcher should have set it to a whole number$"):
        _launchers.described({**env, name: "many"})


# ------------------------------------------------------------------ where they meet


def joining(env: Mapping[str, str]) -> dict[str, str]:
    found = _launchers.described(env)
    assert found is not None
    return _launchers.joining(found, env, 1.0)


@pytest.mark.parametrize(
    ("env", "rank", "named"),
    [
        (TORCHRUN, "RANK", ["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"]),
        (OPEN_MPI, "OMPI_COMM_WORLD_RANK", ["PMIX_NAMESPACE"]),
        (SRUN_NODE, "SLURM_PROCID", ["SLURM_JOB_ID", "SLURM_STEP_ID"]),
    ],
)
def test_ranks_of_one_machine_meet_where_their_job_is_called(
    env: Mapping[str, str], rank: str, named: list[str]
) -> None:
    one, other = joining({**env, rank: "0"}), joining({**env, rank: "1"})
    assert one["store"].startswith("local:")
    assert (one["store"], one["token"]) == (other["store"], other["token"])
    for name in named:
        assert joining({**env, name: "9"})["store"] != one["store"]


def test_what_the_user_says_comes_first() -> None:
    said = {"MALT_STORE": "a:1", "MALT_TOKEN": "x"}
    for env in (TORCHRUN_NODES, OPEN_MPI_HOSTS, MPICH_HOSTS, SRUN, POD):
        told = joining({**env, **said})
        assert (told["rank"], told["size"], told["store"], told["token"]) == ("3", "4", "a:1", "x")
    assert joining({**TORCHRUN, "MALT_TOKEN": "x"})["token"] == "x"


def test_one_rank_meets_nobody() -> None:
    assert joining({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}) == {"rank": "0", "size": "1"}


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("n1", "n1"),
        ("n[1-3]", "n1"),
        ("gpu[008-011,14],login1", "gpu008"),
        ("a-b.c[7,9]", "a-b.c7"),
        ("rack[0-1]n[00-15],x", "rack0n00"),
        ("n2,n[4-5]", "n2"),
        ("", ""),
    ],
)
def test_the_first_node(nodes: str, host: str) -> None:
    assert slurm.first(nodes) == host


def test_the_port_of_a_slurm_step() -> None:
    assert joining({**SRUN, "MALT_TOKEN": "x"})["store"] == "n2:20769"
    assert joining({**SRUN, "MALT_TOKEN": "x", "SLURM_STEP_RESV_PORTS": "12004-12005"})["store"] == "n2:12004"
    neighbours = {
        slurm._port({"SLURM_JOB_ID": str(job), "SLURM_STEP_ID": str(step)}) for job in range(100) for step in range(64)
    }
    assert len(neighbours) == 6400
    assert neighbours <= set(slurm.PORTS)


@pytest.mark.parametrize(
    ("hosts", "store"),
    [
        (
            "127.0.0.1 localhost\n10.1.0.9\ttrain-3.ranks.default.svc.cluster.local\ttrain-3\n",
            "train-0.ranks.default.svc",
        ),
        ("10.1.0.9 train-3\n", ""),  # no subdomain
        ("", ""),
    ],
)
def test_the_first_pod(hosts: str, store: str) -> None:
    found = kubernetes.started(POD, hosts)
    assert found is not None
    assert found.store == (f"{store}.cluster.local:29600" if store else "")


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({**TORCHRUN_NODES, "TORCHELASTIC_USE_AGENT_STORE": "False"}, ["nothing tells them where", "MALT_STORE"]),
        (TORCHRUN_NODES, ["4 ranks on several machines, which need a secret", "`malt token`", "before torchrun"]),
        ({**OPEN_MPI_HOSTS, "PMIX_NAMESPACE": "x", "PMIX_PREFIX": "/nowhere"}, ["mpirun -x NAME", "MALT_TOKEN"]),
        ({**MPICH_HOSTS, "PMI_FD": "987"}, ["PMI_FD=987 is not a socket", "mpiexec -genvlist NAME"]),
        (SRUN, ["need a secret", "n2:20769, where they meet", "`malt token`", "before srun"]),
        (POD, ["MALT_STORE to a name of rank 0", "HOST:PORT", "under env: in the pod's template"]),
        ({**POD, "MALT_STORE": "a:1"}, ["need a secret"]),
        ({k: v for k, v in POD.items() if k != "MALT_SIZE"}, ["pod 3 of an indexed job", "MALT_SIZE to the job's"]),
    ],
)
def test_what_to_do_where_ranks_cannot_find_each_other(env: Mapping[str, str], said: list[str]) -> None:
    with pytest.raises(malt.UnsupportedError) as error:
        joining(env)
    assert all(part in str(error.value) for part in said), error.value


@pytest.mark.parametrize("env", [TORCHRUN, TORCHRUN_NODES])
def test_torchrun_does_not_let_ranks_go_on(env: Mapping[str, str]) -> None:
    found = _launchers.described(env)
    assert found is not None
    with pytest.raises(malt.UnsupportedError) as error:
        _launchers.joining(found, env, 1.0, "continue")
    what, where, do = str(error.value).splitlines()
    assert what == "malt: on_death=continue is not possible under torchrun"
    assert where == "torchrun ends all ranks when one ends with an error"
    assert "malt run --on-death continue" in do


@pytest.mark.parametrize("env", [OPEN_MPI, SRUN_NODE])
def test_other_launchers_let_ranks_go_on(env: Mapping[str, str]) -> None:
    found = _launchers.described(env)
    assert found is not None
    assert _launchers.joining(found, env, 1.0, "continue") == joining(env)


# ------------------------------------------------------------------ what a channel carries


@pytest.mark.parametrize("env", [TORCHRUN_NODES, OPEN_MPI_HOSTS, MPICH_HOSTS])
@pytest.mark.parametrize("rank", [0, 3])
def test_a_token_of_the_users_goes_into_no_channel(
    env: Mapping[str, str], rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = []

    def share(env: Mapping[str, str], rank: int, size: int, word: str, seconds: float) -> str:
        carried.append(word)
        return word if rank == 0 else "10.0.0.1:7"

    monkeypatch.setattr(channel, "named", lambda name: share)
    told = joining(
        {**env, **dict.fromkeys(("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"), str(rank)), "MALT_TOKEN": SECRET}
    )
    assert told["token"] == SECRET
    assert SECRET not in carried[0]
    assert told["store"] == (carried[0] or "10.0.0.1:7")
    if rank == 0:
        for fd in told["store_fd"].split(","):
            os.close(int(fd))


@pytest.mark.parametrize(
    ("env", "word", "why"),
    [
        ({}, "10.0.0.1:7", "MALT_TOKEN is set on rank 0, and not on rank 3"),
        ({"MALT_TOKEN": SECRET}, "drawn@10.0.0.1:7", "MALT_TOKEN is set on rank 3, and not on rank 0"),
    ],
)
def test_a_token_that_some_ranks_lack(
    env: Mapping[str, str], word: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "named", lambda name: lambda *_: word)
    with pytest.raises(malt.UnsupportedError, match=why):
        joining({**OPEN_MPI_HOSTS, **env})


# ------------------------------------------------------------------ PMI


def at_the_ninth_byte(line: socket.socket, data: bytes) -> None:
    line.sendall(data[:9])
    line.sendall(data[9:])


def a_byte_at_a_time(line: socket.socket, data: bytes) -> None:
    """Send each byte once the one before it has been read."""
    for at in range(len(data)):
        line.sendall(data[at : at + 1])
        until = time.monotonic() + LONG
        while unread(line) and time.monotonic() < until:
            time.sleep(0)


def unread(line: socket.socket) -> int:
    """Return how much memory holds what the other end of a socket pair has not read."""
    held: int = struct.unpack("i", fcntl.ioctl(line, termios.TIOCOUTQ, bytes(4)))[0]
    return held


Deliver = Callable[[socket.socket, bytes], None]


class Hydra(threading.Thread):
    """The end of PMI that a launcher has, for one rank; in which pieces its answers come is the test's choice."""

    def __init__(self, answers: Mapping[str, str], deliver: Deliver = at_the_ninth_byte) -> None:
        super().__init__(daemon=True)
        self.ours, self.theirs = socket.socketpair()
        self.asked: list[str] = []
        self._deliver = deliver
        self._answers = {
            "finalize": "cmd=finalize_ack rc=0",
            "get_my_kvsname": "cmd=my_kvsname rc=0 kvsname=kvs_1",
            "put": "cmd=put_result rc=0",
            "barrier_in": "cmd=barrier_out tag=0",
            "get": "cmd=get_result rc=0 value=secret@[fd00::1]:7,10.0.0.1:7",
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            **answers,
        }

    def run(self) -> None:
        for line in self.ours.makefile():
            self.asked.append(line.strip())
            answer = self._answers[line.split()[0].removeprefix("cmd=")]
            if answer:
                self._deliver(self.ours, answer.encode() + b"\n")


def asked(
    rank: int, env: Mapping[str, str] = MPICH, deliver: Deliver = at_the_ninth_byte, **answers: str
) -> tuple[str, list[str]]:
    """Let a rank share a word, an MPI be initialised after it, and the rank end."""
    hydra = Hydra(answers, deliver)
    hydra.start()
    with hydra.ours:
        with hydra.theirs:
            told = {**env, "PMI_FD": str(hydra.theirs.fileno())}
            word = channel.named("pmi")(told, rank, 2, "mine", 0.5)
            with hydra.theirs.makefile("rw") as mpi:
                for command, answer in (
                    ("init pmi_version=1 pmi_subversion=1", "response_to_init"),
                    ("put", "put_result"),
                ):
                    mpi.write(f"cmd={command}\n")
                    mpi.flush()
                    assert mpi.readline().startswith(f"cmd={answer} ")
        hydra.join(LONG)
        return word, hydra.asked


@pytest.mark.parametrize("deliver", [at_the_ninth_byte, a_byte_at_a_time])
@pytest.mark.parametrize("env", [MPICH, SRUN])
def test_pmi_is_introduced_to_once_and_told_goodbye(env: Mapping[str, str], deliver: Deliver) -> None:
    exchange = ["cmd=barrier_in", "cmd=get kvsname=kvs_1 key=malt"]
    begin, end = ["cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname"], ["cmd=put", "cmd=finalize"]
    word = "secret@[fd00::1]:7,10.0.0.1:7"
    put = "cmd=put kvsname=kvs_1 key=malt value=mine"
    assert asked(0, env, deliver) == (word, [*begin, put, *exchange, *end])
    assert asked(1, env, deliver) == (word, [*begin, *exchange, *end])


def test_an_answer_is_taken_by_itself() -> None:
    """What comes with it is the answer to the next command: of MALT, or of an MPI with the same socket."""
    next_one = "cmd=get_result rc=0 value=early"
    word, said = asked(1, barrier_in=f"cmd=barrier_out tag=0\n{next_one}", get="")
    assert word == "early"
    assert "cmd=get kvsname=kvs_1 key=malt" in said


def test_the_relay_passes_on_each_of_two_commands() -> None:
    """An introduction with a command after it in one write; the two answers may come in one as well."""
    hydra = Hydra({})
    hydra.start()
    with hydra.ours:
        with hydra.theirs:
            channel.named("pmi")({**MPICH, "PMI_FD": str(hydra.theirs.fileno())}, 0, 2, "mine", 0.5)
            hydra.theirs.sendall(b"cmd=init pmi_version=1 pmi_subversion=1\ncmd=put\n")
            with hydra.theirs.makefile() as mpi:
                assert mpi.readline() == "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
                assert mpi.readline() == "cmd=put_result rc=0\n"
        hydra.join(LONG)
    assert hydra.asked[-2:] == ["cmd=put", "cmd=finalize"]


def test_an_mpi_that_speaks_pmi_2_is_refused_after_pmi_1() -> None:
    """The launcher would not answer it, or end: what it says does not get there."""
    hydra = Hydra({})
    hydra.start()
    with hydra.ours:
        with hydra.theirs:
            channel.named("pmi")({**MPICH, "PMI_FD": str(hydra.theirs.fileno())}, 0, 2, "mine", 0.5)
            with hydra.theirs.makefile("rw") as mpi:
                mpi.write("cmd=init pmi_version=2 pmi_subversion=0\n")
                mpi.flush()
                assert mpi.readline() == "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=1\n"
                assert mpi.readline() == ""  # it goes on all the same, as Slurm's libpmi2 does, and finds the end
        hydra.join(LONG)
    assert hydra.asked[-1] == "cmd=finalize"
    assert not any("pmi_version=2" in line for line in hydra.asked)


def test_nothing_is_said_to_a_launcher_to_which_mpi_speaks_pmi_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pmi, "_mpi", lambda: True)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        env = {**MPICH, "PMI_FD": str(theirs.fileno()), "MPIR_CVAR_PMI_VERSION": "2"}
        with pytest.raises(channel.ChannelError, match="MPI speaks PMI-2"):
            channel.named("pmi")(env, 0, 2, "mine", 0.5)
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


@pytest.mark.parametrize(
    "pieces", [[b"c", b"md=init pmi_version=1 pmi_subversion=1\n"], [b"cmd=init ", b"pmi_version=1 \n"]]
)
def test_the_relay_waits_for_a_whole_command(pieces: list[bytes]) -> None:
    """Slurm takes what it reads at once for a whole command, so each goes there in one piece."""
    hydra = Hydra({})
    hydra.start()
    with hydra.ours:
        with hydra.theirs:
            channel.named("pmi")({**MPICH, "PMI_FD": str(hydra.theirs.fileno())}, 0, 2, "mine", 0.5)
            for piece in pieces:
                hydra.theirs.sendall(piece)
            assert hydra.theirs.recv(100) == b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
            assert os.get_blocking(hydra.theirs.fileno())
        hydra.join(LONG)
    assert [line for line in hydra.asked if line.startswith("cmd=init")] == ["cmd=init pmi_version=1 pmi_subversion=1"]


def test_mpiexec_on_one_machine_hears_nothing_of_its_ranks() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        told = [joining({**MPICH, "PMI_FD": str(theirs.fileno()), "PMI_RANK": rank}) for rank in "01"]
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)
    assert told[0]["store"].startswith("local:")
    assert told[0]["store"] == told[1]["store"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"get": "cmd=get_result rc=-1 msg=key_malt_not_found"}, "key_malt_not_found"),
        ({"barrier_in": ""}, "not all ranks reached the PMI barrier within 0.5 s"),
        ({"get_my_kvsname": "nonsense"}, "nonsense"),
    ],
)
def test_pmi_that_fails(answers: dict[str, str], said: str) -> None:
    with pytest.raises(channel.ChannelError, match=said):
        asked(1, **answers)


# ------------------------------------------------------------------ addresses


def test_addresses_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [("lo", "127.0.0.1"), ("docker0", "172.17.0.1"), ("eth0", "10.0.0.1"), ("br-12", "172.18.0.1")]
    monkeypatch.setattr(addresses, "_own", lambda: [*devices, ("lo", "::1"), ("eth0", "fd00::1")])
    assert addresses.addresses() == ["10.0.0.1", "fd00::1"]
    monkeypatch.setattr(addresses, "_own", lambda: devices)
    devices.remove(("eth0", "10.0.0.1"))
    assert addresses.addresses() == ["172.17.0.1", "172.18.0.1"]
    del devices[1:]
    assert addresses.addresses() == ["127.0.0.1"]


def test_a_socket_that_listens_where_it_says() -> None:
    listening, where = addresses.listen()
    assert len(listening) == len(where.split(","))
    for one, word in zip(listening, where.split(","), strict=True):
        host, _, port = word.rpartition(":")
        assert one.getsockname()[:2] == (host.strip("[]"), int(port))  # by itself, and not at all addresses
        with one:
            socket.create_connection((host.strip("[]"), int(port)), 5).close()


def test_sockets_listen_where_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [("lo", "127.0.0.1"), ("docker0", "172.17.0.1"), ("eth0", "10.0.0.1"), ("ib0", "10.1.0.1")]
    monkeypatch.setattr(addresses, "_own", lambda: [*devices, ("eth0", "fd00::1")])
    for interface, expected in {
        "ib*": ["10.1.0.1"],
        "eth0": ["10.0.0.1", "fd00::1"],
        "10.1.0.0/16,docker0": ["172.17.0.1", "10.1.0.1"],
        "^eth0": ["10.1.0.1"],
        "^eth0, ib0": ["172.17.0.1"],
        "fd00::1": ["fd00::1"],
    }.items():
        assert addresses.addresses(interface) == expected, interface
    with pytest.raises(ValueError, match=r"MALT_INTERFACE=wlan0 leaves no address of this host\nit has lo 127"):
        addresses.addresses("wlan0")
    listening, where = addresses.listen({"MALT_INTERFACE": "lo"})
    assert [one.getsockname()[0] for one in listening] == ["127.0.0.1"]
    assert where == f"127.0.0.1:{listening[0].getsockname()[1]}"
    listening[0].close()


def test_a_forked_child_is_not_the_rank_that_its_parent_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MALT_")]:
        monkeypatch.delenv(name)
    for name, value in SRUN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(identity.INSIDE, "")  # to be taken back at the end
    monkeypatch.delenv(identity.INSIDE)
    identity._before_fork()
    monkeypatch.setattr(identity, "_pid", -1)  # as in a child
    identity._forked()
    assert identity.inside() == (3, 4, -1, 1)
