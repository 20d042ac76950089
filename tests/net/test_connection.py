"""A wait that ends without an answer says what the connection, or the process, does."""

from __future__ import annotations

import json
import os
import signal

from net.talking import Programs

from malt._sim import Network

RANK = """
rank, store, number = json.loads(sys.argv[1])
os.environ["MALT_UNREACHABLE"] = "2"
import malt, numpy as np, warnings
import malt._lib.loading
from malt._cli import top
from malt._ranks import seen
malt._lib.loading.LONG_WAIT = 4
malt.init(rank=rank, size=2, store=store, token="a-secret-of-its-own", timeout=30)
v = malt.Vector(np.full(number, float(rank)), start="own")
malt.barrier()
say(os.getpid())
told()
warnings.simplefilter("always")
warned = []
def show(message, *_):  # while it waits
    (me,) = (one for ranks in seen.jobs().values() for one in ranks if one.pid == os.getpid())
    warned.append(str(message))
    warned.append("malt top: " + " ".join(top.causes([me], {})))
warnings.showwarning = show
try:
    for n in range(9):
        v.sync(timeout=5)
    say("all synced")
except malt.TimeoutError as error:
    say([*warned, str(error), "verdict: " + malt._lib.JOB.longest[1]])
told()
os._exit(0)
"""

SMALL, LARGE = 1000, 1 << 20
"""Numbers in an array: in one packet or a few, and in thousands."""


def spoken(texts: list[str]) -> list[str]:
    """Return what a rank says itself."""
    return [text for text in texts if not text.startswith("malt top: ")]


def test_what_a_connection_does() -> None:
    with Network(6) as net, Programs() as started:
        h = net.hosts
        pairs = {
            "hole": (h[0], h[1], SMALL),
            "slow": (h[2], h[3], LARGE),
            "stopped": (h[4], h[4], SMALL),
            "stopped far": (h[4], h[5], SMALL),
        }
        jobs = {
            name: [
                started.start(host, RANK, json.dumps([rank, f"{a.name}:{port}", number]))
                for rank, host in enumerate((a, b))
            ]
            for port, (name, (a, b, number)) in enumerate(pairs.items(), 29500)
        }
        pids = {name: [rank.hear() for rank in job] for name, job in jobs.items()}
        for host in pairs["hole"][:2]:  # packets with more than 1000 bytes get lost
            host.administer(
                "nft",
                "table inet t { chain c { type filter hook input priority 0;",
                "meta length > 1000 drop;",
                "}",
                "}",
            )
        h[2].cable.rate = 4e6
        stopped = [pids["stopped"][1], pids["stopped far"][1]]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            for job in jobs.values():
                for rank in job:
                    rank.tell("go")
            for number, rank in enumerate(jobs["hole"]):
                warning, causes, error, verdict = rank.hear()
                assert ".sync has waited for 4 s" in warning
                assert ".sync timed out after 5 s" in error
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
            texts = [text for rank in jobs["slow"] for text in rank.hear()]
            slow = [text for text in texts if "is active: in the last" in text]
            assert any(" KB/s)" in text for text in slow), texts
            assert all("The network is slow or loses packets: `malt doctor -H`" in text for text in slow), texts
            for text in spoken(jobs["stopped"][0].hear()):
                assert "its process is stopped, by SIGSTOP or a debugger" in text
                assert "Resume the process of rank 1" in text
            for text in spoken(jobs["stopped far"][0].hear()):
                assert "answers, its process does not: it is stopped, or gets no processor time" in text
                assert "Look at the process of rank 1." in text
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
