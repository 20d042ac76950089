"""Claims that are counted or computed, and one about arithmetic."""

from __future__ import annotations

import functools
import gzip
import math
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import malt

from .shown import NotShownError, Program, Shown, data

EXAMPLES = Path(__file__).parents[1]
PARTS = 64


def m1() -> Shown:
    """Count the messages of a rank, on 8."""
    sent = {graph: malt.Graph(graph, 8).edges / 8 for graph in ("all", "halton")}
    ours = f"{sent['all']:g} messages a step against {sent['halton']:g}: {sent['all'] / sent['halton']:.2f} times"
    return Shown("305 GB and 131 GB: 2.33 times", ours, "counted: the edges of the graphs", "holds")


def changed() -> dict[str, tuple[int, int]]:
    """Return for each program how many lines are added or changed, and lost or changed, by the serial one."""
    done = subprocess.run(
        [sys.executable, "-m", "serial", "--markdown=table"], cwd=EXAMPLES, capture_output=True, text=True, check=True
    )
    rows = [line.split("|")[1:4] for line in done.stdout.splitlines()[2:]]
    return {name[2:].partition(".py")[0]: (int(added), int(lost)) for name, added, lost in rows}


def m14() -> Shown:
    """Count the lines that change in the serial programs of the examples."""
    added, lost = zip(*changed().values(), strict=True)
    ours = f"{np.mean(added):.1f} changed or added on average of {len(added)} programs, at most {max(added)}"
    how = "counted: git diff of examples/serial and examples"
    return Shown("87 + 106 lines", f"{ours}; {np.mean(lost):.1f} changed or removed", how, "holds")


def m15() -> Shown:
    """Count the lines of the library."""
    listed = subprocess.run(["git", "ls-files"], cwd=EXAMPLES.parent, capture_output=True, text=True, check=True)
    lines = Counter[str]()
    for name in map(Path, listed.stdout.splitlines()):
        if name.suffix in LANGUAGES and name.parts[0] not in ("examples", "docs") and "test" not in str(name):
            text = (EXAMPLES.parent / name).read_text()
            lines[name.suffix] += sum(
                not line.strip().startswith(COMMENTS) for line in text.splitlines() if line.strip()
            )
    ours = ", ".join(f"{round(lines[suffix], -3):,} of {language}" for suffix, language in LANGUAGES.items())
    how = "counted: lines that are neither blank nor a comment, without tests and examples, to thousands"
    return Shown("2366 of C++, 1722 of Lua", ours, how, "does not hold")


def m17() -> Shown:
    """Count the edges of all and of halton."""
    sizes = (4, 8, 16, 32, 64)
    ratios = [malt.Graph("all", n).edges / malt.Graph("halton", n).edges for n in sizes]
    exact = all(math.isclose(ratio, (n - 1) / int(math.log2(n))) for n, ratio in zip(sizes, ratios, strict=True))
    ours = f"all has {', '.join(f'{r:.3g}' for r in ratios)} times the edges of halton, for {sizes} ranks".replace(
        "(", ""
    )
    return Shown("", ours.replace(")", ""), "counted: malt.Graph", "holds" if exact else "does not hold")


def n8() -> Shown:
    """Count the lines of a PyTorch loop."""
    added, _ = changed()["mlp_torch"]
    return Shown("4, and 7", f"{added} of mlp_torch.py", "counted: git diff of examples/serial and examples", "in part")


def n9() -> Shown:
    """Compare two graphs that send the same bytes."""
    values = {graph: [malt.Graph(graph, n).second_eigenvalue for n in (16, 64)] for graph in ("halton", "chord")}
    ours = "; ".join(f"{graph}: {a:.3f}, {b:.3f}" for graph, (a, b) in values.items())
    return Shown(
        "", f"second eigenvalue for 16 and 64 ranks, {ours}. The same bytes: chord mixes faster", "computed", "in part"
    )


def edges(name: str, skip: int) -> NDArray[np.int64]:
    """Return the edges of a graph in MALT_DATA."""
    with gzip.open(data(f"{name}/edges.txt.gz"), "rt") as file:
        return np.loadtxt(file, np.int64, skiprows=skip)


LANGUAGES = {".go": "Go", ".py": "Python", ".c": "C"}
COMMENTS = ("//", "#", "/*", "*")
NODES = 64
TWITTER = 60_000_000, 0.21  # vertices, and the part of them that a node has
YAHOO = 1_400_000_000, 0.03
BYTES = 4e-6  # MB for each


def a3() -> Shown:
    """Compute which butterfly sends least, where a message below a floor takes as long as one of that size."""
    theirs, found, said = (16, 4), set(), []
    for name, graph in {"Twitter": TWITTER, "Yahoo": YAHOO}.items():
        of = []
        for floor in (2, 3, 4):
            sent = functools.partial(megabytes, graph=graph, floor=floor)
            best = min(factorings(NODES), key=sent)
            found.add(best)
            less = "" if best == theirs else f" ({sent(theirs) / sent(best):.2f} times less than 16x4)"
            of.append("x".join(map(str, best)) + less)
        said.append(f"{name}: {', '.join(of)}")
    ours = f"what sends least if messages below 2, 3 and 4 MB do not pay: {'; '.join(said)}"
    how = f"computed: {NODES} nodes, the vertices of each graph by a power law, all ordered factorings"
    return Shown("16x4", ours, how, "holds" if found == {theirs} else "in part")


