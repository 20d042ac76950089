"""The form of every error of the library: what happened; where, and which ranks; what to do."""

from __future__ import annotations

import ctypes
import json
import mmap
import re
from collections.abc import Callable

import pytest
from jobs import Job

import malt
from malt import _lib
from malt._lib import convert
from malt._lib.loading import ffi, lib

PACKAGES = (
    "malt|capi|libmalt|rdma|shm|tcp|inmem|mixed|auto|rendezvous|meeting|box|mem|graphs|consistency|reduce|spvec|exchange|"
    "handshake"
)
WIDTH = 120  # of a line, lists of what is accepted apart


def check_form(sentence: str) -> None:
    """Fail unless these are at most three short lines, one of them for each of two ranks that disagree."""
    assert sentence.startswith("malt: ")
    lines = sentence.removeprefix("malt: ").splitlines()
    assert not re.match(rf"({PACKAGES}): ", lines[0]), sentence
    if lines[-1].startswith("More: malt explain "):
        lines.pop()
    disagree = sum(bool(re.match(r"rank \d+: ", line)) for line in lines)
    assert len(lines) - max(0, disagree - 1) <= 3, sentence
    assert all(len(line) <= WIDTH or line.startswith("it is one of ") for line in lines), sentence
    assert "%!" not in sentence, "a format and its values do not fit"


def options(text: str) -> Callable[[], object]:
    return lambda: convert.check(lib.malt_vector_check(ffi.NULL, text.encode()))


def of(name: str, *args: object) -> Callable[[], object]:
    return lambda: convert.check(getattr(lib, name)(*args))


def graph(spec: str, size: int) -> Callable[[], object]:
    return of("malt_graph_new", spec.encode(), size, 0, ffi.new("malt_handle *"))


def made(arrays: list[dict[str, object]], text: str = "", n: int | None = None) -> Callable[[], object]:
    def make() -> None:
        n_arrays = len(arrays) if n is None else n
        a = ffi.new("malt_array[]", arrays) if arrays else ffi.NULL
        convert.check(lib.malt_vector_new(a, n_arrays, ffi.NULL, text.encode(), 100, ffi.new("malt_handle *")))

    return make


