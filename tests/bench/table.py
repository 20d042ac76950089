"""The table: one line per row, marked where a target is missed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from .numbers import Span, factor, summary
from .turns import Result
from .units import amount
from .verdict import MISSED, NOISY, OWN, Verdict, totals

MARKS = {MISSED: "<<<", NOISY: "?"}
UNDECIDED = {MISSED: "missed", NOISY: "undecided"}

HEAD = (
    f"{'':34} {'ranks':>5} {'size':>8}  {'median':>9} {'min':>9} {'p90':>9}  "
    f"{'limit':>9} {'x limit':>8}  {'best peer':>24} {'x faster':>8} {'A/A':>6}  verdict"
)


def line(result: Result, verdict: Verdict) -> str:
    """Return a row's line, and one more for each reason why contenders have no values."""
    row, samples = result.row, result.samples
    head = f"{row.title:34} {row.ranks:5} {size_text(row.size):>8}  "
    if "malt" in samples:
        head += " ".join(f"{amount(x, row.unit):>9}" for x in summary(samples["malt"])) + "  "
    else:
        head += f"{'-':>9} " * 3 + " "
    base = amount(summary(samples["limit"]).median, row.unit) if samples.get("limit") else "-"
    peer = f"{verdict.peer} {amount(summary(samples[verdict.peer]).median, row.unit)}" if verdict.peer else "-"
    head += f"{base:>9} {_times(verdict.to_limit):>8}  {peer:>24} {_times(verdict.to_peer):>8} "
    head += f"{_noise(verdict.to_itself):>6}  {words(verdict)}"
    reasons: dict[str, list[str]] = {}
    for name, why in result.left_out.items():
        reasons.setdefault(" ".join(why.split())[:150], []).append(name)
    without = [f"    without {', '.join(names)}: {why}" for why, names in reasons.items()]
    return "\n".join([head, *without])


def words(verdict: Verdict) -> str:
    """Return what became of each demand; what is missed is marked."""
    told = "; ".join(f"{what}: {word}" for what, word in verdict.demands.items())
    return f"{MARKS[verdict.word]} {told}" if verdict.word in MARKS else told


def markdown(results: Sequence[Result], verdicts: Sequence[Verdict]) -> str:
    """Return totals and the table for a page: medians, peers that could not be measured, and what became of demands."""
    head = "| | ranks | size | MALT | limit | x limit | best peer | x faster | A/A | asked | |"
    lines = [f"{totals(verdicts)}.", "", head, "| --- " * 11 + "|"]
    for result, verdict in zip(results, verdicts, strict=True):
        row, samples = result.row, result.samples
        peer = verdict.peer
        cells = [
            row.title,
            str(row.ranks),
            size_text(row.size),
            *(
                amount(summary(samples[name]).median, row.unit) if samples.get(name) else ""
                for name in ("malt", "limit")
            ),
            _times(verdict.to_limit),
            "; ".join(
                ([f"{peer} {amount(summary(samples[peer]).median, row.unit)}"] if peer else [])
                + [f"without {name}" for name in result.left_out if name not in OWN]
            ),
            _times(verdict.to_peer),
            _noise(verdict.to_itself),
            ", ".join(verdict.demands),
            ", ".join(UNDECIDED.get(word, word) for word in verdict.demands.values()),
        ]
        lines.append("| " + " | ".join("" if cell == "-" else cell for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def detail(results: Sequence[Result]) -> str:
    """Return every contender's figures: of them the table has the best peer only."""
    lines = [f"{'':34} {'ranks':>5} {'size':>8}  {'contender':16} {'median':>9} {'min':>9} {'p90':>9}"]
    for result in results:
        row = result.row
        for name, values in _by_time(result):
            if name not in OWN:
                cells = " ".join(f"{amount(x, row.unit):>9}" for x in summary(values))
                lines.append(f"{row.title:34} {row.ranks:5} {size_text(row.size):>8}  {name:16} {cells}")
    return "\n".join(lines) if len(lines) > 1 else ""


def _by_time(result: Result) -> list[tuple[str, list[float]]]:
    return sorted(result.samples.items(), key=lambda item: median(item[1]))


def _times(span: Span | None) -> str:
    return f"{span.middle:.2f}" if span else "-"


def _noise(span: Span | None) -> str:
    return f"{factor(span.middle, 1) - 1:.1%}" if span else "-"


def sizes(results: Sequence[Result]) -> str:
    """Return the table of sizes as others have it: times, and the bandwidths of nccl-tests' all-reduce."""
    lines = ["| size | ranks | | min | median | max | algbw GB/s | busbw GB/s |", "| --- " * 8 + "|"]
    for result in results:
        row = result.row
        for name, _ in _by_time(result):
            times = [time for turns in result.turns[name] for time in turns]
            algorithm = row.size / median(times) / 1e9
            bus = algorithm * 2 * (row.ranks - 1) / row.ranks
            cells = [size_text(row.size), str(row.ranks), name]
            cells += [amount(time, row.unit) for time in (min(times), median(times), max(times))]
            lines.append("| " + " | ".join([*cells, f"{algorithm:.3g}", f"{bus:.3g}"]) + " |")
    return "\n".join(lines) + "\n"


def size_text(size: int) -> str:
    """Return a number of bytes."""
    for name, one in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= one:
            return f"{size / one:.3g} {name}"
    return f"{size} B" if size else "-"
