"""``malt.load`` where ranks have died, or die meanwhile, and the others go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import run, script
from loads import DeadError, Loads, mine

CALLS = 9  # more than a load makes: in the last of these the ranks have all they want


def lived(results: list[Any], dead: set[int]) -> list[tuple[int, Any]]:
    """Return what ranks have loaded, all but the dead; those may have died with all they want."""
    for rank in dead:
        if isinstance(results[rank], Exception):
            assert isinstance(results[rank], DeadError)
    return [(rank, result) for rank, result in enumerate(results) if rank not in dead]


@pytest.mark.parametrize("order", ["block", "stride", "shuffle"])
@pytest.mark.parametrize("call", range(CALLS))
@pytest.mark.usefixtures("tiny_blocks")
def test_the_others_get_their_rows(loads: Loads, tmp_path: Path, order: str, call: int) -> None:
    quoted, plain, table = (tmp_path / name for name in ("x.csv", "x.txt", "y.npy"))
    quoted.write_text("".join(f'{i},"\n"\n' for i in range(40)))
    plain.write_text("".join(f"{i}\n" for i in range(40)))
    np.save(table, np.arange(40))
    for dies in ({1: call}, {0: 0, 2: call}):
        for rank, x in lived(loads(4, quoted, order=order, header=False, columns=[0], dies=dies), set(dies)):
            assert np.ravel(x).tolist() == mine(40, rank, 4, order).tolist()
        for rank, both in lived(loads(4, plain, table, order=order, dies=dies), set(dies)):
            x, y = both
            assert [int(line) for line in x] == y.tolist() == mine(40, rank, 4, order).tolist()


def test_ranks_are_called_by_their_numbers(loads: Loads, tmp_path: Path) -> None:
    paths = [tmp_path / str(rank) / "x.csv" for rank in range(4)]
    for rank, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text("1,2\n" if rank < 3 else "1,23\n")

    def fails(dies: dict[int, int], **options: object) -> str:
        said = {str(e) for _, e in lived(loads(4, lambda rank: paths[rank], dies=dies, **options), set(dies))}
        return "; ".join(sorted(said))

    assert "x.csv has 4 bytes on rank 1, 5 on rank 3" in fails({0: 0, 2: 0})
    assert "order=block on rank 1 and stride on rank 3" in fails({0: 0}, order=lambda r: ["block", "stride"][r // 3])
    paths[3].unlink()
    assert "load failed on rank 3: there is no file" in fails({1: 0})


def test_the_first_rank_that_is_left_warns(loads: Loads, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i // 60}\n" for i in range(120)))
    with pytest.warns(RuntimeWarning, match="all 30 rows of rank 1 of .* have the label 0\n") as told:
        loads(4, path, label="y", dies={0: 0})
    assert len(told) == 1


def test_of_real_ranks(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{i}\n" for i in range(1000)))
    text = f"""
    import numpy as np
    import malt
    malt.barrier()
    if r == 1: os.kill(os.getpid(), signal.SIGKILL)
    while 1 in malt.alive():
        malt.barrier()
    for order in ("block", "stride", "shuffle"):
        x = malt.load({str(path)!r}, order=order, header=False)
        assert x[:, 0].tolist() == malt.shard(np.arange(1000.0), order=order).tolist()
    print("fine")
    """
    done = run("-q", "--on-death", "continue", "-n", "3", script(tmp_path, text))
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == ["[0] fine", "[2] fine"]