ONE = {"count": 4, "dtype": 1}
NULL = ffi.NULL
REFUSED: dict[str, Callable[[], object]] = {
    **{
        spec + f" of {n}": graph(spec, n)
        for spec, n in [
            ("alll", 4),
            ("zzzzzz", 4),
            ("x" * 5000, 4),
            ("all:3", 4),
            ("random", 4),
            ("random:0", 4),
            ("random:9", 4),
            ("random:x", 4),
            ("random:2:x", 4),
            ("random:9000", 32000),
            ("hypercube", 6),
            ("all", 0),
            ("all", 10**7),
            ("lists:1/x", 2),
            ("lists:1/0", 3),
            ("lists:0/0", 2),
            ("lists:5/0", 2),
            ("lists:1,1/0", 2),
            ("lists:1/0/3/2", 4),
            ("lists:1/0/1", 3),
            ("halton-paper", 64),
        ]
    },
    **{
        text[:40]: options(text)
        for text in [
            "graph",
            "grph=all",
            "zzzz=all",
            "graph=all graph=all",
            "graph=",
            "allow_disconnected=maybe",
            "uneven=x",
            "start=x",
            "sparse=x",
            "sparse=true",
            "filter=x",
            "filter=dvf:x",
            "filter=dvf:1",
            "filter=top:1 sparse=model",
            "fold=avg",
            "consistency=asp",
            "consistency=zzzz",
            "consistency=ssp",
            "consistency=ssp:x",
            "consistency=ssp:-1",
            "consistency=bsp:2",
            "consistency=notify-ack:0",
            "x" * 500,
        ]
    },
    "long name": lambda: malt.Vector(3, name="a" * 300),
    "blank in a name": lambda: malt.Vector(3, name="a b"),
    "no arrays": made([]),
    "NULL arrays": made([], n=2),
    "element type": made([{"count": 3, "dtype": 7}]),
    "too many elements": made([{"count": 1 << 60, "dtype": 1}]),
    "rows, not sparse": made([{**ONE, "row": 2}]),
    "sparse, two arrays": made([ONE, ONE], "sparse=model"),
    "sparse, rows that do not divide": made([{"count": 5, "dtype": 1, "row": 2}], "sparse=model"),
    "memory": lambda: malt.Vector(1 << 43),
    "memory of a segment": lambda: malt.Segment(1 << 44),
    "bytes of a segment": lambda: malt.Segment(1 << 50),
    "null handle": of("malt_vector_gather", 0, NULL, 0, NULL),
    "wild handle": of("malt_vector_gather", 12345678, NULL, 0, NULL),
    "inspect": lambda: _lib.inspect("nonsense"),
    "init twice": of("malt_init", NULL, 0),
    "unmap": of("malt_unmap", ffi.new("char[8]")),
    "broadcast": of("malt_broadcast", NULL, 0, 7, 0),
    "broadcast NULL": of("malt_broadcast", NULL, 8, 0, 0),
    "allreduce op": of("malt_allreduce", ffi.new("float[3]"), 3, 1, b"replace", 0),
    "allreduce avg": of("malt_allreduce", ffi.new("float[3]"), 3, 1, b"avg", 0),
    "allreduce NULL": of("malt_allreduce", ffi.new("float[3]"), 3, 1, NULL, 0),
    "allreduce type": of("malt_allreduce", ffi.new("float[3]"), 3, 9, b"sum", 0),
}
CALLS: dict[str, Callable[[malt.Vector, int], object]] = {
    "scatter twice": lambda v, h: (v.scatter(), v.scatter()),
    "gather first": lambda v, h: v.gather(),
    "weight": lambda v, h: v.scatter(weight=-1),
    "no number": lambda v, h: v.scatter(weight=float("nan")),
    "to itself": lambda v, h: v.scatter(to=[0]),
    "rows, not sparse": lambda v, h: convert.check(
        lib.malt_vector_scatter_rows(h, ffi.new("int64_t[1]"), 1, NULL, 0, 1.0, 0, NULL)
    ),
    "fold": lambda v, h: convert.check(lib.malt_vector_gather(h, b"avg", 0, NULL)),
    "configure": lambda v, h: convert.check(lib.malt_object_configure(h, b"start=own", 0)),
    "end": lambda v, h: convert.check(lib.malt_object_gather_end(h, 1)),
    "array": lambda v, h: convert.check(lib.malt_object_data(h, 5, ffi.new("void **"), NULL)),
    "op": lambda v, h: convert.check(lib.malt_vector_allreduce(h, b"replace", 0)),
    "a segment": lambda v, h: convert.check(lib.malt_object_gather_begin(h, 0, ffi.new("uint32_t *"))),
    "cap": lambda v, h: convert.check(lib.malt_object_describe(h, NULL, 5, NULL)),
    "closed": lambda v, h: (lib.malt_object_close(h), convert.check(lib.malt_vector_gather(h, NULL, 0, NULL))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    malt.init()
    with pytest.raises((malt.Error, ValueError)) as caught:
        REFUSED[name]()
    check_form(str(caught.value))


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_vector(name: str) -> None:
    v = malt.Vector(3)
    with pytest.raises((malt.Error, ValueError)) as caught:
        CALLS[name](v, v._object.handle)
    check_form(str(caught.value))
    if name != "closed":
        v.close()


# Each line is what one rank calls, and what the other one does.
UNEQUAL = """
malt.Vector(3) | malt.Vector(4)
malt.Vector(3, name="a") | malt.Vector(3, consistency="async")
malt.Vector(3, graph=[[1], [0]]) | malt.Vector(3)
malt.Vector(3) | malt.Segment(8)
malt.allreduce(1.0, "sum") | malt.allreduce(1.0, "max")
malt.allreduce(np.zeros(3)) | malt.allreduce(np.zeros(4))
malt.allreduce(1) | malt.allgather(1)
malt.allreduce(np.zeros(3, int)) | malt.barrier()
malt.broadcast(1, root=0) | malt.broadcast(1, root=1)
v.allreduce() | w.allreduce()
v.allreduce() | v.broadcast()
malt.Vector(1 << 44) | malt.Vector(1 << 44)
malt.barrier(timeout=0.3) | time.sleep(0.6)
malt.allreduce(1, timeout=0.3) | time.sleep(0.6)
malt.broadcast({}, timeout=0.3) | time.sleep(0.6)
v.sync(timeout=0.3) | time.sleep(0.6)
"""


def test_ranks_that_disagree() -> None:
    pairs = [line.split(" | ") for line in UNEQUAL.strip().splitlines()]
    program = f"""
import json, time
v, w = malt.Vector(3, name="v"), malt.Vector(3, name="w")
for pair in {pairs!r}:
    try:
        eval(pair[malt.rank()])
    except (malt.Error, ValueError) as error:
        print(json.dumps([pair[malt.rank()], str(error)]), flush=True)
    time.sleep(0.1 if "timeout" in pair[0] else 0)
"""
    with Job(2, program) as job:
        ranks = job.finish()
    said = [json.loads(line) for rank in ranks for line in rank.out.text.splitlines()]
    assert {call for call, _ in said} >= {call for pair in pairs for call in pair if "sleep" not in call}
    for call, sentence in said:
        check_form(sentence)
        name = call.partition("(")[0]
        if "different arguments" in sentence or "timed out" in sentence or "gave up" in sentence:
            assert name in sentence, "a call is named as the user wrote it"


def test_a_name_without_an_end_is_not_read_on() -> None:
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    memory[:page] = b"a" * page
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page), page, 0) == 0
    malt.init()
    with pytest.raises(ValueError, match="name is longer than 4095 bytes") as caught:
        convert.check(lib.malt_vector_check(ffi.cast("char *", address + page - 4096), NULL))
    check_form(str(caught.value))


