"""Tensors, and arrays of other libraries, in ``broadcast``, ``allgather`` and ``allreduce``."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import jobs
import numpy as np
import pytest

import malt
from malt._job import codec, world

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")


def there_and_back(value: Any) -> Any:
    return codec.decode(codec.encode(value))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "int8", "uint8", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_tensors_come_back_as_they_were(dtype: str, shape: tuple[int, ...]) -> None:
    sent = torch.arange(np.prod(shape, dtype=int)).reshape(shape).to(getattr(torch, dtype))
    got = there_and_back(sent)
    assert type(got) is torch.Tensor
    assert (got.dtype, got.shape, got.device, got.requires_grad) == (sent.dtype, sent.shape, sent.device, False)
    assert torch.equal(got, sent)
    if got.numel():
        got.reshape(-1)[0] = 1  # a tensor of its own


def test_views_parameters_and_conjugates() -> None:
    x = torch.randn(3, 4)
    assert torch.equal(there_and_back(x.T), x.T)
    assert torch.equal(there_and_back(x[:, ::2]), x[:, ::2])
    z = torch.randn(3, dtype=torch.complex64)
    assert torch.equal(there_and_back(z.conj()), z.conj().resolve_conj())
    got = there_and_back(torch.nn.Parameter(x))
    assert type(got) is torch.Tensor
    assert got.requires_grad
    assert got.is_leaf
    assert not there_and_back(torch.nn.Parameter(x) * 2).requires_grad


def test_states_of_optimizers_schedulers_and_generators() -> None:
    model = torch.nn.Linear(3, 2).to(torch.bfloat16)
    for make in (torch.optim.Adam, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)):
        optimizer = make(model.parameters())
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(3):
            model(torch.ones(1, 3, dtype=torch.bfloat16)).sum().backward()
            optimizer.step()
            schedule.step()
        state = {"opt": optimizer.state_dict(), "schedule": schedule.state_dict(), "random": torch.get_rng_state()}
        got = there_and_back(state)
        again = make(model.parameters())
        again.load_state_dict(got["opt"])
        assert str(again.state_dict()) == str(optimizer.state_dict())
        assert got["schedule"] == state["schedule"]
        torch.set_rng_state(got["random"])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [torch.eye(2).to_sparse()]}, r"value\['a'\]\[0\] is a tensor, torch.sparse_coo"),
        (torch.empty(2, device="meta"), "value is a tensor, on the meta device"),
        ({"f": print}, r"value\['f'\] is a builtins.builtin_function"),
    ],
)
def test_what_cannot_travel_is_named(value: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        malt.allgather(value)


def test_arrays_of_unknown_libraries_become_numpys() -> None:
    class Lazy:
        dtype = np.dtype(np.int32)

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return np.arange(3, dtype=np.int32)

    got = there_and_back([Lazy()])[0]
    assert type(got) is np.ndarray
    assert got.dtype == np.int32
    assert got.tolist() == [0, 1, 2]
    assert malt.allreduce(Lazy(), "sum").tolist() == [0, 1, 2]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(TypeError, match=r"is a pandas\.Series\n"):  # its index would be lost
        malt.allgather(pandas.Series([1, 2]))


def test_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    for dtype in ("float32", "bfloat16", "float16", "int32"):
        sent = jax.numpy.arange(6, dtype=dtype).reshape(2, 3)
        got = there_and_back(sent)
        assert isinstance(got, jax.Array)
        assert got.dtype == sent.dtype
        assert (got == sent).all()
        summed = malt.allreduce(sent, "sum")
        assert isinstance(summed, jax.Array)
        assert summed.dtype == sent.dtype
        assert (summed == sent).all()
    tree = {"layer": {"w": jax.numpy.ones((2, 2), "bfloat16"), "b": [jax.numpy.zeros(3), np.ones(2)]}, "step": 3}
    got = there_and_back(tree)
    kinds = [(type(leaf), getattr(leaf, "dtype", None)) for leaf in jax.tree.leaves(tree)]
    assert [(type(leaf), getattr(leaf, "dtype", None)) for leaf in jax.tree.leaves(got)] == kinds
    for data in (jax.numpy.ones(3), jax.numpy.float32(3), [np.ones(2), jax.numpy.ones(3)]):
        with pytest.raises(TypeError, match=r"(?s)ArrayImpl, whose memory malt cannot share.*np\.array\(data"):
            malt.Vector(data)
    with pytest.raises(TypeError, match=r"a function that JAX is tracing.*\n.*outside of jax\.jit"):
        jax.jit(malt.allreduce)(jax.numpy.ones(3))


def test_what_jax_would_cut_down_to_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that behaves as JAX does: numpy's int64 becomes int32, in silence."""

    class Array:
        def __init__(self, values: np.ndarray[Any, Any]) -> None:
            self.values, self.dtype = values, values.dtype

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return self.values

    def asarray(values: np.ndarray[Any, Any], dtype: Any = None) -> Array:
        return Array(values.astype(dtype or {"int64": np.int32}.get(str(values.dtype), values.dtype)))

    numpy = SimpleNamespace(asarray=asarray, issubdtype=np.issubdtype, floating=np.floating)
    monkeypatch.setitem(sys.modules, "jax", cast("Any", SimpleNamespace(Array=Array, numpy=numpy)))
    small = malt.allreduce(Array(np.array([1, 2], np.int32)), "sum")
    assert small.values.tolist() == [1, 2]
    monkeypatch.setattr(world, "_combine", lambda values, op: 2 * values[0].astype(np.int64))
    with pytest.raises(OverflowError, match=r"does not fit into JAX's int32\n.*to 4294967294\n.*jax_enable_x64"):
        malt.allreduce(Array(np.array([1, 2**31 - 1], np.int32)), "sum")


