"""What is known of a job at its end, as data: a report and a trace are made of it."""

from __future__ import annotations

import math
import platform
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import malt
from malt._cli.verdict import lives, spent, verdict
from malt._cli.wrap import counted
from malt._ranks import machine
from malt._ranks.rank import Outcome, successors
from malt._ranks.story import POINTS, Story

Facts = dict[str, Any]
"""Of a job, of a rank, or of an end that was not a good one: docs/api/json.md has what is in it."""


def facts(outcomes: Sequence[Outcome], story: Story, program: Sequence[str], env: Mapping[str, str]) -> Facts:
    """Return what is known of a job that has ended; `env` has the settings of its ranks."""
    ranks = spent(outcomes, story)
    since, tracks = story.timeline(), sorted(story.tracks.items())
    noticed = sorted((when + story.clock(n)[0], n, dead) for n, track in tracks for when, dead, _ in track.deaths)
    logged = ((since(n, when), used, loss, n) for n, track in tracks for when, used, loss in track.logs["loss"])
    return {
        "command": shlex.join(program),
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(story.begun)),
        "machine": f"{platform.platform()}, {machine.cores()} cores, Python {platform.python_version()}, "
        f"MALT {malt.__version__}",
        "settings": {key: env[key] for key in sorted(env) if key.startswith("MALT_") and key not in PRIVATE},
        "vectors": next((one.made for one in lives(outcomes) if one.made), {}),
        "hosts": list(dict.fromkeys(rank["host"] for rank in ranks)),
        "setup": story.setup(),
        "seconds": max((rank["seconds"] for rank in ranks), default=0.0),
        "off": max((story.clock(n)[1] for n, _ in tracks), default=0.0),
        "verdict": verdict(outcomes, ranks),
        "ranks": ranks,
        "loss": list(_losses(logged)),
        "unit": "examples" if any("examples" in track.logs for _, track in tracks) else "syncs",
        "marks": sorted((since(n, when), n, text) for n, track in tracks for when, text in track.marks),
        "ends": [
            {
                "rank": one.number,
                "fate": one.fate(),
                "lived": one.lived or None,
                "went_on": went_on(one, outcomes, noticed),
                "replaced": bool(successors(one, outcomes)),
            }
            for one in outcomes
            if (one.status or one.needed or one.died is not None) and one.witness is None
        ],
    }


def described(facts: Facts) -> str:
    """Return how large a job was."""
    return f"{counted(len(facts['ranks']), 'rank')} on {counted(len(facts['hosts']), 'host')}"


def smoothed(facts: Facts, near: int) -> list[tuple[float, float, float]]:
    """Return when, the examples, and the mean of so many losses: those of single steps and ranks differ."""
    points = facts["loss"]
    near = max(1, min(near, len(points) // 2))
    means = (sum(loss for _, _, loss in points[i - near : i]) / near for i in range(near, len(points) + 1))
    return [(when, examples, mean) for (when, examples, _), mean in zip(points[near - 1 :], means, strict=True)]


PRIVATE = {"MALT_TOKEN", "MALT_STORE", "MALT_STORE_FD", "MALT_RANK", "MALT_REPORT", "MALT_TOGETHER"}
"""Variables that nobody else needs to see, or that differ for each rank."""


HUGE = 1e300
"""A loss or a number of examples from which on it is in no curve: sums of such are not finite."""

SOONER = 0.2
"""By how many seconds a rank may notice a death before ``malt run`` does."""


Noticed = Sequence[tuple[float, int, Sequence[int]]]
"""When, by our clock, which rank went on, and without which ones."""


def went_on(one: Outcome, outcomes: Sequence[Outcome], noticed: Noticed) -> list[tuple[int, float]]:
    """Return which ranks have noticed the death of a process, and how much later; none if it has not died."""
    if one.died is None:
        return []
    after = (other for other in outcomes if other.number == one.number and other.start > one.start)
    later = (other.died for other in after if other.died is not None)
    until = min(later, default=math.inf) - SOONER
    since = one.died - SOONER if one.start else -math.inf
    return [
        (who, max(0.0, when - one.died)) for when, who, dead in noticed if one.number in dead and since <= when < until
    ]


def _losses(logged: Iterable[tuple[float, float, float, int]]) -> Iterator[tuple[float, float, float]]:
    """Yield the losses of all ranks in the order of time, each with the examples of all ranks up to then."""
    points = sorted(point for point in logged if all(abs(x) < HUGE for x in point))
    latest: dict[int, float] = {}
    skip = max(1, len(points) // POINTS)
    for i, (when, examples, loss, number) in enumerate(points):
        latest[number] = examples
        if i % skip == 0 or i == len(points) - 1:
            yield when, sum(latest.values()), loss
