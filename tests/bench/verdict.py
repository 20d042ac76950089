"""Whether a row has reached its target, or the machine was too noisy to tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .numbers import Span, apart, factor, ratio, span, summary
from .rows import Row
from .systems import AGAIN
from .units import amount

Samples = Mapping[str, Sequence[float]]
"""By contender: ``malt``, ``limit`` (or the baseline), and the peers."""

OWN = ("malt", AGAIN, "limit")

MET, MISSED, NOISY, UNKNOWN = "met", "MISSED", "too noisy", "not measured"
WORDS = (MISSED, NOISY, UNKNOWN, MET)
"""A demand is met, or missed, where the whole span of its figure over the starts is on that side.

It is too noisy to tell where the bound is within the span, or where MALT differs more from a second MALT than the
figure does from the bound. The figure is of the two that are compared alone: a peer that is not the best one may be as
noisy as it likes.
"""


@dataclass
class Verdict:
    """What one row's samples say."""

    peer: str = ""
    """The peer that is fastest, by its median."""
    to_peer: Span | None = None
    """How many times as fast MALT is as that peer."""
    to_limit: Span | None = None
    """How many times the limit MALT takes."""
    to_itself: Span | None = None
    """How many times as long the second MALT takes as the first (A/A)."""
    demands: dict[str, str] = field(default_factory=dict)
    """What was asked, in words, and what came out."""

    @property
    def word(self) -> str:
        """The verdict in one word: the worst that is known."""
        found = self.demands.values()
        return next((w for w in WORDS if w in found), "")


def judge(row: Row, samples: Samples, others: Mapping[str, Samples]) -> Verdict:
    """Judge a row; `others` are the samples of all rows, by key."""
    made, target, own = Verdict(), row.target, samples.get("malt", ())
    peers = {name: values for name, values in samples.items() if name not in OWN}
    if own and peers:
        made.peer = min(peers, key=lambda name: summary(peers[name]).median)
        made.to_peer = ratio(peers[made.peer], own)
    base = samples.get("limit", ())
    if own and base:
        made.to_limit = ratio(own, base)
    if own and samples.get(AGAIN):
        made.to_itself = ratio(samples[AGAIN], own)
    noise = factor(made.to_itself.middle, 1) if made.to_itself else 1.0
    if target.peer is not None:
        slower = ratio(own, peers[made.peer]) if made.to_peer else None
        made.demands[f">= {target.peer:.3g}x peer"] = _at_most(1 / target.peer, slower, noise)
    if target.limit is not None:
        made.demands[f"<= {target.limit:.3g}x limit"] = _at_most(target.limit, made.to_limit, noise)
    if target.most is not None:
        made.demands[f"<= {amount(target.most, row.unit)}"] = _at_most(target.most, span(own) if own else None, noise)
    if target.over is not None:
        allowed = [value + target.over for value in base]
        over = ratio(own, allowed) if own and allowed else None
        made.demands[f"<= {amount(target.over, row.unit)} over"] = _at_most(1, over, noise)
    if target.after is not None:
        key, times, what = target.after
        first = others.get(key, {}).get("malt", ())
        grown = apart(span(own), span(first)) if own and first else None
        made.demands[f"<= {times:.3g}x {what}"] = _at_most(times, grown, noise)
    if samples and not own:  # the others have done it
        made.demands = dict.fromkeys(made.demands, MISSED)
    return made


def _at_most(bound: float, found: Span | None, noise: float) -> str:
    """Judge a figure whose own noise is a factor."""
    if found is None:
        return UNKNOWN
    if found.low <= bound < found.high or factor(found.middle, bound) < noise:
        return NOISY
    return MET if found.high <= bound else MISSED


def totals(verdicts: Sequence[Verdict]) -> str:
    """Return how many rows with targets there are, and what became of them."""
    words = [verdict.word for verdict in verdicts if verdict.word]
    told = {MET: "met", MISSED: "missed", NOISY: "undecided", UNKNOWN: UNKNOWN}
    return f"{len(words)} rows with targets: " + ", ".join(f"{words.count(w)} {text}" for w, text in told.items())


def too_noisy(verdicts: Sequence[Verdict], busy: float) -> str:
    """Say in a sentence whether the machine as a whole was too noisy; `busy` is cores kept busy by others."""
    judged = [word for verdict in verdicts for word in verdict.demands.values()]
    undecided = judged.count(NOISY)
    if busy <= 0.5 and 4 * undecided <= len(judged):
        return ""
    return (
        f"The machine was too noisy to tell: other programs kept {busy:.1f} cores busy, {undecided} of "
        f"{len(judged)} demands are undecided. Take the ratios as hints, and no time as such."
    )