def test_hostile_messages_are_refused() -> None:
    good = codec.encode(torch.ones(2, 3))
    for old, new in (
        (b"float32", b"storage"),
        (b"float32", b"float64"),
        (b"torch:", b"tortu:"),
        (b"float32", b"qint32_"),
    ):
        with pytest.raises(malt.MismatchError, match="not a message"):
            codec.decode(good.replace(old, new))


def test_between_ranks() -> None:
    jobs.run(
        2,
        """
        import torch
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64):
            x = torch.full((2, 3), r + 1, dtype=dtype)
            total = malt.allreduce(x, "sum")
            assert total.dtype == dtype and (total == 3).all() and (x == r + 1).all()
            assert [int(t[0, 0]) for t in malt.allgather({"a": x})[1].values()] == [2]
            assert torch.equal(malt.broadcast([x], 1)[0], torch.full((2, 3), 2, dtype=dtype))
        assert malt.allreduce(torch.tensor(float(r), requires_grad=True)) == 0.5
        assert malt.allreduce(torch.tensor(bool(r)), "max")
        for mine, other in ("bfloat16", "float32"), ("bfloat16", "float16"), ("float32", "float16"):
            try:
                malt.allreduce(torch.ones(3, dtype=getattr(torch, [mine, other][r])), "sum")
            except malt.MismatchError as e:
                assert f'rank 0: malt.allreduce({mine}[3], "sum")' in str(e), e
                assert f'rank 1: malt.allreduce({other}[3], "sum")' in str(e), e
            else:
                raise AssertionError((mine, other))
        """,
    )


class Foreign:
    """An array of a library like JAX, which numpy can read."""

    dtype, shape = np.dtype(np.float32), (3,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.arange(3, dtype=dtype or np.float32)


class Exchanged:
    """An array that only knows DLPack."""

    dtype, shape = np.dtype(np.float32), (3,)

    def __dlpack__(self, **options: Any) -> Any:
        return np.arange(3, dtype=np.float32).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (torch.zeros(3), r"(?s)data is a torch\.Tensor, .*malt\.torch\.Vector\(model\).*, data\.detach"),
        ([np.zeros(2), torch.zeros(3)], r"data\[1\] is a torch\.Tensor"),
        (Foreign(), r"data is a .*Foreign, whose memory malt cannot share\nUse numpy arrays, .*np\.array\(data\)"),
        (torch.zeros(3, dtype=torch.bfloat16), r"or pass a copy, data\.detach\(\)\.cpu\(\)\.float\(\)\.numpy\(\)"),
        ([torch.zeros(3, requires_grad=True)], r"or pass a copy, data\[0\]\.detach\(\)\.cpu\(\)\.numpy\(\)"),
        (torch.nn.Linear(2, 1), r"data is .*Linear\n.*\nUse malt\.torch\.Vector\(data\)"),
        (torch.nn.Linear(2, 1).parameters(), r"malt\.torch\.Vector\(model\) for a PyTorch model"),
        ([Foreign()], r"data\[0\] is a .*Foreign"),
        (Exchanged(), r"data is a .*Exchanged"),
    ],
    ids=["tensor", "tensors", "array", "bfloat16", "grad", "module", "parameters", "arrays", "dlpack"],
)
def test_a_vector_is_made_of_numpys_arrays(data: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        malt.Vector(data)


def test_whole_numbers_of_other_libraries_are_lengths_and_floats_are_not() -> None:
    with malt.Vector(torch.tensor(3)) as v:
        assert v.array.tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match=r"data is a torch\.Tensor, whose memory malt cannot share"):
        malt.Vector(torch.tensor(3.0))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_tensors_come_back_on_the_device() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.ones(3, dtype=dtype, device="cuda")
        for got in (there_and_back(x), malt.allreduce(x), malt.broadcast({"x": x})["x"]):
            assert got.device.type == "cuda"
            assert got.dtype == dtype
            assert torch.equal(got, x)
