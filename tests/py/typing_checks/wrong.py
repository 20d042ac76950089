"""Programs with a mistake in each line that ends with what mypy has to call it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import malt


def vectors(single: npt.NDArray[np.float32], mode: str) -> None:
    malt.Vector(10, graph="haltn")  # arg-type
    malt.Vector(10, graph=["ring"])  # list-item
    malt.Vector(10, consistency="asp")  # arg-type
    malt.Vector(10, consistency=mode)  # arg-type
    malt.Vector(10, fold="avg")  # arg-type
    malt.Vector(10, sparse="rows")  # arg-type
    malt.Vector(10, sparse=True)  # arg-type
    malt.Vector(10, uneven="no")  # arg-type
    malt.Vector(10, start="zero")  # arg-type
    malt.Vector(10, grahp="all")  # arg-type
    malt.Vector("10")  # arg-type
    v = malt.Vector(single)
    v.allreduce("avg")  # arg-type
    v.sync(10)  # arg-type
    v.sync(evry=10)  # arg-type
    v.gather("median")  # arg-type
    v.configure(graph="rings")  # arg-type
    v.configure(consistency="ssp")  # arg-type
    doubles: npt.NDArray[np.float64] = v.array  # assignment


def together(single: npt.NDArray[np.float32]) -> None:
    malt.allreduce(single, "average")  # call-overload
    malt.allreduce(1.0, "prod")  # call-overload
    malt.allreduce([1.0, 2.0])  # call-overload
    whole: int = malt.allreduce(3)  # assignment
    doubles: npt.NDArray[np.float64] = malt.allreduce(single)  # arg-type
    text: str = malt.broadcast("3" if malt.rank() else 3)  # assignment
    ranks: list[str] = malt.allgather(malt.rank())  # arg-type


def parts(rows: npt.NDArray[np.float32]) -> None:
    malt.shard(rows, order="random")  # call-overload
    malt.shard(rows, even="trim")  # call-overload
    malt.deal(rows, order="random")  # call-overload
    malt.load("x", format="json")  # arg-type
    malt.load("x", frame="dask")  # arg-type
    malt.load("x", ordr="block")  # arg-type


def others(model: Any, estimator: Any) -> None:
    malt.init(transport="mpi")  # arg-type
    malt.torch.Vector(model, of="gradients")  # arg-type
    malt.torch.Vector(model, graph="rings")  # arg-type
    malt.torch.Vector(model, grahp="ring")  # call-arg
    malt.sklearn.Vector(estimator, consistency="sync")  # arg-type
    malt.sklearn.Vector(estimator).allreduce("avg")  # arg-type
    malt.Segment(8, graph="rings")  # arg-type
    malt.Vectr(10)  # attr-defined
