"""``malt sim``: what its programs get and say, and that nothing is left of it, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from launching import LONG, MARK, marked, soon

import malt

MALT = Path(sys.executable).with_name("malt")

# What a program of a user may do to stay: a session of its own, with no parent left, deaf to what is polite.
STAYING = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(1, b"stays\\n")
    time.sleep(1000)
os.wait()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.write(1, b"ready\\n")
time.sleep(1000)
"""


def sim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([MALT, "sim", *arguments], capture_output=True, text=True, timeout=LONG, check=False)


def test_programs_are_told_where_they_are() -> None:
    script = 'echo "$(hostname) $MALT_SIM_HOST/$MALT_SIM_HOSTS $MALT_SIM_NAMES $MALT_SIM_ADDRESSES"; echo err >&2'
    done = sim("--hosts", "3", "--rate", "1Gbit", "--loss", "0.5%", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[h{host}] h{host} {host}/3 h0,h1,h2 10.0.0.1,10.0.1.1,10.0.2.1" for host in range(3)
    ]
    assert sorted(done.stderr.splitlines()) == ["[h0] err", "[h1] err", "[h2] err"]


def test_128_hosts_know_each_other() -> None:
    """Their 32,512 entries are permanent: the kernel's limit of 1,024 for all namespaces does not count those."""
    done = sim("--hosts", "128", "--", "sh", "-c", "ip neighbour show nud permanent | wc -l")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f"[{f'h{host}':>4}] {2 * 127}" for host in range(128))


def test_the_cables_are_as_asked() -> None:
    """As `tc` shows them, since what they do is tested with the library."""
    done = sim("--hosts", "1", "--rate", "2.5Mbit", "--", "tc", "qdisc", "show", "dev", "eth0")
    assert "rate 2500Kbit" in done.stdout
    connect = """
import os, socket, time
s = socket.create_server(("", 7)) if os.environ["MALT_SIM_HOST"] == "0" else None
while s is None:
    start = time.monotonic()
    try:
        socket.create_connection(("10.0.0.1", 7))
        break
    except ConnectionRefusedError:
        continue  # the other is not there yet
print(s.accept()[1][0] if s else time.monotonic() - start)
"""
    done = sim("--hosts", "2", "--delay", "100ms", "--", sys.executable, "-c", connect)
    said = dict(line.split() for line in done.stdout.splitlines())
    assert said["[h0]"] == "10.0.1.1"
    assert float(said["[h1]"]) >= 0.2  # there and back


def test_the_first_failure_ends_all_and_is_the_exit_code() -> None:
    with soon():
        done = sim("--hosts", "3", "--", "sh", "-c", "[ $MALT_SIM_HOST = 1 ] && { echo why >&2; exit 7; }; sleep 1000")
    assert done.returncode == 7
    assert "[h1] why\n" in done.stderr
    assert "malt sim: host h1 ended with exit code 7; the other 2 were stopped" in done.stderr


WAIT = """\
import os, signal, sys, time
me = os.environ["MALT_SIM_HOST"]
if me == sys.argv[1]:
    os.fork()
    signal.pause()
time.sleep(float(sys.argv[2]))
sys.exit(int(sys.argv[3]))
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_host_that_is_powered_off_is_no_failure(code: int) -> None:
    late = ["--at", "900s:cut:h0", "--at", "1000s:off:h2"]
    events = [*late, "--at", "0.5s:off:h1", "--at", "100ms:cut=reject:h0->h2", "--at", "200ms:heal:h0-h2"]
    done = sim("--hosts", "3", *events, "--", sys.executable, "-c", WAIT, "1", "1", str(code))
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert [line.partition(" s: ")[2] for line in lines[:3]] == [
        "packets from h0 to h2 are rejected by a firewall",
        "packets between h0 and h2 pass again",
        "host h1 is powered off",
    ]
    assert float(lines[2].split()[3]) >= 0.5
    if code:
        assert lines[3].partition("; ")[0].endswith(" ended with exit code 3")
    else:
        assert lines[3].startswith("malt sim: the programs ended after ")
        assert lines[3].endswith(" s, before 900s:cut:h0, 1000s:off:h2")
    assert len(lines) == 4


JOB = """\
import malt
malt.barrier()
try:
    while True:
        malt.barrier()
