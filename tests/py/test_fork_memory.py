"""A forked child reads the arrays of its parent, and what it writes stays its own."""

from __future__ import annotations

import jobs
import pytest

# Ends with how a child ended: 0, or what went wrong.
CHILD = """
def child(do):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            do()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]
"""

ARRAYS = """
import multiprocessing
sizes = {"copied": 300, "mapped": 1 << 18}    # the child copies small memory, and maps large one anew
vectors = [malt.Vector(np.full((n, 2), 1.0), name=name) for name, n in sizes.items()]
vectors.append(malt.Vector(np.full(300, 1.0), consistency="ssp:1", name="ssp"))
vectors.append(malt.Vector(np.full((300, 2), 1.0), sparse="model", name="sparse"))
segment = malt.Segment(1 << 21)
received = malt.allgather(np.full(3000, 1.0))

def scribble():
    held = {v.name: v.array[3:7] for v in vectors}
    for v in vectors:
        assert (v.array == 1).all(), v.name
        v.array[:] = 77
        assert (held[v.name] == 77).all(), v.name
        v.array.T[...] += 1
        assert (v.array == 78).all(), v.name
    segment.buffer[:5] = b"child"
    for a in received:
        assert a.sum() == 3000
        a[:] = 5

assert child(scribble) == 0
# A child of a child, and one that outlives what its parent gives back.
def again():
    vectors[1].array[:] = 7
    assert child(lambda: vectors[1].array.fill(9)) == 0
    assert (vectors[1].array == 7).all()
assert child(again) == 0
with multiprocessing.get_context("fork").Pool(1) as pool:
    pool.apply(scribble)
for v in vectors:
    assert (v.array == 1).all(), v.name
assert bytes(segment.buffer[:5]) == bytes(5)
assert all((a == 1).all() for a in received)
malt.barrier()
for v in vectors:                             # the parent's memory is as shared as before
    v.array += malt.rank()
    v.allreduce()
    assert (v.array == 1 + (n - 1) / 2).all(), v.name
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_a_forked_child_writes_stays_its_own(ranks: int) -> None:
    jobs.run(ranks, CHILD + ARRAYS)


def test_a_forked_child_reads_the_updates_that_a_fold_was_lent() -> None:
    jobs.run(
        2,
        CHILD
        + """
v = malt.Vector(np.full(3000, 1.0 + r), start="own", consistency="async")
v.scatter()
malt.barrier()
kept = []
def fold(own, updates):
    def read():
        assert [u.array.sum() for u in updates] == [3000 * (2.0 - r)]
        own[:] = 3
    assert child(read) == 0
    kept.extend(updates)
    return own
v.gather(fold)
assert (v.array == 1 + r).all()
assert child(lambda: kept[0].array.sum()) == 0
""",
    )


def test_a_forked_child_trains_parameters_of_its_own() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    jobs.run(
        2,
        CHILD
        + """
import torch, malt.torch
torch.set_num_threads(1)
model = torch.nn.Linear(600, 600)
v = malt.torch.Vector(model)
before = [p.detach().clone() for p in model.parameters()]
def train():
    with torch.no_grad():
        for p in model.parameters():
            p += 1
    assert all((p == b + 1).all() for p, b in zip(model.parameters(), before))
assert child(train) == 0
assert all((p == b).all() for p, b in zip(model.parameters(), before))
v.sync()
""",
    )
