"""A host is a machine of its own: names, addresses, memory, and what it cannot see of the others."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG
from net.talking import ECHO, Programs

from malt._sim import Network, SimError

WHO = """
shm = "/dev/shm/mine"
before = os.path.exists(shm)
open(shm, "w").close()
s = socket.socket(socket.AF_UNIX)
s.bind("\\0the same on every host")
say([socket.gethostname(), open("/proc/sys/kernel/random/boot_id").read(), before, os.getcwd(), os.getuid()])
told()
"""

CONNECT = """
c = socket.create_connection((sys.argv[1], 5000))
c.sendall(b"hello")
say([c.recv(5).decode(), c.getpeername()[0]])
"""


def test_each_is_a_machine_of_its_own() -> None:
    here = Path("/proc/sys/kernel/random/boot_id").read_text()
    with Network(3) as net, Programs() as started:
        said = [started.start(host, WHO).hear() for host in net.hosts]
        assert [name for name, *_ in said] == ["h0", "h1", "h2"]
        boots = {boot for _, boot, *_ in said}
        assert len(boots) == 3
        assert here not in boots
        assert all(rest == [False, os.getcwd(), os.getuid()] for _, _, *rest in said)
    assert socket.gethostname() not in ("h0", "h1", "h2")
    assert Path("/proc/sys/kernel/random/boot_id").read_text() == here


@pytest.mark.parametrize("to", ["h1", "10.0.1.1", "fd00::1:1"])
def test_one_reaches_another_by_name_and_address(to: str) -> None:
    both = 'socket.create_server(("", 5000), family=socket.AF_INET6, dualstack_ipv6=True)'
    echo = ECHO.replace('socket.create_server(("", 5000))', both)
    with Network(3) as net, Programs() as started:
        started.start(net.hosts[1], echo).hear()
        hello, address = started.start(net.hosts[2], CONNECT, to).hear()
        assert hello == "hello"
        assert to in (address, "h1")
        assert address in (net.hosts[1].address, net.hosts[1].address6)


RANK = """
import malt
malt.init()
print("met", malt.size())
"""


def job(net: Network, places: list[int], tmp_path: Path, timeout: str) -> list[str]:
    """Start one job's ranks on these hosts, and return what each writes."""
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    env = {**os.environ, "MALT_SIZE": "2", "MALT_STORE": f"local:{os.urandom(16).hex()}", "MALT_TOKEN": "00" * 16}
    ranks = [
        net.hosts[place].start(
            [sys.executable, str(script)],
            env={**env, "MALT_RANK": str(rank), "MALT_TIMEOUT": timeout},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank, place in enumerate(places)
    ]
    return [rank.communicate(timeout=LONG)[0] for rank in ranks]


def test_ranks_meet_in_shared_memory_on_one_host_only(tmp_path: Path) -> None:
    with Network(2) as net:
        assert job(net, [1, 1], tmp_path, str(LONG)) == ["met 2\n", "met 2\n"]
        assert not any("met" in said for said in job(net, [0, 1], tmp_path, "1"))


def test_one_network_at_a_time_and_nothing_is_left_of_it() -> None:
    gc.collect()
    mounts, files = Path("/proc/self/mountinfo").read_text(), set(os.listdir("/proc/self/fd"))
    for _ in range(2):
        with Network(2, rate=1e8, delay=0.001) as net:
            with pytest.raises(SimError, match="in use"):
                Network(2)
            delay = net._delay
            assert delay is not None
            assert delay._process.poll() is None
        assert [device for _, device in socket.if_nameindex()] == ["lo"]
        assert delay._process.poll() == 0
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert set(os.listdir("/proc/self/fd")) <= files
    assert not set(os.listdir("/dev/shm")) & {"hosts", "boot_id"}


def test_what_cannot_be_made_leaves_nothing() -> None:
    with pytest.raises(SimError, match="8000 or more"):
        Network(2, rate=10)
    assert [device for _, device in socket.if_nameindex()] == ["lo"]
