"""``malt bench``: measures this machine."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TextIO

from malt._cli import peers
from malt._cli.options import Parser, UsageError, see_room, unfit, whole
from malt._cli.wrap import named
from malt._ranks import machine, parent
from malt._ranks.addresses import listen
from malt._ranks.launch import Job, job_environment, meeting, program_environment
from malt._ranks.output import Display, Lines
from malt._ranks.room import MOST

SIZES = "4KiB,64KiB,1MiB,16MiB"

UNITS = {"": 1, "b": 1, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30}

PLACED = "64KiB,1MiB,16MiB"
"""With --fabric."""

BY_TCP = range(4001, 8193)
"""Updates of so many bytes go by TCP all the same."""

USAGE = "malt bench [-n RANKS] [--sizes SIZE,...] [--peers | --fabric PROVIDER] [--json FILE]"

DESCRIPTION = """\
Measures from Python how fast the ranks of this machine exchange updates, and, for
comparison, how fast they copy memory in the same run. Takes a few seconds.

copy       every rank copies one of its arrays to another, all at once
scatter    every rank scatters to all others; no rank gathers (async)
sync       scatter and gather in step (bsp) over the graph `all`
allreduce  Vector.allreduce
copied     as sync, over the graph `ring`, on which updates are copied; only in --json
network    what updates between hosts cost, over TCP within this machine
put-seen   time from a scatter of rank 0 until a gather of rank 1 sees it
sparse     sync of a vector in which each rank changes one row in a hundred: sparse="model" with rows=, without, dense

GB/s is the payload per rank and second. `copies` is the number of copies of the payload
that take as long. The line `moves` gives the bytes that the operation reads and writes,
in copies of the payload.

With --peers, the average of all ranks beside the sum of mpi4py and of PyTorch's gloo, where they are
installed: min, median and max of three starts of each, of arrays that are written before each call,
and the bandwidths as nccl-tests defines them. A figure in brackets is within what starts differ by.

With --fabric, scatter and put-seen between two hosts, which are both this machine, by TCP and by RDMA. Where
RDMA has no device behind it, it shows only that updates go that way."""

EXAMPLES = """\
  malt bench
  malt bench -n 2 --sizes 1MiB,64MiB --json bench.json
  malt bench --peers --sizes 1KiB,1MiB
  malt bench --fabric auto
"""


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("bench", USAGE, DESCRIPTION, EXAMPLES)
    made.add_argument("-n", "--ranks", type=_ranks, metavar="RANKS", help="number of ranks; default: one for each core")
    made.add_argument(
        "--sizes",
        type=_sizes,
        metavar="SIZE,...",
        help=f"default: {SIZES}; with --peers 4 B to 256 MiB if they fit",
    )
    made.add_argument("--peers", action="store_true", help="compare with mpi4py and PyTorch's gloo instead")
    made.add_argument("--fabric", metavar="PROVIDER", help="compare TCP with RDMA instead; auto, or as MALT_FABRIC")
    made.add_argument("--json", metavar="FILE", help="also write all results to FILE; times in seconds")
    return made


def _ranks(text: str) -> int:
    return whole(text, 2, MOST, "number of ranks that can exchange something", "-n 4")


def _sizes(text: str) -> list[int]:
    return [size_of(word) for word in text.split(",")]


def size_of(word: str) -> int:
    """Return the bytes of a size; the error is argparse's."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", word.lower())
    if found is None or found[2] not in UNITS:
        raise unfit(f"{word!r} is not a size", "expected bytes, KiB, MiB or GiB, such as 64KiB")
    size = int(found[1]) << UNITS[found[2]] if found[2] not in ("", "b") else int(found[1])
    if size < 4:
        raise unfit(f"{word!r} is less than one number", "expected 4 bytes or more")
    return size - size % 4


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    size = options.ranks or max(2, machine.cores())
    see_room("malt bench", [sys.executable], size)
    report = Report(size)
    # Opened first, so that no work is lost over its name.
    with _opened(options.json or os.devnull) as file:
        if options.peers:
            code, results = _compare(size, options.sizes)
        elif options.fabric:
            code, results = _by_fabric(options.fabric, options.sizes or _sizes(PLACED), report), report.results
        else:
            code, results = measure(size, options.sizes or _sizes(SIZES), report), report.results
        if code == 0:
            json.dump(results, file, indent=1)
            file.write("\n")
    return code


