"""``malt doctor -H`` says of each pair of hosts what its network does, and what to do."""

from __future__ import annotations

import re

import pytest
from net.across import malt
from net.ssh import Ssh

from malt._sim import Host, Network


def said(host: Host, ssh: str, names: str, *, problem: bool) -> tuple[dict[tuple[str, str], str], str]:
    """Return the verdict on each pair, and all that the command prints."""
    doctor = malt(host, "doctor", "-H", names, "--ssh", ssh)
    out, err = doctor.communicate()
    assert (doctor.returncode, err) == (int(problem), ""), out
    assert all(len(line) <= 80 for line in out.splitlines()), out
    rows = [line.split(None, 2) for line in out.split("\n\n")[1].splitlines()[1:]]
    return {(row[0], row[1]): row[2] for row in rows}, " ".join(out.split())


def test_good_and_slow(ssh: Ssh) -> None:
    with Network(3) as net:
        net.hosts[2].cable.rate = 20e6
        verdicts, out = said(net.hosts[0], ssh(net.hosts), "h0,h1,h2", problem=False)
        assert set(verdicts) == {(a, b) for a in ("h0", "h1", "h2") for b in ("h0", "h1", "h2") if a != b}
        for pair, verdict in verdicts.items():
            assert verdict.endswith("slow" if "h2" in pair else "1500  ok"), out
        assert "h0 eth0 1500 10.0.0.1" in out
        rate = re.search(r"warning h0 -> h2 ([\d.]+) MB/s", out)
        assert rate is not None, out
        assert 1.5 < float(rate[1]) < 2.6, out  # 20 Mbit/s
        assert "sync less often" in out


def test_black_hole(ssh: Ssh) -> None:
    with Network(2) as net:
        command = ssh(net.hosts)
        for host in net.hosts:
            host.administer("ip", "link set eth0 gso_max_segs 1 gro_max_size 1500")
        net.hosts[1].administer(
            "nft",
            "table inet t { chain c { type filter hook input priority 0; tcp dport != 22 meta length > 1300 drop; }; }",
        )
        verdicts, out = said(net.hosts[0], command, "h0,h1", problem=True)
        assert verdicts["h0", "h1"].endswith("MTU hole"), out
        assert verdicts["h1", "h0"].endswith("1500  ok"), out
        assert "small packets arrive, large ones do not: the path's MTU is near 12" in out
        assert "do: ip link set dev eth0 mtu 12" in out


@pytest.mark.parametrize(
    ("does", "verdict", "sentence"),
    [
        ("drop", "dropped", "though the host answers at port 22: a firewall drops it"),
        ("reject with tcp reset", "refused", "although the probe of h1 listens: a firewall rejects it"),
        ("reject with icmpx type admin-prohibited", "rejected", "was rejected by a firewall or router"),
    ],
)
def test_firewall(ssh: Ssh, does: str, verdict: str, sentence: str) -> None:
    with Network(2) as net:
        command = ssh(net.hosts)
        net.hosts[1].administer(
            "nft",
            "table inet t { chain c { type filter hook input priority 0; ct state established accept;",
            f"tcp dport != 22 {does}; }}; }}",
        )
        verdicts, out = said(net.hosts[0], command, "h0,h1", problem=True)
        assert verdicts["h0", "h1"].endswith(verdict), out
        assert verdicts["h1", "h0"].endswith("1500  ok"), out
        assert sentence in out
        assert "problem h0 -> h1 " in out
        assert "do: let TCP to all ports of 10.0.1.1 and fd00::1:1 pass" in out
        assert "problem h1" not in out
