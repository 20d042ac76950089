"""Ranks that torchrun has started on two hosts, and started again."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from launching import LONG
from net.across import JOB, means

from malt._sim import Network

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch: make torch")

# The store of torchrun's agent, which outlives the ranks, has what the first attempt has left there.
ONCE_MORE = """
import os
malt.barrier()
if malt.rank() == 1 and not os.path.exists("again"):
    open("again", "w").close()
    raise SystemExit("the first attempt")
malt.barrier()
"""


def test_two_nodes_with_a_restart(tmp_path: Path) -> None:
    job, last = JOB.rstrip().rsplit("\n", 1)
    (tmp_path / "job.py").write_text(f"{job}\n{ONCE_MORE}\n{last}\n")
    options = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3", "--monitor-interval", "0.1"]
    meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "h0:29400", "--rdzv-id", "job"]
    said = [tmp_path / host for host in ("h0", "h1")]
    with Network(2) as net:
        nodes = [
            host.start(
                [sys.executable, "-m", "torch.distributed.run", *options, *meet, "job.py"],
                cwd=tmp_path,
                env={**os.environ, "OMP_NUM_THREADS": "1", "MALT_TOKEN": "00" * 16},
                stdout=file.open("w"),
                stderr=subprocess.STDOUT,
            )
            for host, file in zip(net.hosts, said, strict=True)
        ]
        codes = [node.wait(LONG) for node in nodes]
    text = "".join(file.read_text() for file in said)
    assert codes == [0, 0], text
    assert (tmp_path / "again").exists()
    for line in means(["h0", "h1"]):
        assert line.partition(" ")[2] in text