except malt.PeerError as error:
    print(error.rank, error.kind, flush=True)
"""


def test_ranks_of_a_host_that_is_powered_off_are_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.setenv("MALT_UNREACHABLE", "2")
    done = sim("--hosts", "2", "-n", "2", "--at", "4s:off:h1", str(tmp_path / "job.py"))
    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[0] + line.split()[2] for line in done.stdout.splitlines()) == [
        "[0]unreachable",
        "[1]unreachable",
    ]
    assert "host h1 is powered off, with ranks 2 and 3\n" in done.stderr


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment; after the test no process has it, and of what was made with it nothing is left."""
    mark = uuid.uuid4().hex
    before = traces()
    yield {**os.environ, MARK: mark, "TMPDIR": str(tmp_path), "NO_COLOR": "1"}
    until = time.monotonic() + LONG
    while (marked(mark) or traces() - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not marked(mark)
    assert not traces() - before
    assert not os.listdir(tmp_path)


def traces() -> set[str]:
    """Return what could be left of a network: namespaces, devices, mounts, files of hosts."""
    found = {device for _, device in socket.if_nameindex()}
    found |= set(Path("/proc/self/mountinfo").read_text().splitlines())
    found |= {"hosts", "boot_id"} & set(os.listdir("/dev/shm"))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for kind in ("net", "mnt", "pid", "user", "uts", "ipc"):
            with suppress(OSError):  # it has ended
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
    return found


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL", "SIGKILL inside", "SIGKILL middle"])
def test_nothing_is_left(end: str, traced: dict[str, str]) -> None:
    cables = ["--rate", "1Gbit", "--delay", "1ms", "--loss", "1%"]
    for event in ("0s:cut=reject:h0->h1", "0s:cut=blackhole:h1->h0", "0s:cut:h0", "1000s:heal:h0"):
        cables += ["--at", event]
    started = subprocess.Popen(
        [MALT, "sim", "--hosts", "2", *cables, "--", sys.executable, "-c", STAYING],
        env=traced,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    said: list[str] = []
    while sum("ready" in line or "stays" in line for line in said) < 4:
        said.append(started.stdout.readline())
        assert said[-1], started.communicate()[1]
    name, _, which = end.partition(" ")
    first = int(Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text())
    second = int(Path(f"/proc/{first}/task/{first}/children").read_text().split()[0])
    target = {"": started.pid, "middle": first, "inside": second}[which]
    with soon():
        os.kill(target, signal.Signals[name])
        _, err = started.communicate(timeout=LONG)
    number = signal.Signals[name]
    assert started.returncode == (-number if (number, which) == (signal.SIGKILL, "") else 128 + number), err


def test_nothing_is_left_after_an_event_that_fails(traced: dict[str, str]) -> None:
    """And after a host that is powered off, with what would stay."""
    spoil = '[ $MALT_SIM_HOST = 1 ] && ip link del eth0; exec $0 -c "$1"'
    events = ["--at", "0.5s:off:h0", "--at", "3s:cut=unplug:h1"]
    done = subprocess.run(
        [MALT, "sim", "--hosts", "2", *events, "--", "sh", "-c", spoil, sys.executable, STAYING],
        env=traced,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 2
    assert "malt sim: --at 3s:cut=unplug:h1 failed\n" in done.stderr
    assert 'Cannot find device "p1"' in done.stderr


def in_terminal(argv: list[str], env: dict[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program in a terminal of its own; returns the end of it at which somebody types and reads."""
    ours, theirs = os.openpty()
    started = subprocess.Popen(
        argv,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # the terminal of the new session
    )
    os.close(theirs)
    return started, ours


def read_until(fd: int, count: int, word: bytes) -> bytes:
    text = b""
    while text.count(word) < count:
        text += os.read(fd, 4096)
    return text


def test_ctrl_c_of_a_terminal_reaches_a_process_inside_once(traced: dict[str, str]) -> None:
    """It has reached all processes of the command: none may hand it on as well."""
    program = """
import os, signal
from malt._sim import isolate
isolate()
hear, tell = os.pipe()
os.set_blocking(tell, False)
signal.set_wakeup_fd(tell)  # a byte for each
for number in (signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, lambda *_: None)
print("ready", flush=True)
came = os.read(hear, 9)
print("came", flush=True)
while signal.SIGUSR1 not in came:
    came += os.read(hear, 9)
print(f"{came.count(signal.SIGINT)} in all", flush=True)
"""
    started, terminal = in_terminal([sys.executable, "-c", program], traced)
    read_until(terminal, 1, b"ready")
    os.write(terminal, b"\x03")
    read_until(terminal, 1, b"came")
    started.send_signal(signal.SIGUSR1)  # is handed on, after what came before
    assert b"1 in all" in read_until(terminal, 1, b"in all")
    assert started.wait(LONG) == 0
    os.close(terminal)


def test_ctrl_c_of_a_terminal_counts_once(traced: dict[str, str]) -> None:
    """The programs may finish; a second one would kill them."""
    program = """
import signal
def finish(*_):
    print("finished", flush=True)
    raise SystemExit(0)
signal.signal(signal.SIGINT, finish)
print("ready", flush=True)
while True: signal.pause()
"""
    started, terminal = in_terminal([str(MALT), "sim", "--hosts", "2", "--", sys.executable, "-c", program], traced)
    text = read_until(terminal, 2, b"ready")
    os.write(terminal, b"\x03")
    text += read_until(terminal, 2, b"] finished")
    assert started.wait(LONG) == 0
    assert b"killing" not in text
    os.close(terminal)


def test_an_ordinary_user_needs_no_root() -> None:
    """And is not root in the programs either."""
    python = next((path for path in ("/usr/bin/python3", sys.executable) if readable(path)), None)
    if int(Path("/proc/self/uid_map").read_text().split()[2]) == 1 or python is None:
        pytest.skip("needs root, to become another user, and a Python that this user may read")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(Path(malt.__file__).parent, f"{folder}/malt", ignore=shutil.ignore_patterns("*.so"))
        user = ["setpriv", "--reuid", "12345", "--regid", "12346", "--clear-groups", "--no-new-privs"]
        cables = ["--hosts", "2", "--rate", "1Gbit", "--loss", "1%"]
        for event in ("0s:cut:h0->h1", "0s:cut=reject:h0", "0s:cut=blackhole:h1->h0", "2s:off:h1"):
            cables += ["--at", event]
        script = "echo $(id -u) $(id -g) $(hostname) $(grep CapEff /proc/self/status); sleep ${MALT_SIM_HOST}00"
        done = subprocess.run(
            [*user, python, "-m", "malt", "sim", *cables, "--", "sh", "-c", script],
            env={"PYTHONPATH": folder, "PATH": "/usr/bin:/bin", "HOME": folder},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[h{n}] 12345 12346 h{n} CapEff: {'0' * 16}" for n in range(2)]


def readable(python: str) -> bool:
    """Return whether everybody may run a Python, and it is new enough."""
    path = Path(python).resolve()
    if not path.exists() or not all(folder.stat().st_mode & 0o005 == 0o005 for folder in (path, *path.parents)):
        return False
    new = "import sys; sys.exit(sys.version_info < (3, 10))"
    return subprocess.run([path, "-I", "-c", new], check=False).returncode == 0


GLOO = """
import os, torch, torch.distributed as dist
number, count = int(os.environ["MALT_SIM_HOST"]), int(os.environ["MALT_SIM_HOSTS"])
dist.init_process_group("gloo", init_method="tcp://h0:29500", rank=number, world_size=count)
value = torch.tensor([number + 1.0])
dist.all_reduce(value)
print(value.item())
dist.destroy_process_group()
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch: make torch")
def test_gloo_finds_its_way() -> None:
    done = sim("--hosts", "2", "--rate", "1Gbit", "--delay", "1ms", "--", sys.executable, "-c", GLOO)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[h0] 3.0", "[h1] 3.0"]
