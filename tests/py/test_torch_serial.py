"""G1: alone, a PyTorch loop with ``malt.torch.Vector`` gives the bits of the loop without."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import malt

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")

from torch_models import MODELS, OPTIMIZERS, batches, bits, make, net, normed, train  # noqa: E402


def is_view(v: malt.Vector, t: torch.Tensor) -> bool:
    """Tell whether a tensor's memory is the vector's."""
    starts = [(a.__array_interface__["data"][0], a.nbytes) for a in v.arrays]
    return any(start <= t.data_ptr() < start + nbytes for start, nbytes in starts)


@pytest.mark.parametrize("of", ["params", "grads"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_g1_optimizers(optimizer: str, of: str) -> None:
    serial = make(normed)
    train(serial, OPTIMIZERS[optimizer](serial.parameters()), batches(6))

    model = make(normed)
    with malt.torch.Vector(model, of=of) as v:
        when = "after_step" if of == "params" else "after_backward"
        train(model, OPTIMIZERS[optimizer](model.parameters()), batches(6), **{when: v.sync})
        v.allreduce()
        assert bits(model) == bits(serial)
        assert all(is_view(v, p) == (of == "params") for p in model.parameters())


@pytest.mark.parametrize("made_before", [True, False], ids=["optimizer-first", "vector-first"])
@pytest.mark.parametrize("kind", MODELS)
def test_g1_models(kind: str, made_before: bool) -> None:
    serial = make(MODELS[kind])
    train(serial, OPTIMIZERS["sgd"](serial.parameters()), batches(5))

    model = make(MODELS[kind])
    layouts = [p.stride() for p in model.parameters()]
    parameters = list(model.parameters())
    optimizer = OPTIMIZERS["sgd"](parameters) if made_before else None
    with malt.torch.Vector(model) as v:
        assert [id(p) for p in model.parameters()] == [id(p) for p in parameters]
        train(model, optimizer or OPTIMIZERS["sgd"](model.parameters()), batches(5), after_step=v.sync)
        assert bits(model) == bits(serial)
        assert all(is_view(v, p) and p.data_ptr() % 64 == 0 for p in parameters)
        assert [p.stride() for p in parameters] == layouts


def test_tied_weights_travel_once_and_stay_tied() -> None:
    model = make(MODELS["tied"])
    with malt.torch.Vector(model) as v:
        assert v.names == ("embed.weight", "mix.weight", "mix.bias")
        assert v.array.size == 2 * 256 + 16
        assert model.out.weight is model.embed.weight


def test_tied_by_their_memory_alone() -> None:
    model = make(MODELS["tied"])
    model.out.weight = torch.nn.Parameter(model.embed.weight.data)  # another parameter, the same memory
    with malt.torch.Vector(model) as v:
        assert v.array.size == 2 * 256 + 16
        v.array[0] = 7
        assert model.out.weight[0, 0] == model.embed.weight[0, 0] == 7
        v.sync()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_g1_compiled(moment: str) -> None:
    """Also that nothing is compiled again when the parameters become views."""
    compiled = 0

    def backend(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        nonlocal compiled
        compiled += 1
        return graph.forward

    serial = make(net)
    train(torch.compile(serial, backend=backend), OPTIMIZERS["adam"](serial.parameters()), batches(4))
    torch.compiler.reset()
    once, compiled = compiled, 0

    model = make(net)
    if moment == "before":
        model = torch.compile(model, backend=backend)
        model(batches(1)[0])
        with malt.torch.Vector(model) as v:
            train(model, OPTIMIZERS["adam"](model.parameters()), batches(4), after_step=v.sync)
        model = model._orig_mod
    else:
        with malt.torch.Vector(model) as v:
            fast = torch.compile(model, backend=backend)
            train(fast, OPTIMIZERS["adam"](model.parameters()), batches(4), after_step=v.sync)
    assert bits(model) == bits(serial)
    assert compiled == once


def amp_steps(model: torch.nn.Module, sync: Callable[[], object], of: str) -> list[float]:
    """Train in bf16 with a scaler that finds an overflow in its third step; return its scales."""
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    scales = []
    for i, x in enumerate(batches(6)):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x).float().square().mean() * (float("inf") if i == 2 else 1.0)
        scaler.scale(loss).backward()
        if of == "grads":
            sync()
        scaler.step(optimizer)
        scaler.update()
        if of == "params":
            sync()
        scales.append(scaler.get_scale())
    return scales


@pytest.mark.parametrize("of", ["params", "grads"])
def test_g1_autocast_and_a_step_that_the_scaler_skips(of: str) -> None:
    serial = make(net)
    scales = amp_steps(serial, lambda: None, of)
    assert any(b < a for a, b in itertools.pairwise(scales)), "no step was skipped"
    model = make(net)
    with malt.torch.Vector(model, of=of) as v:
        assert amp_steps(model, v.sync, of) == scales
        assert v.clock == 6
    assert bits(model) == bits(serial)


def test_skipped_first_steps_are_no_mistake_of_the_users() -> None:
    """No warning of an array that does not change."""
    with malt.torch.Vector(make(net)) as v:
        for _ in range(4):
            v.sync()


def test_sync_every_leaves_the_calls_between_alone() -> None:
    model = make(net).to(torch.bfloat16)
    with malt.torch.Vector(model) as v:
        first = v.array.copy()
        with torch.no_grad():
            model[0].weight.add_(1)
        for exchanged in (None, 0):
            assert v.sync(every=2) == exchanged
            assert (v.array != first).any() == (exchanged == 0), "copied though nothing is exchanged"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_g1_types(dtype: str) -> None:
    serial = make(net).to(getattr(torch, dtype))
    data = [x.to(getattr(torch, dtype)) for x in batches(5)]
    train(serial, OPTIMIZERS["sgd"](serial.parameters()), data)
    model = make(net).to(getattr(torch, dtype))
    with malt.torch.Vector(model) as v:
        train(model, OPTIMIZERS["sgd"](model.parameters()), data, after_step=v.sync)
        v.allreduce()
        assert bits(model) == bits(serial)
        assert v.array.dtype == ("float64" if dtype == "float64" else "float32")
        assert all(is_view(v, p) == (dtype == "float64") for p in model.parameters())


def test_a_model_of_two_types() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 5).double(), torch.nn.Linear(5, 1).bfloat16())
    with malt.torch.Vector(model) as v:
        assert [(a.size, str(a.dtype)) for a in v.arrays] == [(64, "float32"), (32, "float64")]
        assert v.names == ("0.weight", "0.bias", "2.weight", "2.bias", "1.weight", "1.bias")
        v.sync()
        assert torch.equal(torch.from_numpy(v.arrays[1][:10]).view(5, 2), model[1].weight)


def test_the_model_outlives_the_vector() -> None:
    model = make(net)
    before = bits(model)
    malt.torch.Vector(model).close()
    assert bits(model) == before
    train(model, OPTIMIZERS["sgd"](model.parameters()), batches(1))
    assert bits(model) != before
