"""Pictures: time over size, time over ranks; one line per contender."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from .numbers import summary
from .turns import Result

Lines = dict[str, list[tuple[int, float]]]


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write a picture for each operation that was measured at two sizes or more, or at two numbers of ranks or more."""
    made = []
    for over, value, fixed in (
        ("size", lambda r: r.row.size, lambda r: f"{r.row.ranks} ranks"),
        ("ranks", lambda r: r.row.ranks, lambda r: f"{r.row.size} bytes"),
    ):
        for (title, at), lines in curves(results, value, fixed).items():
            file = folder / f"{_name(title)}-over-{over}-{_name(at)}.png"
            _picture(file, f"{title}, {at}", "bytes" if over == "size" else "ranks", lines)
            made.append(file)
    return made


def curves(
    results: Sequence[Result], value: Callable[[Result], int], fixed: Callable[[Result], str]
) -> dict[tuple[str, str], Lines]:
    """Return, by operation and what is held fixed, the medians of each contender where there are two or more."""
    found: dict[tuple[str, str], Lines] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result.row.unit == "s" and not result.row.once:
            what = " ".join([result.row.op, *map(str, result.row.options.values())])
            for name, samples in result.samples.items():
                found[what, fixed(result)][name].append((value(result), summary(samples).median))
    several = {key: {n: sorted(p) for n, p in lines.items() if len(p) > 1} for key, lines in found.items()}
    return {key: lines for key, lines in several.items() if lines}


def _picture(file: Path, title: str, axis: str, lines: Lines) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name, linestyle="--" if name == "limit" else "-")
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds per call, median", title=title)
    axes.set_xscale("log", base=2)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _name(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text)
