"""Processes that multiprocessing starts afresh: helpers of a rank, or ranks of a launcher."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from launching import launched, run

HELPER = """
import malt, multiprocessing, os, sys

def work(queue):
    try:
        malt.barrier()
        refused = False
    except malt.StateError as e:
        refused = "is not a rank itself" in str(e)
    queue.put((malt.rank(), malt.size(), "MALT_RANK" in os.environ, refused))

if __name__ == "__main__":
    start = multiprocessing.get_context(sys.argv[1])
    if sys.argv[2] == "joined":
        malt.barrier()
    queue = start.Queue()
    process = start.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=300))
    process.join()
    malt.barrier()
"""


@pytest.mark.parametrize("when", ["joined", "not yet joined"])
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_of_a_rank_is_no_rank(method: str, when: str, tmp_path: Path) -> None:
    path = tmp_path / "helper.py"
    path.write_text(HELPER)
    done = run("-n", "2", str(path), method, when)
    assert done.process.returncode == 0, done.err
    said = sorted(re.findall(r"\(.*\)", done.out))
    assert said == [f"({rank}, 2, False, True)" for rank in range(2)]


LAUNCHER = """
import malt, multiprocessing, os, sys, uuid

def work():
    sys.stdout.write(f"{malt.allgather(malt.rank())}\\n")

if __name__ == "__main__":
    os.environ.update(MALT_SIZE="2", MALT_STORE="local:" + uuid.uuid4().hex, MALT_TOKEN="00" * 16)
    processes = []
    for rank in range(2):
        os.environ["MALT_RANK"] = str(rank)
        processes.append(multiprocessing.get_context("spawn").Process(target=work))
        processes[-1].start()
    for process in processes:
        process.join()
"""


def test_children_of_a_launcher_are_ranks(tmp_path: Path) -> None:
    path = tmp_path / "launcher.py"
    path.write_text(LAUNCHER)
    with launched(command=[sys.executable, str(path)]) as done:
        assert done.finish() == 0, done.err
        assert done.out == "[0, 1]\n" * 2