def _opened(path: str) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8")
    except OSError as error:
        raise UsageError("malt bench", f"--json {path!r} cannot be written", error.strerror or "") from None


def _compare(size: int, sizes: Sequence[int] | None) -> tuple[int, list[dict[str, Any]]]:
    """Let ranks of MALT and of others average, in turns."""
    from malt import _lib  # here: the help and the completion do without numpy and the library

    room = json.loads(_lib.inspect("doctor"))["memory"]["free"] // (2 * peers.COPIES * size)
    chosen = sizes or [size for size in peers.SIZES if size <= room]

    def run(commands: peers.Commands) -> tuple[int, list[dict[str, Any]]]:
        report = Report(size, shows=False)
        return _run(job_environment(size), commands, report), report.results

    return peers.measure(size, chosen, run, partial(print, flush=True))


def measure(size: int, sizes: Sequence[int], report: Report) -> int:
    """Let ranks measure, and return an exit code."""
    code = _job(size, job_environment(size), [*map(str, sizes)], report)
    if code:
        return code
    return _hosts({}, ["network"], report)


def _by_fabric(fabric: str, sizes: Sequence[int], report: Report) -> int:
    """Let ranks measure by TCP, then by RDMA."""
    from malt import _lib

    os.environ["MALT_FABRIC"] = fabric
    card = json.loads(_lib.inspect("doctor"))["fabric"]
    if card["state"] != "works":
        sys.stderr.write(f"malt bench: RDMA cannot be used: {card['why']}; see malt doctor\n")
        return 1
    for way in ("off", fabric):
        code = _hosts({"MALT_FABRIC": way}, ["fabric", *map(str, sizes)], report)
        if code:
            return code
    placed = {result["bytes"]: result["placed"] for result in report.results[len(sizes) :]}
    by_tcp = [size for size in placed if not placed[size]]
    if len(by_tcp) == len(placed) or any(size not in BY_TCP for size in by_tcp):
        sys.stderr.write(f"malt bench: RDMA is not used: updates of {', '.join(map(named, by_tcp))} went by TCP\n")
        return 1
    return 0


def _hosts(settings: Mapping[str, str], what: Sequence[str], report: Report) -> int:
    """Let two ranks measure that share no memory, and meet as those of two hosts do."""
    there = {"MALT_TRANSPORT": "tcp", "MALT_INTERFACE": "127.0.0.1/32", **settings}
    listening, store = listen(there)
    env = program_environment(2) | meeting(2, store, os.urandom(16).hex()) | there
    try:
        return _job(2, env, what, report, [one.fileno() for one in listening])
    finally:
        for one in listening:
            one.close()


def _job(size: int, env: Mapping[str, str], what: Sequence[str], report: Report, fds: Sequence[int] = ()) -> int:
    argv = [sys.executable, "-m", "malt._cli.measure", *what]
    own = {"MALT_STORE_FD": ",".join(map(str, fds))} if fds else {}
    return _run(env, [(argv, {"MALT_RANK": str(rank)} | ({} if rank else own)) for rank in range(size)], report, fds)


def _run(env: Mapping[str, str], commands: peers.Commands, report: Report, fds: Sequence[int] = ()) -> int:
    launcher = os.getpid()
    with Job(report, preexec=lambda: parent.end_with(launcher)) as job:
        for rank, (argv, own) in enumerate(commands):
            job.start(argv, {**env, **own}, () if rank else fds)
        job.wait()
    report.clear()
    failed = job.first_failure()
    if failed is None:
        return 0
    sys.stderr.write(f"malt bench: rank {failed.number} {failed.fate()}; see malt doctor\n")
    return failed.code


