"""The program of the README on 2 and on 3 ranks: by RDMA it has the bits that it has by TCP.

Then syncs of as many bytes, on 2 ranks as many: by RDMA less than 400 bytes for each go over each TCP connection.

job.py PROVIDER SYNCS BYTES
"""

import os
import pickle
import secrets
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np  # once for all ranks, which are forked: a processor that is emulated takes seconds for it

assert np

DEVICES = "/dev/infiniband"


SIZES = {"10.0": "8000.0", "40_000, 10": "120, 8000", "Vector(10)": "Vector(8000)", "0.01": "1e-5", "100": "10"}


def program() -> str:
    """Of 8,000 columns for 10, so that its model goes by RDMA, and of 120 rows for 40,000."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    text = readme.split("```python\n")[1].split("```")[0].replace("every 100 rows", "every few rows")
    for old, new in SIZES.items():
        if text.count(old) != 1:
            sys.exit(f"job.py: the README's program has {text.count(old)} times {old!r}, expected once")
        text = text.replace(old, new)
    return text


def opened() -> list[str]:
    """Descriptors of devices that this process has."""
    links = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return [name for name in links if name.startswith(DEVICES)]


def by_tcp() -> int:
    """Bytes that this process has sent over TCP: the kernel's tcpi_bytes_sent, of all sockets that are open."""
    total = 0
    for fd in Path("/proc/self/fd").iterdir():
        if fd.is_symlink() and str(fd.readlink()).startswith("socket:"):
            with socket.socket(fileno=os.dup(int(fd.name))) as s:
                if s.family in (socket.AF_INET, socket.AF_INET6) and s.type == socket.SOCK_STREAM:
                    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 208)
                    total += struct.unpack_from("Q", info, 200)[0]
    return total


def forked(what: Callable[[], Any]) -> BinaryIO:
    """Where a child, which is forked, writes what it returns."""
    here, there = os.pipe()
    if os.fork() == 0:
        with open(there, "wb") as answer:
            pickle.dump(what(), answer)
        sys.exit()
    os.close(there)
    return open(here, "rb")


def answer(of: BinaryIO) -> Any:
    """What a child has returned, once it has ended."""
    told = of.read()
    if os.wait()[1] or not told:
        sys.exit("job.py: a rank has failed")
    return pickle.loads(told)


class Rank(NamedTuple):
    """What one says."""

    model: bytes
    placed: int  # bytes by RDMA
    moved: int  # bytes of updates in the syncs after the first ten
    rdma: int  # of these by RDMA
    wire: int  # bytes over TCP in these syncs
    states: set[str]  # of its edges, at the end
    devices: list[str]
    childs: list[str]  # of a child that is forked


def rank(settings: dict[str, str], syncs: int) -> Rank:
    """Run the program."""
    os.environ.update(settings)
    names: dict[str, Any] = {}
    exec(program(), names)
    placed = sum(e.rdma_bytes for e in names["v"].stats().edges)

    v = names["malt"].Vector(BYTES // 8, graph="ring")  # by boxes

    def counts() -> tuple[int, int, int]:
        names["malt"].barrier()  # what was published has been sent
        stats = v.stats()
        return stats.sent_bytes, sum(e.rdma_bytes for e in stats.edges), by_tcp()

    for clock in range(10 + syncs):
        if clock == 10:
            before = counts()
        v.array[0] = clock
        v.sync()
    moved, rdma, wire = (now - then for now, then in zip(counts(), before, strict=True))
    states = {e.rdma for e in v.stats().edges if e.sent_bytes}
    return Rank(names["w"].tobytes(), placed, moved, rdma, wire, states, opened(), answer(forked(opened)))


def job(ranks: int, fabric: str, syncs: int) -> list[Rank]:
    """Run as many."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    common = {
        "MALT_SIZE": str(ranks), "MALT_STORE": f"127.0.0.1:{port}", "MALT_TOKEN": secrets.token_hex(16),
        "MALT_TRANSPORT": "tcp", "MALT_ENCRYPT": "0", "MALT_FABRIC": fabric,
    }  # fmt: skip
    started = [forked(partial(rank, common | {"MALT_RANK": str(r)}, syncs)) for r in range(ranks)]
    return [answer(s) for s in started]


provider, SYNCS, BYTES = sys.argv[1], *map(int, sys.argv[2:])
FEW = min(SYNCS, 20)
for ranks, syncs in (2, SYNCS), (3, FEW):
    tcp, rdma = job(ranks, "off", FEW), job(ranks, provider, syncs)
    same = len({r.model for r in tcp + rdma}) == 1
    least, none = min(r.placed for r in rdma), max(r.placed for r in tcp)
    devices, kept = min(len(r.devices) for r in rdma), {name for r in rdma for name in r.childs}
    print(f"=== {ranks} ranks, {provider}: {least} bytes by RDMA from each, by TCP {none}; same bits: {same}")
    print(f"=== {devices} devices, of a child that is forked: {sorted(kept)}")
    print(f"=== {syncs} syncs, by RDMA:", *(f"{r.moved} bytes, of which {r.rdma}, and {r.wire} by TCP;" for r in rdma))
    device = provider.startswith("verbs")  # without one a provider has connections of its own
    most = 400 * syncs * (ranks - 1)
    past = all(r.states == {"on"} and r.rdma == r.moved and r.wire - (not device) * r.rdma < most for r in rdma)
    wrong = none or any(r.rdma or r.wire < r.moved or r.states != {"off"} for r in tcp)
    if not past or wrong or not same or least < 64_000 or kept or (device and not devices):
        sys.exit("job.py: failed")
