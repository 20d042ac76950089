"""Ranks that make different collective calls: none of them goes on with a wrong result."""

from __future__ import annotations

import json

import jobs

CALLS = """
import json
w1 = malt.Vector(np.full(3, r + 1.0), name="w", start="own")
w2 = malt.Vector(np.full(3, r + 10.0), name="w", start="own")
one, two, ints = np.ones(1), np.ones(2), np.ones(2, int)
CALLS = {
    "op of numbers": (lambda: malt.allreduce(1.0, "sum"), lambda: malt.allreduce(1.0, "max")),
    "op of integers": (lambda: malt.allreduce(ints, "sum"), lambda: malt.allreduce(ints, "max")),
    "number, allgather": (lambda: malt.allreduce(1.0, "sum"), lambda: malt.allgather(1.0)),
    "integers, allgather": (lambda: malt.allreduce(ints, "sum"), lambda: malt.allgather(ints)),
    "number, array": (lambda: malt.allreduce(1.0, "sum"), lambda: malt.allreduce(one, "sum")),
    "dtype of integers": (lambda: malt.allreduce(ints, "sum"), lambda: malt.allreduce(ints.astype("i4"), "sum")),
    "length of integers": (lambda: malt.allreduce(ints, "sum"), lambda: malt.allreduce(ints[:1], "sum")),
    "shape": (lambda: malt.allreduce(two[None], "sum"), lambda: malt.allreduce(two[:, None], "sum")),
    "dtype": (lambda: malt.allreduce(two, "sum"), lambda: malt.allreduce(two.astype("f4"), "sum")),
    "root": (lambda: malt.broadcast(1, root=0), lambda: malt.broadcast(1, root=1)),
    "broadcast, allreduce": (lambda: malt.broadcast(1.0), lambda: malt.allreduce(1.0)),
    "broadcast, allgather": (lambda: malt.broadcast(1.0), lambda: malt.allgather(1.0)),
    "barrier, allgather": (lambda: malt.barrier(), lambda: malt.allgather(1.0)),
    "op of a vector": (lambda: w1.allreduce("sum"), lambda: w1.allreduce("max")),
    "vectors of one name": (lambda: w1.allreduce("sum"), lambda: w2.allreduce("sum")),
    "broadcasts of one name": (lambda: w1.broadcast(), lambda: w2.broadcast()),
    "root of a vector": (lambda: w1.broadcast(0), lambda: w1.broadcast(1)),
    "configure": (lambda: w1.configure(consistency="ssp:1"), lambda: w1.configure(consistency="ssp:2")),
    "making": (lambda: malt.Vector(3), lambda: malt.Vector(4)),
    "making of a segment": (lambda: malt.Segment(3), lambda: malt.Segment(4)),
}
said = {}
for name, calls in CALLS.items():
    try:
        said[name] = repr(calls[r]())
    except malt.MismatchError as e:
        said[name] = str(e).splitlines()
print(json.dumps(said))
"""


def said() -> list[dict[str, list[str]]]:
    return [json.loads(out) for out in jobs.run(2, CALLS)]


def test_every_collective_call_is_compared() -> None:
    ranks = said()
    for name, lines in ranks[0].items():
        assert isinstance(lines, list), f"{name} gave {lines}"
        assert lines[0] == ranks[1][name][0], "the ranks say different things"
        assert len(lines) == 5, lines
        assert max(map(len, lines)) < 200, lines
        assert lines[1].startswith("rank 0: "), lines
        assert lines[2].startswith("rank 1: "), lines
    words = ranks[0]
    assert words["op of numbers"][0] == "malt: the ranks passed different arguments to malt.allreduce"
    assert words["op of numbers"][2].startswith('rank 1: malt.allreduce(a number, "max")')
    assert words["number, allgather"][0] == "malt: the ranks are in different collective calls"
    assert "malt.allgather()" in words["number, allgather"][2]
    assert words["root"][3] == "Pass the same on all ranks."
    assert words["making"][3].startswith(
        "Pass the same on all ranks. If a length comes from the data, agree on it first"
    )
    assert words["vectors of one name"][0] == "malt: the ranks made this call on different objects with the same name"
