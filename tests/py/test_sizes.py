"""The tests of anysize/, as the ranks of jobs of 2, 3, 4, 5 and 8."""

from __future__ import annotations

import re
from pathlib import Path

import jobs
import pytest
from launching import LONG

ANYSIZE = Path(__file__).parent / "anysize"


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_all_of_anysize(n: int) -> None:
    outputs = jobs.run(
        n,
        f"""
        import pytest
        code = pytest.main([{str(ANYSIZE)!r}, "-q", "-p", "no:cacheprovider", "-x", f"--junitxml={{os.devnull}}"])
        sys.exit(code)
        """,
        timeout=LONG,
    )
    counts = {re.search(r"(\d+) passed", out)[1] for out in outputs}  # type: ignore[index]
    assert len(counts) == 1
    assert int(counts.pop()) > 60