@pytest.mark.parametrize("close", ["os.closerange(3, 1000)", "os.close(poller())", "os.dup2(0, poller())"])
def test_closed_descriptors_are_an_error(close: str) -> None:
    program = f"""
import os
def poller():
    with os.scandir("/proc/self/fd") as found:
        return next(int(f.name) for f in found if os.readlink(f.path).endswith("[eventpoll]"))
v = malt.Vector(3)
{close}
try:
    malt.Vector(100_000)
except malt.HostError as error:
    print(error, flush=True)
"""
    with Job(2, program) as job:
        for rank in job.finish():
            check_form(rank.out.text.strip())
            assert "this process closed file descriptors that MALT uses" in rank.out.text
            assert "goroutine" not in rank.err.text


@pytest.mark.parametrize(
    "close", ["os.closerange(3, 65536)", "os.close(opened('[eventpoll]'))", "os.close(opened('[eventfd]'))"]
)
def test_a_process_that_go_ends_over_closed_descriptors_says_why(close: str) -> None:
    program = f"""
def opened(kind):
    with os.scandir("/proc/self/fd") as found:
        return next(int(f.name) for f in found if os.readlink(f.path).endswith(kind))
malt.barrier()
if r == 1:
    {close}
try:
    while True:                           # looks at no descriptor before it goes into Go
        malt.barrier()
except malt.PeerError:
    os._exit(7)
"""
    with Job(2, program) as job:
        survivor, closed = job.finish()
        assert (survivor.process.returncode, closed.process.returncode) == (7, 1)
        check_form(closed.err.text.strip())
        assert "closed file descriptors that MALT uses" in closed.err.text
