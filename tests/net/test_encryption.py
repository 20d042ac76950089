"""What ranks send to each other is encrypted where an address is not private, and ``malt run -H`` says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from launching import LONG
from net.across import malt
from net.ssh import Ssh
from net.talking import Programs

from malt._sim import Network

MARK = b"A secret number."

JOB = f"""\
import malt, numpy as np
v = malt.Vector(np.frombuffer({MARK!r} * 100, np.float64) * (malt.rank() == 0), start="own")
v.broadcast(root=0)
assert v.array.tobytes() == {MARK!r} * 100
malt.barrier()
"""

LISTENER = f"""
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
say("up")
told()
s.setblocking(False)
seen = False
while True:
    try:
        seen |= {MARK!r} in s.recv(1 << 17)
    except BlockingIOError:
        break
say(seen)
"""


@pytest.mark.parametrize("public", [False, True])
def test_by_address(ssh: Ssh, tmp_path: Path, public: bool) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with Network(2) as net, Programs() as started:
        places = [f"203.0.113.{host.number + 1}" if public else host.address for host in net.hosts]
        for host, place in zip(net.hosts, places, strict=True):
            if public:
                host.administer(
                    "ip",
                    f"address add {place}/24 dev eth0",
                    f"address del {host.address}/16 dev eth0",
                    f"address del {host.address6}/64 dev eth0",
                )
        listener = started.start(net.hosts[1], LISTENER)
        listener.hear()
        job = malt(
            net.hosts[0], "run", "--ssh", ssh(net.hosts), "-H", ",".join(places), "-n", "1", "job.py", cwd=tmp_path
        )
        try:
            _, said = job.communicate(timeout=LONG)
        except subprocess.TimeoutExpired:
            job.kill()
            raise
        assert job.returncode == 0, said
        listener.tell("enough")
        assert listener.hear() is not public
        if public:
            assert "is encrypted where an address is not private: " in said
            assert all(f"{place} ({place})" in said for place in places)  # as they have answered
        else:
            assert "is not encrypted, since all addresses are private" in said