def a4() -> Shown:
    """Compute the messages of the first stage."""
    vertices, share = TWITTER
    one, six = (vertices * share * BYTES / degree for degree in (NODES, 2))
    return Shown(
        "0.5 MB and 17 MB",
        f"{one:.2f} MB and {six:.0f} MB from its own sizes: 3/2 of the paper's",
        "computed",
        "in part",
    )


def factorings(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all lists of degrees of n nodes."""
    if n == 1:
        yield ()
    for degree in range(2, n + 1):
        if n % degree == 0:
            yield from ((degree, *rest) for rest in factorings(n // degree))


def megabytes(degrees: Sequence[int], graph: tuple[int, float], floor: float) -> float:
    """Return what a node sends on the way down, messages below the floor counted as that."""
    vertices, share = graph
    rate, joined, sent = rate_of(share, vertices), 1, 0.0
    for degree in degrees:
        message = share_of(rate * joined, vertices) * vertices * BYTES / joined / degree
        sent += (degree - 1) * max(message, floor)
        joined *= degree
    return sent


@functools.cache
def rate_of(share: float, vertices: int) -> float:
    """Return the rate of the first vertex, at which a node has this share of all."""
    low, high = 1e-3, 1e15
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if share_of(middle, vertices) < share else (low, middle)
    return low


@functools.cache
def share_of(rate: float, vertices: int) -> float:
    """Return the share of the vertices that a node has, to which vertex i comes at rate / i."""
    edges = np.geomspace(1, vertices, 4000)
    middle = (edges[1:] + edges[:-1]) / 2
    return float((1 - np.exp(-rate / middle)) @ np.diff(edges) / vertices)


def a5() -> Shown:
    """Time the union of lists by merging and by hashing."""
    if shutil.which("go") is None:
        raise NotShownError("go is not installed")
    bench = ["go", "test", "./libmalt/rows", "-run=^$", "-bench=Union", "-count=5", "-benchtime=3x"]
    done = subprocess.run(bench, cwd=EXAMPLES.parent, capture_output=True, text=True, check=True)
    tree, table = (
        statistics.median(float(ns) for ns in re.findall(rf"Union/{way}\S*\s+\d+\s+(\S+) ns/op", done.stdout))
        for way in ("tree", "hash")
    )
    ours = f"{table / tree:.1f} times faster: {tree / 1e6:.0f} ms against {table / 1e6:.0f} ms"
    how = "real: BenchmarkUnion in Go, 16 lists of 95,000 ids of a million and their counts, sorted; medians of 5"
    return Shown("5 times", ours, how, "holds" if table / tree >= 5 else "in part")


def a8() -> Shown:
    """Count which share of the vertices 64 parts of the edges have, dealt at random."""
    found = []
    for name, skip in (("cnr-2000", 0), ("soc-epinions-und", 1)):
        links = edges(name, skip)
        part = np.random.default_rng(1).integers(PARTS, size=len(links))
        vertices = len(np.unique(links))
        ends = [
            np.mean([len(np.unique(links[part == p][:, side])) for p in range(PARTS)]) / vertices for side in (0, 1)
        ]
        found.append(f"{name}: {ends[0]:.3f} where links begin, {ends[1]:.3f} where they end")
    return Shown(
        ".21, .03, .12 of other graphs", "; ".join(found), f"counted: {PARTS} parts, edges dealt at random", "in part"
    )


def a10() -> Shown:
    """Compute it from the paper's own table."""
    plain, small, replicated = (1.2, 0.44), (1.3, 0.60), (1.51, 0.75)
    against = [[r / p - 1 for r, p in zip(replicated, other, strict=True)] for other in (small, plain)]
    ours = "; ".join(
        f"{reached:.0%} and {reduced:.0%} more than {name}"
        for name, (reached, reduced) in zip(("8x4", "16x4"), against, strict=True)
    )
    return Shown("", f"from its table II, configuration and reduction: {ours}", "computed", "does not hold")


def a11() -> Shown:
    """Draw deaths until both of a pair are dead."""
    draw, found = np.random.default_rng(0), []
    for nodes in (64, 128):
        deaths = []
        for _ in range(2000):
            pairs = draw.permutation(nodes) // 2
            seen: set[int] = set()
            for number, pair in enumerate(pairs.tolist(), 1):
                if pair in seen:
                    deaths.append(number)
                    break
                seen.add(pair)
        found.append(f"{np.mean(deaths):.1f} of {nodes}, the root is {math.sqrt(nodes):.1f}")
    return Shown(
        "", f"the death that ends a pair is on average number {'; '.join(found)}", "computed: 2,000 draws", "holds"
    )


PROGRAMS: dict[str, Program] = {
    "M1": m1, "M14": m14, "M15": m15, "M17": m17, "N8": n8, "N9": n9,
    "A3": a3, "A4": a4, "A5": a5, "A8": a8, "A10": a10, "A11": a11,
}  # fmt: skip
