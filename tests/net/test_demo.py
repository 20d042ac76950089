"""The demo reaches the losses of one machine on several, however its ranks are spread over them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from launching import LONG
from net.across import malt
from net.ssh import Ssh

from malt._sim import Network

EXAMPLES = Path(__file__).parents[2] / "examples"

SHORT = ("--rows=4000", "--k=1", "--repeats=1", "--every=100", "--passes=2", "--goal=1")


class Training:
    """The demo's worker, started by ``malt run`` with these arguments on the first hosts."""

    def __init__(self, net: Network, launcher: Sequence[Sequence[str]], out: Path, *options: str) -> None:
        self._out = out
        program = ["-m", "demo.worker", str(out), *SHORT, *options]
        self._jobs = [
            malt(host, "run", "-q", *arguments, *program, cwd=EXAMPLES)
            for host, arguments in zip(net.hosts, launcher, strict=False)
        ]

    def run(self) -> dict[str, Any]:
        """Wait for its end, and return what it has written."""
        said = [job.communicate(timeout=LONG) for job in self._jobs]
        assert not any(job.returncode for job in self._jobs), said
        (run,) = json.loads(self._out.read_text())
        assert isinstance(run, dict)
        return run


def by_ssh(net: Network, counts: Sequence[int], ssh: Ssh) -> list[list[str]]:
    """Return what ``malt run -H`` is told, on the first host."""
    named = ",".join(f"{host.name}:{count}" for host, count in zip(net.hosts, counts, strict=True))
    return [["--ssh", ssh(net.hosts), "-H", named]]


def at_a_store(counts: Sequence[int], tmp_path: Path) -> list[list[str]]:
    """Return what ``malt run --store`` is told, on each host."""
    (tmp_path / "token").write_text(uuid.uuid4().hex)
    each = ["-n", ",".join(map(str, counts)), "--store", "h0:29500", "--token-file", str(tmp_path / "token")]
    return [[*each, "--node-rank", str(node)] for node in range(len(counts))]


@pytest.mark.parametrize(
    ("way", "counts"),
    [("ssh", (1, 1)), ("ssh", (1, 1, 1, 1)), ("ssh", (4, 3, 1)), ("store", (2, 1)), ("store", (2, 1, 1, 1))],
)
def test_same_losses_as_on_one_machine(way: str, counts: tuple[int, ...], ssh: Ssh, tmp_path: Path) -> None:
    with Network(len(counts)) as net:
        launcher = by_ssh(net, counts, ssh) if way == "ssh" else at_a_store(counts, tmp_path)
        spread = Training(net, launcher, tmp_path / "there.json")
        here = Training(net, [["-n", str(sum(counts))]], tmp_path / "here.json").run()
        there = spread.run()
    assert there["examples"] == here["examples"]
    assert there["examples"][-1] == 8000
    # Hosts are added up one after the other, so the sums are rounded in other places.
    assert there["loss"] == pytest.approx(here["loss"], rel=1e-9)
    assert there["accuracy"] == here["accuracy"]


def test_learns_where_nobody_waits(tmp_path: Path) -> None:
    with Network(4) as net:
        options = ["--graph=halton", "--consistency=async"]
        run = Training(net, at_a_store((1, 1, 1, 1), tmp_path), tmp_path / "out.json", *options).run()
    assert run["folded"] > 0
    assert run["loss"][-1] < 0.8  # of a model that has learnt nothing: 1