class Report:
    """Shows each result as soon as it is there, if wanted: rank 0 says it in a line of JSON."""

    def __init__(self, size: int, shows: bool = True) -> None:
        self.results: list[dict[str, Any]] = []
        self._shows = shows
        self._lines = Lines()
        self._others = Display(size, _complain)
        self._waiting = False
        self._ranks = size

    def __call__(self, rank: int, stream: int, data: bytes) -> None:
        """Take what a rank wrote."""
        if rank != 0 or stream != 1:
            self.clear()
            self._others(rank, 2, data)
            return
        for line in self._lines.feed(data) if data else self._lines.rest():
            self.clear()
            self.results.append(json.loads(line))
            if self._shows:
                print(self._text(**self.results[-1]), flush=True)
                self._wait()

    def _wait(self) -> None:
        if sys.stdout.isatty():
            print("measuring ...", end="", flush=True)
            self._waiting = True

    def clear(self) -> None:
        """Take back the line that says that more is to come."""
        if self._waiting:
            print("\r\x1b[K", end="", flush=True)
            self._waiting = False

    def _text(self, kind: str, **result: Any) -> str:
        return {
            "machine": self._machine,
            "memory": self._memory,
            "sparse": self._sparse,
            "latency": self._latency,
            "size": self._size,
            "skipped": self._skipped,
            "network": self._network,
            "fabric": self._fabric,
        }[kind](result)

    def _machine(self, result: dict[str, Any]) -> str:
        cores = result["cores"]["usable"]
        lines = [
            f"malt {result['version']}, {result['system']}: {self._ranks} ranks on {cores} cores over shm, "
            f"folds with {result['kernels']}"
        ]
        if self._ranks > cores:
            lines.append("the ranks take turns: these are the times of a crowded machine")
        if result["load"] > 0.5:
            lines.append(
                f"other programs keep {result['load']:.1f} cores busy: expect worse times, different in each run"
            )
        return "\n".join(lines)

    def _memory(self, result: dict[str, Any]) -> str:
        size = result["bytes"]
        alone, each = (size / result[kind] / 1e9 for kind in ("alone", "together"))
        return (
            f"memory: {alone:.1f} GB/s copied by one rank alone, {each:.1f} by each of {self._ranks} at once "
            f"({each * self._ranks:.1f} together), arrays of {named(size)}"
        )

    def _sparse(self, result: dict[str, Any]) -> str:
        listed, found, whole = (_micro(result[kind]) for kind in ("named", "found", "whole"))
        return (
            f"sparse: {listed} sync of the named hundredth of the rows of {named(result['bytes'])}, "
            f"{found} where they have to be found, {whole} sync of all"
        )

    def _latency(self, result: dict[str, Any]) -> str:
        head = (
            f"latency: {_micro(result['seen'])} put-seen of 4 bytes, {_micro(result['barrier'])} barrier, "
            f"{_micro(result['allreduce'])} allreduce of a number"
        )
        # Each reads what it sends once, and writes as much: scatter into its box, the others into all arrays.
        moves = f"{1:6.1f}"
        return (
            f"{head}\n\n"
            f"{'':8}  {'copy':>8}  {'scatter':^16}  {'sync':^27}  {'allreduce':^27}  {'put-seen':>10}\n"
            f"{'payload':>8}  {'GB/s':>8}  {'GB/s':>8}  {'copies':>6}  "
            + f"{'time':>9}  {'GB/s':>8}  {'copies':>6}  "
            * 2
            + f"{'time':>10}\n"
            f"{'moves':>8}  {'':8}  {'':8}  {moves}  {'':9}  {'':8}  {moves}  {'':9}  {'':8}  {moves}"
        )

    def _size(self, result: dict[str, Any]) -> str:
        size, copy = result["bytes"], result["copy"]
        cells = [f"{named(size):>8}", f"{size / copy / 1e9:8.2f}"]
        cells += [f"{size / result['scatter'] / 1e9:8.2f}", f"{result['scatter'] / copy:6.1f}"]
        for kind in ("sync", "allreduce"):
            cells += [f"{_micro(result[kind]):>9}", f"{size / result[kind] / 1e9:8.2f}", f"{result[kind] / copy:6.1f}"]
        return "  ".join([*cells, f"{_micro(result['seen']):>10}"])

    def _network(self, result: dict[str, Any]) -> str:
        return (
            f"\nnetwork: {_micro(result['seen'])} put-seen of 4 bytes over TCP; an update takes "
            f"{_micro(result['update'])} of processor time, and {result['byte'] * 1e9:.2f} ns for each byte"
        )

    def _fabric(self, result: dict[str, Any]) -> str:
        by = f"{result['provider']} on {result['device']}" if result["placed"] else "TCP"
        times = f"{_micro(result['scatter'])} scatter, {_micro(result['seen'])} put-seen"
        if result["placed"] and not result["hardware"]:
            times = "works; its times say nothing about a device"
        return f"{named(result['bytes']):>8}  {by}: {times}"

    def _skipped(self, result: dict[str, Any]) -> str:
        return f"{named(result['bytes']):>8}  skipped: would take about {named(result['needs'])} of memory"


def _complain(_: int, text: bytes) -> None:
    sys.stderr.write(text.decode(errors="replace"))


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
