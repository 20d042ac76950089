"""What ``malt.torch.Vector`` makes of models that change under it, of gradients, buffers and other devices."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import pytest

import malt

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")

from torch import nn  # noqa: E402
from torch_models import OPTIMIZERS, Tied, batches, bits, make, net, normed, train  # noqa: E402


def both(v: malt.Vector, model: nn.Module, *, bound: bool = True) -> None:
    """Assert that an exchange takes the model's values, and gives it the vector's."""
    weight = next(model.parameters())
    v.sync()
    assert v.array[0] == weight.flatten()[0]
    v.array[0] = 0.5
    v._give()
    assert next(model.parameters()).flatten()[0] == 0.5
    v.array[0] = 0.25
    assert (next(model.parameters()).flatten()[0] == 0.25) == bound


# ------------------------------------------------------- bound again, or copied


def other_memory(model: nn.Module) -> None:
    model[0].weight.data = torch.full((11, 16), 3.0)


def there_and_back(model: nn.Module) -> None:
    model.double().float()


def loaded(model: nn.Module) -> None:
    model.load_state_dict(make(net, 9).state_dict())


def loaded_by_assignment(model: nn.Module) -> None:
    model.load_state_dict(make(net, 9).state_dict(), assign=True)


def another_parameter(model: nn.Module) -> None:
    model[0].weight = nn.Parameter(torch.full((11, 16), 3.0))


def test_a_loop_that_trains_a_copy_gets_a_warning() -> None:
    model = make(net)
    with malt.torch.Vector(model) as v:
        for _ in range(7):
            v.sync()  # some first steps may be skipped
        with pytest.warns(RuntimeWarning, match="the model of v has not changed in 8 syncs(?s:.*)Make the vector of"):
            v.sync()


@pytest.mark.parametrize(
    "change", [other_memory, there_and_back, loaded, loaded_by_assignment, another_parameter], ids=lambda f: f.__name__
)
def test_a_tensor_that_got_other_memory_is_bound_again(change: Callable[[nn.Module], None]) -> None:
    model = make(net)
    with malt.torch.Vector(model) as v:
        before = model[0].weight.detach().clone()
        change(model)
        if change is not there_and_back:
            assert not torch.equal(model[0].weight, before)
        after = bits(model)
        v.sync()
        assert bits(model) == after
        both(v, model)


def shared(model: nn.Module) -> None:
    model.share_memory()


def channels_last(model: nn.Module) -> None:
    model[0].weight.data = model[0].weight.data.t().contiguous().t()


def part_of_a_larger_one(model: nn.Module) -> None:
    model[0].weight.data = torch.full((12, 16), 3.0)[:11]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("change", [shared, channels_last, part_of_a_larger_one], ids=lambda f: f.__name__)
def test_memory_that_others_rely_on_is_kept_and_copied(change: Callable[[nn.Module], None], when: str) -> None:
    model = make(net)
    if when == "before":
        change(model)
    with malt.torch.Vector(model) as v:
        if when == "after":
            change(model)
        weight = model[0].weight
        address, stride = weight.data_ptr(), weight.stride()
        keeps_layout = when == "before" and change is channels_last
        both(v, model, bound=keeps_layout)  # a layout that it had from the beginning is that of the vector
        assert weight.is_shared() == (change is shared)
        assert weight.stride() == stride
        assert keeps_layout or weight.data_ptr() == address


def test_memory_that_two_tensors_use_in_part_is_copied() -> None:
    flat = torch.arange(10.0)

    class Views(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all = nn.Parameter(flat)
            self.register_buffer("first", self.all.data[:4])

    model = Views()
    with malt.torch.Vector(model) as v:
        with torch.no_grad():
            model.all[0] = 5
        v.sync()
        assert v.array[0] == v.array[16] == 5
        assert model.first[0] == flat[0] == 5


def test_a_part_of_the_model_can_be_replaced_alike() -> None:
    model = make(net)
    with malt.torch.Vector(model) as v:
        model[0] = nn.Linear(16, 11)
        both(v, model)


def test_the_optimizer_sees_what_the_vector_holds() -> None:
    model = make(net)
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    with malt.torch.Vector(model) as v:
        model.double().float()
        train(model, optimizer, batches(3), after_step=v.sync)
        assert torch.equal(torch.from_numpy(v.array[:176]).view(11, 16), model[0].weight)


def test_copies_and_files_of_the_model_are_its_own() -> None:
    model = make(net)
    with malt.torch.Vector(model) as v:
        before = bits(model)
        twin = copy.deepcopy(model)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        assert len(file.getvalue()) < 4 * v.array.nbytes
        v.array[:] = 0
        assert bits(twin) == before
        file.seek(0)
        model.load_state_dict(torch.load(file))
        assert bits(model) == before
        both(v, model)


def test_a_backward_through_values_that_were_exchanged_is_an_error() -> None:
    """As PyTorch has it after any other change in place; otherwise the gradients would be wrong without a word."""
    model = make(net)
    with malt.torch.Vector(model) as v:
        loss = model(batches(1)[0]).sum()
        v.allreduce()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_a_buffer_made_in_inference_mode() -> None:
    class Cached(nn.Linear):
        def __init__(self) -> None:
            super().__init__(3, 2)
            with torch.inference_mode():
                self.register_buffer("cache", torch.ones(3))
                self.register_buffer("low", torch.ones(3, dtype=torch.float16))

    model = Cached()
    with malt.torch.Vector(model) as v:
        with torch.inference_mode():
            model.low = torch.full((3,), 4, dtype=torch.float16)
        v.sync()
        assert (v.array[-16:-13] == 4).all()
        v.array[:] = 2
        v._give()
        assert model.cache.sum() == model.low.sum() == 6


def test_tied_weights_loaded_by_assignment_are_tied_again() -> None:
    model = make(Tied)
    with malt.torch.Vector(model) as v:
        model.load_state_dict(make(Tied, 9).state_dict(), assign=True)
        assert model.out.weight is not model.embed.weight
        both(v, model)
        assert model.out.weight.data_ptr() == model.embed.weight.data_ptr()


# ------------------------------------------------------------------ gradients


def test_gradients_over_a_sparse_graph_warn() -> None:
    with pytest.warns(RuntimeWarning, match=r"gradients over graph='halton'.*\n.*\nUse graph='all'") as caught:
        v = malt.torch.Vector(make(net), of="grads", graph="halton")
    assert caught[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="gradients over graph='ring'"):
        v.configure(graph="ring")
    v.configure(graph="all")
    with pytest.warns(RuntimeWarning, match=r"gradients over consistency='ssp:2'.*\n.*\nUse consistency='bsp'"):
        v.configure(consistency="ssp:2")
    v.close()
    malt.torch.Vector(make(net), graph="halton").close()


def test_a_parameter_without_gradient_keeps_none() -> None:
    model = make(net)
    model[0].requires_grad_(False)
    with malt.torch.Vector(model, of="grads") as v:
        assert v.names == ("2.weight", "2.bias")
        v.allreduce()
        assert all(p.grad is None for p in model.parameters())
        model[2].bias.requires_grad_(False)  # frozen later: zeros, and nothing of it
        v.sync()
        model[0].weight.requires_grad_(True)
        with pytest.raises(malt.StateError, match=r"new: 0\.weight\n.*\(un\)freezing"):
            v.sync()


def test_a_sparse_gradient_is_refused() -> None:
    model = nn.Embedding(5, 3, sparse=True)
    with malt.torch.Vector(model, of="grads") as v:
        model(torch.tensor([1])).sum().backward()
        with pytest.raises(malt.UnsupportedError, match="the gradient of weight is sparse\nMake its layer"):
            v.sync()


# -------------------------------------------------------------------- buffers


def test_buffers_that_travel() -> None:
    with malt.torch.Vector(make(normed)) as v:
        assert v.names[-2:] == ("1.running_mean", "1.running_var")
    with malt.torch.Vector(make(normed), buffers=False) as v:
        assert not [name for name in v.names if "running" in name]
    with malt.torch.Vector(make(normed), of="grads") as v:
        assert v.names[-2:] == ("1.running_mean", "1.running_var")


def test_whole_numbers_stay_where_they_are() -> None:
    model = make(normed)
    counter = model[1].num_batches_tracked
    with malt.torch.Vector(model) as v:
        train(model, OPTIMIZERS["sgd"](model.parameters()), batches(3), after_step=v.sync)
        assert model[1].num_batches_tracked is counter
        assert counter == 3


# ---------------------------------------------------------- on a GPU, if any

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@CUDA
@pytest.mark.parametrize("of", ["params", "grads"])
def test_cuda_tensors_are_copied_through_the_host(of: str) -> None:
    serial = make(normed).cuda()
    data = [x.cuda() for x in batches(5)]
    train(serial, OPTIMIZERS["adam"](serial.parameters()), data)
    model = make(normed).cuda()
    with malt.torch.Vector(model, of=of) as v:
        when = "after_step" if of == "params" else "after_backward"
        train(model, OPTIMIZERS["adam"](model.parameters()), data, **{when: v.sync})
        v.allreduce()
        assert bits(model.cpu()) == bits(serial.cpu())


@CUDA
def test_a_model_on_two_devices() -> None:
    model = make(net)
    model[2].cuda()
    with malt.torch.Vector(model) as v:
        both(v, model)
        with torch.no_grad():
            model[2].weight.fill_(3)
        v.sync()
        start = v.names.index("2.weight")
        assert start == 2
        assert (v.array[176 + 16 :][:33] == 3).all()
        model[2].cpu()
        both(v, model)
