"""What ``malt.torch.Vector`` refuses, at the making and later, and what it says then."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import malt

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")

from torch import nn  # noqa: E402
from torch_models import Tied, make, net, normed  # noqa: E402


def doubled(model: nn.Module) -> None:
    model.double()


def halved(model: nn.Module) -> None:
    model.half()


def reshaped(model: nn.Module) -> None:
    model[0].weight.data = torch.zeros(16, 11)


def grown(model: nn.Module) -> None:
    model.append(nn.Linear(3, 3))


def shrunk(model: nn.Module) -> None:
    del model[2]


def bias_dropped(model: nn.Module) -> None:
    model[0].register_parameter("bias", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (doubled, r"is float64 \[11, 16\] now"),
        (halved, r"0\.weight is float16 .* now\nit was float32"),
        (reshaped, r"0\.weight is float32 \[16, 11\] now\nit was float32 \[11, 16\]"),
        (grown, r"new: 3\.weight, 3\.bias\nMake the vector after"),
        (shrunk, r"gone: 2\.weight, 2\.bias"),
        (bias_dropped, r"gone: 0\.bias"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.parametrize("of", ["params", "grads"])
def test_another_model_is_refused(change: Callable[[nn.Module], None], message: str, of: str) -> None:
    model = make(net)
    with malt.torch.Vector(model, of=of) as v:
        v.sync()
        change(model)
        for call in (v.sync, v.scatter, v.allreduce, v.broadcast):
            with pytest.raises(malt.StateError, match=message):
                call()
    with malt.torch.Vector(model, of=of) as v:
        v.sync()


def test_weights_that_are_no_longer_tied_are_refused() -> None:
    model = make(Tied)
    with malt.torch.Vector(model) as v:
        model.out.weight = nn.Parameter(model.out.weight.detach().clone())
        model.embed.weight.data = model.embed.weight.detach().clone()
        with pytest.raises(malt.StateError, match=r"embed.weight and out.weight are no longer the same tensor"):
            v.sync()
    model = make(Tied)
    with malt.torch.Vector(model) as v:
        model.out.weight = nn.Parameter(model.out.weight.detach().clone())  # the first is where it was
        with pytest.raises(malt.StateError, match="are no longer the same tensor"):
            v.sync()
    model = make(Tied)
    with malt.torch.Vector(model, of="grads") as v:
        model.out.weight = nn.Parameter(model.out.weight.detach())
        with pytest.raises(malt.StateError, match="are no longer the same tensor"):
            v.sync()


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3, dtype=torch.complex64))


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.eye(3).to_sparse())


class Own(torch.Tensor):
    pass


class Expanded(nn.Linear):
    def __init__(self) -> None:
        super().__init__(3, 2)
        self.register_buffer("mask", torch.ones(1).expand(3))


class OfItsOwn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3).as_subclass(Own))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda: [np.zeros(3)], TypeError, "model is of type list\nexpected a torch.nn.Module"),
        (nn.ReLU, ValueError, "the ReLU has no float parameters"),
        (lambda: nn.Linear(0, 0), ValueError, "no float parameters"),
        (lambda: nn.LazyLinear(3), ValueError, "weight has no shape yet\nRun one batch"),
        (lambda: nn.Linear(3, 2, device="meta"), ValueError, "weight is on the meta device"),
        (Complex, malt.UnsupportedError, "w is a Tensor, torch.strided, complex64"),
        (Sparse, malt.UnsupportedError, "w is a Tensor, torch.sparse_coo, float32"),
        (Expanded, malt.UnsupportedError, "mask was made by expand"),
        (OfItsOwn, malt.UnsupportedError, "w is a Own, torch.strided, float32"),
    ],
)
def test_what_cannot_be_exchanged(model: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        malt.torch.Vector(model())


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"of='grad'\nexpected one of params, grads\nDid you mean 'grads'\?"):
        malt.torch.Vector(make(net), of="grad")
    with pytest.raises(TypeError, match=r"unexpected option grpah\nDid you mean graph\?"):
        malt.torch.Vector(make(net), grpah="ring")
    with pytest.raises(ValueError, match="the Sequential has no parameters that require a gradient"):
        malt.torch.Vector(make(net).requires_grad_(False), of="grads")
    with pytest.raises(ValueError, match=r"fold='sum' .*\nPass buffers=False"):
        malt.torch.Vector(make(normed), of="grads", fold="sum")
    malt.torch.Vector(make(normed), of="grads", fold="sum", buffers=False).close()


def test_ids_are_of_the_rows_of_one_tensor() -> None:
    with pytest.raises(malt.UnsupportedError, match="ids= of a Linear with 2 tensors\n"):
        malt.torch.Vector(nn.Linear(2, 2), ids=[1, 2])
    with pytest.raises(ValueError, match="1 ids for 2 rows"):
        malt.torch.Vector(nn.Embedding(2, 2), ids=[1])
    with malt.torch.Vector(nn.Embedding(2, 2), ids=[1, 2]) as v:
        with pytest.raises(ValueError, match="3 ids for the 2 rows of weight\na tensor keeps its shape"):
            v.configure(ids=[1, 2, 3])
        v.sync()
    table = nn.Embedding(2, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with malt.torch.Vector(table, ids=[1, 2]) as v:
        v.sync()
    with pytest.raises(malt.UnsupportedError, match="the gradient of weight is sparse"):
        malt.torch.Vector(table, of="grads", ids=[1, 2])


def test_what_gradients_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    for options, error, message in (
        ({"bucket_bytes": 0}, ValueError, "bucket_bytes=0\nexpected at least 1"),
        ({"bucket_bytes": "25MB"}, TypeError, "bucket_bytes='25MB'\nexpected a number of bytes"),
        ({"fold": "max"}, ValueError, "fold='max'\nexpected one of mean, sum"),
        ({"fold": "sum"}, ValueError, "fold='sum' would add up the model's float buffers"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            malt.torch.Gradients(make(normed), **options)
    with pytest.raises(ValueError, match="the Sequential has no parameters that require a gradient"):
        malt.torch.Gradients(make(net).requires_grad_(False))
    monkeypatch.delattr(torch.Tensor, "register_post_accumulate_grad_hook")
    with pytest.raises(malt.UnsupportedError, match=r"expected PyTorch 2\.1 or later"):
        malt.torch.Gradients(make(net))


def test_gradients_are_refused_where_dead_ranks_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("malt._job.world.replaces", lambda: True)
    message = "the model of the start, and not that of the others"
    with pytest.raises(malt.UnsupportedError, match=message):
        malt.torch.Gradients(net())
    with pytest.raises(malt.UnsupportedError, match=message):
        malt.torch.Vector(net(), of="grads")
    malt.torch.Vector(net()).close()
