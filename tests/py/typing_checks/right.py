"""Programs that a type checker accepts, and the types that it finds in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type, cast

import numpy as np
import numpy.typing as npt

import malt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


def vectors(single: F32, double: F64, slack: int, k: int) -> None:
    assert_type(malt.Vector(10).array, npt.NDArray[Any])
    assert_type(malt.Vector((2, 3), dtype=np.float32).array, F32)
    v = malt.Vector(single, graph="halton", consistency="ssp:2", fold="sum", name="model")
    assert_type(v, malt.Vector[np.float32])
    assert_type(v.array, F32)
    assert_type(v.flat, F32)
    assert_type(malt.Vector([double, double]).arrays, tuple[F64, ...])
    malt.Vector(np.zeros(3, np.int64), dtype=np.float64)
    malt.Vector([single, double], dtype="float64")
    malt.Vector(10, graph=[[1], [0]], consistency="notify-ack")
    malt.Vector(10, graph="random:9", consistency="ssp:12")
    malt.Vector(10, graph=malt.Graph(f"random:{k}"), consistency=cast("malt.typing.Consistency", f"ssp:{slack}"))
    malt.Vector(10, sparse="gradient", uneven="ok", start="own")

    def middle(own: F64, updates: list[malt.Update]) -> F64:
        return cast("F64", np.median([own, *(u.array for u in updates)], axis=0))

    w = malt.Vector(10, fold=middle)
    w.array -= 0.1
    w.array = [1.0] * 10
    w.sync(every=10, weight=3)
    w.gather("max")
    w.allreduce("sum")
    w.configure(graph="ring", consistency=v.consistency)
    with malt.Vector(double) as u:
        assert_type(u, malt.Vector[np.float64])


def by_annotation(v: malt.Vector, op: malt.typing.Op, mode: malt.typing.Consistency = "bsp") -> None:
    v.allreduce(op)
    v.configure(consistency=mode)
    assert_type(malt.allreduce(1.0, op), float)


def together(single: F32, whole: npt.NDArray[np.int32], flags: npt.NDArray[np.bool_]) -> None:
    assert_type(malt.allreduce(single), F32)
    assert_type(malt.allreduce(single, "max"), F32)
    assert_type(malt.allreduce(whole), F64)
    assert_type(malt.allreduce(whole, "min"), npt.NDArray[np.int32])
    assert_type(malt.allreduce(flags, "max"), npt.NDArray[np.bool_])
    assert_type(malt.allreduce(np.float32(1)), np.float32)
    assert_type(malt.allreduce(3), float)
    assert_type(malt.allreduce(3, "sum"), int)
    assert_type(malt.allreduce(True, "max"), bool)
    assert_type(malt.allreduce(1j), complex)
    assert_type(malt.broadcast({"rate": 0.1}), dict[str, float])
    rate = malt.broadcast(0.1 if malt.rank() == 0 else None)
    assert_type(rate, float)
    assert_type(malt.broadcast(single), F32)
    assert_type(malt.allgather(malt.rank()), list[int])
    assert_type(malt.allgather(single), list[F32])


def parts(rows: F32, labels: npt.NDArray[np.int64], names: list[str]) -> None:
    assert_type(malt.shard(rows, order="shuffle", seed=1, even="pad"), F32)
    x, y = malt.shard(rows, labels)
    assert_type(x, F32)
    assert_type(y, npt.NDArray[np.int64])
    part = malt.shard(rows, labels, names)
    assert_type(part, tuple[Any, ...])
    assert_type(malt.deal(names, epochs=2, order="shuffle", seed=1, even="drop"), malt.Deal[str])
    for name, number in malt.deal(names, range(3)):
        assert_type((name, number), tuple[str, int])
    assert_type(malt.deal(rows, labels, names), malt.Deal[Any])
    malt.load("train.svm", order="block", format="svmlight", frame="polars")
    function: Callable[[], int] = malt.rank
    assert_type(malt.run(function, 2), list[int])
    assert_type(malt.run(function, 2, on_death="continue"), list[int | malt.PeerError])


def others(model: Any, estimator: Any) -> None:
    malt.init(transport="shm")
    v = malt.torch.Vector(model, of="grads", graph="all", start="own")
    v.configure(consistency="bsp")
    malt.sklearn.Vector(estimator, graph="ring", start="same").allreduce("mean")
    malt.Segment(8, graph="star", consistency="async")
