"""G11: what ``malt.deal`` hands out where ranks are killed, at moments that nobody chose, in real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from dealing import LEARN, RANKS, Deaths, judge
from jobs import Job


@contextmanager
def here(env: Mapping[str, str]) -> Iterator[Callable[[], Mapping[int, str]]]:
    """Start the ranks on this machine."""
    with Job(RANKS, LEARN, env=env) as job:

        def finish() -> Mapping[int, str]:
            job.finish()
            bad = [rank.err.text for rank in job.ranks if rank.process.returncode > 0]
            assert not bad, "\n".join(bad)
            return {number: rank.out.text for number, rank in enumerate(job.ranks) if not rank.process.returncode}

        yield finish


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (1, "every=50 consistency=bsp order=stride"),
        (2, "every=7 consistency=bsp order=shuffle seed=3"),
        (3, "every=100 consistency=async order=shuffle"),
        (4, "every=33 consistency=ssp:2 order=block"),
    ],
)
def test_g11_none_is_lost_and_twice_comes_what_was_not_synced(seed: int, options: str, tmp_path: Path) -> None:
    judge(Deaths(seed, tmp_path, options, here))
