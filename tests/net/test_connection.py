"""A wait that ends without an answer says what the connection, or the process, does."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path

from net.across import malt
from net.talking import Programs

from malt._sim import Host, Network

RANK = """
rank, store, number, patience = json.loads(sys.argv[1])
os.environ["MALT_UNREACHABLE"] = "2"
import malt, numpy as np, warnings
import malt._lib.loading
from malt._cli import top
from malt._ranks import seen
malt._lib.loading.LONG_WAIT = patience
malt.init(rank=rank, size=2, store=store, token="a-secret-of-its-own", timeout=30)
v = malt.Vector(np.full(number, float(rank)), start="own")
malt.barrier()
say(os.getpid())
told()
warnings.simplefilter("always")
warned = []
def show(message, *_):  # while it waits
    (me,) = (one for one in seen.ranks() if one.pid == os.getpid())
    warned.append(str(message))
    warned.append("malt top: " + " ".join(top.causes([me], {})))
warnings.showwarning = show
try:
    for n in range(9):
        v.sync(timeout=patience + 1)
    say("all synced")
except malt.TimeoutError as error:
    say([*warned, str(error), "verdict: " + malt._lib.JOB.longest[1]])
told()
os._exit(0)
"""

SMALL, LARGE = 1000, 1 << 20
"""Numbers in an array: in one packet or a few, and in thousands."""


JOB = """
import os, malt, numpy as np
import malt._lib.loading
malt._lib.loading.LONG_WAIT = int(os.environ["PATIENCE"])
v = malt.Vector(np.zeros(1000), name="w")
malt.barrier()
print(os.getpid(), flush=True)
open(f"go{malt.rank()}").close()
v.sync()
"""

HOLE = "table inet t { chain c { type filter hook input priority 0; meta length > 1000 drop; }; }"
"""A firewall that drops packets of more than 1000 bytes."""


def way(folder: Path, hosts: Sequence[Host]) -> str:
    """Return a command that leads to hosts as ssh does, but not over the network."""
    lines = ["#!/bin/sh", "case $1 in"]
    for host in hosts:
        spaces = host.namespaces
        enter = " ".join(f"--{kind}={spaces[name]}" for kind, name in (("net", "net"), ("uts", "uts"), ("ipc", "ipc")))
        lines.append(f'{host.name}) exec nsenter {enter} --mount={spaces["mnt"]} --wd="$PWD" sh -c "$2";;')
    script = folder / "way"
    script.write_text("\n".join([*lines, "esac", ""]))
    script.chmod(0o755)
    return shlex.quote(str(script))


class Watched:
    """A job of ``malt run`` on two hosts between which large packets get lost, and what is said of that."""

    def __init__(self, folder: Path, hosts: Sequence[Host], patience: int) -> None:
        self._folder, self._hosts = folder, hosts
        self._there = ["-H", ",".join(host.name for host in hosts), "--ssh", way(folder, hosts)]
        (folder / "train.py").write_text(JOB)
        for number in range(2):
            os.mkfifo(folder / f"go{number}")
        options = ["-q", "-n", "1", "--summary", "--report", "out.html"]
        env = {**os.environ, "MALT_UNREACHABLE": "2", "PATIENCE": str(patience)}
        self._run = malt(hosts[0], "run", *options, *self._there, "train.py", cwd=folder, env=env)

    def begin(self) -> None:
        """Let packets get lost once all have joined, and the ranks go on."""
        assert self._run.stdout is not None
        self._there += [self._run.stdout.readline().split()[-1] for _ in range(2)][1:]
        for host in self._hosts:
            host.administer("nft", HOLE)
        for number in range(2):
            (self._folder / f"go{number}").write_text("")

    def look(self) -> None:
        """See that it is named by ``malt top`` and ``malt stack``, and by the verdict and the report at the end."""
        top = malt(self._hosts[0], "top", "--json", "--every", "0.2", *self._there)
        assert top.stdout is not None
        advice = "Large packets get lost. Lower the MTU on both hosts"
        for jobs in map(json.loads, top.stdout):
            assert jobs, "the job ended before its cause was seen"
            (job,) = jobs
            if advice in " ".join(job["causes"]):
                break
        assert [(rank["host"], rank["waits_for"]) for rank in job["ranks"]] == [
            (host.name, [1 - number]) for number, host in enumerate(self._hosts)
        ]
        assert "rank 0 has waited" in job["causes"][0]
        top.kill()
        top.communicate()
        stack, _ = malt(self._hosts[0], "stack", *self._there).communicate()
        assert " on 2 hosts: 2 ranks: train.py" in stack
        assert "ranks 0 and 1: waiting\n  train.py:9 in <module>: v.sync()\n" in stack
        assert advice in " ".join(stack.split())
        for host in self._hosts:
            host.administer("nft", "delete table inet t")
        _, err = self._run.communicate()
        for text in (err[err.index("does it pay?") :], (self._folder / "out.html").read_text()):
            assert "small packets arrive, large ones do not: the path" in text
            assert advice in text
        assert self._run.returncode == 0


def spoken(texts: list[str]) -> list[str]:
    """Return what a rank says itself."""
    return [text for text in texts if not text.startswith("malt top: ")]


def test_what_a_connection_does(tmp_path: Path) -> None:
    # By the end of a wait the kernel must have sent again what got lost: on a busy machine that takes longer.
    for patience in (4, 12, 36):
        folder = tmp_path / str(patience)
        folder.mkdir()
        try:
            what_a_connection_does(folder, patience)
            break
        except AssertionError:
            if patience == 36:
                raise


def what_a_connection_does(folder: Path, patience: int) -> None:
    with Network(10) as net, Programs() as started:
        h = net.hosts
        watched = Watched(folder, h[6:8], patience)
        pairs = {
            "hole": (h[0], h[1], SMALL),
            "hole one way": (h[8], h[9], SMALL),
            "slow": (h[2], h[3], LARGE),
            "stopped": (h[4], h[4], SMALL),
            "stopped far": (h[4], h[5], SMALL),
        }
        jobs = {
            name: [
                started.start(host, RANK, json.dumps([rank, f"{a.name}:{port}", number, patience]))
                for rank, host in enumerate((a, b))
            ]
            for port, (name, (a, b, number)) in enumerate(pairs.items(), 29500)
        }
        pids = {name: [rank.hear() for rank in job] for name, job in jobs.items()}
        for host in pairs["hole"][:2]:  # packets with more than 1000 bytes get lost
            host.administer("nft", HOLE)
        h[9].administer("nft", HOLE)
        h[2].cable.rate = 4e6
        stopped = [pids["stopped"][1], pids["stopped far"][1]]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            watched.begin()
            for job in jobs.values():
                for rank in job:
                    rank.tell("go")
            for number, rank in enumerate(jobs["hole"]):
                warning, causes, error, verdict = rank.hear()
                assert f".sync has waited for {patience} s" in warning
                assert f".sync timed out after {patience + 1} s" in error
                there = pairs["hole"][1 - number]
                assert causes.startswith(f"malt top: rank {number} has waited "), causes
                assert f" s for rank {1 - number}, in <string>:" in causes
                assert "Large packets get lost. Lower the MTU" in causes
                assert verdict.startswith(f"verdict: waited for rank {1 - number} (")
                for text in (warning, error, verdict):
                    assert "small packets arrive, large ones do not: the path's MTU" in text
                    assert there.address in text or there.address6 in text
                    assert " were sent again" in text
                    assert "Large packets get lost. Lower the MTU on both hosts" in text
                    assert "Does one rank skip a sync" not in text
            for rank, words in zip(
                jobs["hole one way"],
                ("Large packets get lost. Lower the MTU", "packets on the way from there get lost, or it is stopped"),
                strict=True,
            ):
                texts = [text for text in spoken(rank.hear()) if "waited" in text]
                assert texts
                assert all(words in text for text in texts), texts
            texts = [text for rank in jobs["slow"] for text in rank.hear()]
            slow = [text for text in texts if "is active: in the last" in text]
            assert any(" KB/s)" in text for text in slow), texts
            assert all("The network is slow or loses packets: `malt doctor -H`" in text for text in slow), texts
            watched.look()
            for text in spoken(jobs["stopped"][0].hear()):
                assert "its process is stopped, by SIGSTOP or a debugger" in text
                assert "Resume the process of rank 1" in text
            for text in spoken(jobs["stopped far"][0].hear()):
                assert "answers, its process does not: it is stopped, or gets no processor time" in text
                assert "Look at the process of rank 1: kill -CONT resumes it" in text
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
