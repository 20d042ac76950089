"""Ranks as in the pods of an indexed job: their host names, /etc/hosts and variables, and a name that comes late."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG
from net.across import JOB, means

from malt._sim import Network

DOMAIN = "ranks.default.svc.cluster.local"


@pytest.mark.parametrize("interface", ["", "10.0.0.0/8"])
def test_pods(tmp_path: Path, interface: str) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with Network(2) as net:
        names = [f"{host.address} train-{host.number}.{DOMAIN} train-{host.number}" for host in net.hosts]

        def note(host: int, name: str) -> None:
            append = ["sh", "-c", 'echo "$0" >> /etc/hosts', name]
            assert net.hosts[host].start(append).wait(LONG) == 0

        pods = []
        for host in net.hosts[::-1]:
            note(host.number, names[host.number])
            env = {"HOSTNAME": f"train-{host.number}", "JOB_COMPLETION_INDEX": str(host.number), "MALT_SIZE": "2"}
            pods.append(
                host.start(
                    [sys.executable, "job.py"],
                    cwd=tmp_path,
                    env={**os.environ, **env, "MALT_TOKEN": "a-secret-of-its-own", "MALT_INTERFACE": interface},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        note(1, names[0])  # as the service's name appears when the pod has begun
        said = [pod.communicate(timeout=LONG) for pod in pods]
    lines = sorted(f"[{line[0]}] {line}" for out, _ in said for line in out.splitlines())
    assert lines == means(["h0", "h1"]), said


def test_a_pod_that_may_not_listen_at_its_name(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with Network(1) as net:
        (host,) = net.hosts
        name = f"{host.address} train-0.{DOMAIN} train-0"
        assert host.start(["sh", "-c", 'echo "$0" >> /etc/hosts', name]).wait(LONG) == 0
        said = {"HOSTNAME": "train-0", "JOB_COMPLETION_INDEX": "0", "MALT_SIZE": "2", "MALT_INTERFACE": "lo"}
        env = {**os.environ, **said, "MALT_TOKEN": "a-secret-of-its-own"}
        pod = host.start([sys.executable, "job.py"], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
        _, err = pod.communicate(timeout=LONG)
    assert f"train-0.{DOMAIN} ({host.address})" in err
    assert "interface=lo (MALT_INTERFACE)" in err
