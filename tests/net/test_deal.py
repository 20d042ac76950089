"""G11 on several hosts: what ``malt.deal`` hands out where ranks of any of them are killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from dealing import LEARN, RANKS, Deaths, judge
from jobs import PRELUDE
from launching import LONG

MALT = Path(sys.executable).with_name("malt")

HOSTS = 2


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (1, "every=50 consistency=bsp order=stride"),
        (5, "every=20 consistency=bsp order=shuffle seed=3"),
        (3, "every=100 consistency=async order=shuffle"),
        (4, "every=33 consistency=ssp:2 order=block"),
    ],
)
def test_g11_none_is_lost_and_twice_comes_what_was_not_synced(seed: int, options: str, tmp_path: Path) -> None:
    (tmp_path / "learn.py").write_text(PRELUDE + textwrap.dedent(LEARN))

    @contextmanager
    def on_hosts(env: Mapping[str, str]) -> Iterator[Callable[[], Mapping[int, str]]]:
        with subprocess.Popen(
            [MALT, "sim", "--hosts", str(HOSTS), "-n", str(RANKS // HOSTS), "learn.py"],
            cwd=tmp_path,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:

                def finish() -> Mapping[int, str]:
                    out, errors = process.communicate(timeout=LONG)
                    assert process.returncode == 0, errors
                    said: dict[int, str] = {}
                    for rank, line in re.findall(r"^\[(\d+)\] (.*)$", out, re.M):
                        said[int(rank)] = said.get(int(rank), "") + line + "\n"
                    return said

                yield finish
            finally:
                process.terminate()

    judge(Deaths(seed, tmp_path, options, on_hosts, HOSTS))
