"""Holds `malt plan` against `malt sim`: how long a step really takes, and what really crosses the cables.

    python tests/net/planned.py --cases 20 --seed 1

draws networks, sizes and steps, and prints for each way what was predicted and measured. It
ends with status 1 if a prediction is off by more than a quarter, or the way that is
recommended by more than 15 % slower than the fastest. This needs a machine without
other work; `test_plan.py` does less.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import malt
from malt._cli import bench, forecast

WITHIN, SLOWER = 0.25, 1.15


def rank(size: int, step: float, count: int, ways: Sequence[Sequence[str]], out: Path) -> None:
    """Take `count` steps in each way; rank 0 writes the seconds of one, and the bytes that its host has sent in one."""
    found = []
    with malt.Vector(np.zeros(size // 4, np.float32)) as v:
        for _ in range(10):  # the connections learn the rate of the cables
            v.sync()
    for graph, consistency in ways:
        with malt.Vector(np.zeros(size // 4, np.float32), graph=graph, consistency=consistency) as v:
            for steps in 3, count:  # what is set up, and the first updates, do not count
                malt.barrier()
                sent, begun = carried(), time.perf_counter()
                for _ in range(steps):
                    time.sleep(step)
                    v.array[:1] += 1
                    v.sync()
                taken, sent = time.perf_counter() - begun, carried() - sent
            found.append((malt.allreduce(taken, "max") / count, malt.allreduce(float(sent), "max") / count))
            malt.barrier()
    if malt.rank() == 0:
        out.write_text(json.dumps(found))


def carried() -> int:
    """Return the bytes that this host has sent over its cable."""
    with open("/proc/net/dev") as file:
        return next((int(line.split()[9]) for line in file if line.split()[0] == "eth0:"), 0)


def measured(job: forecast.Job, ways: Sequence[tuple[str, str]], count: int) -> list[tuple[float, float]]:
    """Return the seconds and bytes of a step in each way, on simulated hosts."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        sim = [sys.executable, "-m", "malt", "sim", "--hosts", str(len(job.hosts)), "-n", str(job.hosts[0])]
        sim += ["--rate", f"{job.rate:.0f}bit"] + (["--delay", f"{job.delay * 1e6:.0f}us"] if job.delay else [])
        what = json.dumps([job.bytes, job.step, count, ways, str(out)])
        done = subprocess.run([*sim, __file__, "--rank", what], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return [(seconds, sent) for seconds, sent in json.loads(out.read_text())]


def drawn(draw: random.Random) -> forecast.Job:
    """Return a job whose cables are slower than the processors.

    An update takes longer than the 2 ms that a simulated cable lets pass at once.
    """
    hosts = draw.choice([2, 3, 4])
    rate = 10 ** draw.uniform(7, 8.5)
    carry = 10 ** draw.uniform(-1.7, -0.7)
    return forecast.Job(
        bytes=int(rate * carry / 8) // 4 * 4,
        step=carry * draw.uniform(0.3, 4),
        hosts=[1] * hosts,
        rate=rate,
        delay=draw.choice([0.0, 1e-3]),
        cores=(os.cpu_count() or 1) / hosts,
    )


def benched() -> list[dict[str, Any]]:
    """Return the figures of this machine."""
    report = bench.Report(2, shows=False)
    if bench.measure(2, [1 << n for n in range(12, 23, 2)], report):
        raise RuntimeError("malt bench has failed")
    return report.results


def main() -> int:
    """Draw, predict, measure and compare."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--cases", type=int, default=20)
    ask.add_argument("--seed", type=int, default=random.randrange(1000))
    ask.add_argument("--steps", type=int, default=12)
    ask.add_argument("--bench", type=Path, help="figures of malt bench --json; default: measure")
    ask.add_argument("--rank", type=json.loads, help=argparse.SUPPRESS)
    options = ask.parse_args()
    if options.rank:
        size, step, count, ways, out = options.rank
        rank(size, step, count, ways, Path(out))
        return 0
    print(f"seed {options.seed}")
    draw, wrong = random.Random(options.seed), 0
    figures = forecast.Figures(json.loads(options.bench.read_text()) if options.bench else benched())
    for number in range(options.cases):
        job = drawn(draw)
        found = forecast.forecasts(job, figures)
        real = measured(job, [(one.graph, one.consistency) for one in found], options.steps)
        print(
            f"{number}: {job.bytes} bytes, step {job.step * 1e3:.1f} ms, {len(job.hosts)} hosts, "
            f"{job.rate / 1e6:.1f} Mbit/s, delay {job.delay * 1e3:.0f} ms"
        )
        for one, (seconds, sent) in zip(found, real, strict=True):
            off = one.seconds / seconds - 1
            wrong += abs(off) > WITHIN
            print(
                f"   {one.graph:9} {one.consistency:10} {one.seconds * 1e3:8.2f} ms, measured {seconds * 1e3:8.2f} "
                f"({off:+4.0%}{'!' * (abs(off) > WITHIN)}); {one.sent:9.0f} bytes, {sent / forecast.FRAME:9.0f}",
                flush=True,
            )
        fresh = [seconds for one, (seconds, _) in zip(found, real, strict=True) if one.age <= forecast.OLD]
        slower = real[0][0] / min(fresh)
        wrong += slower > SLOWER
        print(f"   recommended: {slower:.2f} x the fastest{' !' if slower > SLOWER else ''}")
    print(f"{wrong} wrong")
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
