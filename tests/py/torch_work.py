"""What the ranks of test_torch_ranks.py do: in a module, since ranks import it.

All cases run in one job, because a rank takes seconds to import PyTorch. Numbers are
whole where they can be, so that means are exact.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch_models import MODELS, OPTIMIZERS, Tied, batches, bits, make, net, normed, train

import malt
from malt._vectors.listeners import listeners

CASES: list[Callable[[int, int], None]] = []


def case(function: Callable[[int, int], None]) -> Callable[[int, int], None]:
    CASES.append(function)
    return function


def everything() -> list[str]:
    """Run all cases, and return their names."""
    warnings.simplefilter("error")
    for function in CASES:
        function(malt.rank(), malt.size())
    return [function.__name__ for function in CASES]


def same(value: object) -> bool:
    """Tell whether all ranks have the same value."""
    return len(set(map(repr, malt.allgather(repr(value))))) == 1


def raised(call: Callable[[], object]) -> str:
    """Return the message of the error that making a vector of unlike models is, on every rank."""
    try:
        call()
    except malt.MismatchError as e:
        return str(e)
    raise AssertionError("no error")


def mean(n: int) -> float:
    """Of the numbers of the ranks."""
    return (n - 1) / 2


@case
def start_with_the_values_of_rank_0(r: int, n: int) -> None:
    for of, buffers in itertools.product(("params", "grads"), (True, False)):
        model = make(normed, seed=r)
        model[1].num_batches_tracked.fill_(r + 5)
        model[1].running_mean.fill_(r + 5)
        model[0].requires_grad_(False)
        with malt.torch.Vector(model, of=of, buffers=buffers):
            assert same(bits(model))
            assert model[1].num_batches_tracked == 5
            assert torch.equal(model[0].weight, make(normed, seed=0)[0].weight)


@case
def start_with_their_own_values(r: int, n: int) -> None:
    model = make(normed, seed=r)
    before = bits(model)
    with malt.torch.Vector(model, start="own"):
        assert bits(model) == before


@case
def changes_over_graphs_and_filters(r: int, n: int) -> None:
    filtered = {"graph": "shards", "sparse": "model", "filter": "dvf:0.5"}
    ways = [{}, {"graph": "butterfly"}, {"graph": "shards:1"}, filtered]
    for fold, way in itertools.product(("sum-changes", "mean-changes"), ways):
        model = nn.Linear(3, 2)
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
        with malt.torch.Vector(model, fold=fold, consistency="ssp:2", **way) as v:
            for _ in range(4):
                with torch.no_grad():
                    model.weight += r + 1
                    model.bias -= r + 1
                v.sync()
                assert v.age <= 2
            v.sync(slack=0)
            assert v.age == 0
            v.allreduce()
            of_all = 4 * (n + 1) / 2 * (n if fold == "sum-changes" else 1)
            assert (model.weight == of_all).all()
            assert (model.bias == -of_all).all()


@case
def rows_that_ranks_share(r: int, n: int) -> None:
    """Row 0 is of all ranks, row 1 of one."""
    for of, fold, options in itertools.product(("params", "grads"), ("mean", "sum"), ({}, {"graph": "butterfly"})):
        table = nn.Embedding(2, 3)
        table.weight.grad = torch.full((2, 3), float(r))
        with malt.torch.Vector(table, of=of, ids=[7, 100 + r], fold=fold, **options) as v, torch.no_grad():
            table.weight.fill_(r)
            exchanged = table.weight if of == "params" else table.weight.grad
            v.sync()
            assert exchanged.tolist() == [[mean(n) * (n if fold == "sum" else 1)] * 3, [r] * 3]
            exchanged.fill_(r)
            v.configure(ids=[200 + r, 7], wants=[7, 200, 8])
            v.sync()
            assert exchanged.tolist() == [[r] * 3] * 2
            assert v.wanted.tolist() == [[mean(n) * (n if fold == "sum" else 1)] * 3, [0] * 3, [0] * 3]
            assert v.missing.tolist() == [False, False, True]
            v.configure(wants=[7])
            exchanged[1] = 1.0
            v.sync()
            assert v.wanted.tolist() == [[n if fold == "sum" else 1] * 3]


@case
def average_parameters_and_buffers_in_place(r: int, n: int) -> None:
    model = make(normed)
    with malt.torch.Vector(model) as v:
        with torch.no_grad():
            for t in [*model.parameters(), model[1].running_var]:
                t.fill_(r)
        addresses = [p.data_ptr() for p in model.parameters()]
        assert v.sync() == n - 1
        assert [p.data_ptr() for p in model.parameters()] == addresses
        assert all((t == mean(n)).all() for t in [*model.parameters(), model[1].running_var])


@case
def every_optimizer_ends_with_one_model(r: int, n: int) -> None:
    for kind, name in [(normed, name) for name in OPTIMIZERS] + [(Tied, "adam")]:
        model = make(kind, seed=r)
        with malt.torch.Vector(model) as v:
            train(model, OPTIMIZERS[name](model.parameters()), batches(4, seed=10 + r), after_step=v.sync)
            v.allreduce()
            assert same(bits(model)), name


@case
def average_what_is_copied(r: int, n: int) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        model = make(net).to(dtype)
        with malt.torch.Vector(model) as v:
            with torch.no_grad():
                for p in model.parameters():
                    p.fill_(2 * r)
            v.sync()
            assert all((p == 2 * mean(n)).all() and p.dtype == dtype for p in model.parameters())
            with torch.no_grad():
                model[0].weight.fill_(r)
            v.broadcast(1)
            assert (model[0].weight == 1).all()


@case
def average_gradients(r: int, n: int) -> None:
    model = make(net)
    weight, bias, last, _ = model.parameters()
    with malt.torch.Vector(model, of="grads") as v:
        weight.grad = torch.full_like(weight, r)
        if r == 0:  # the others' count as zero
            bias.grad = torch.full_like(bias, n)
        kept = weight.grad
        assert v.sync() == n - 1
        assert weight.grad is kept
        assert (weight.grad == mean(n)).all()
        assert (bias.grad == 1).all()
        assert last.grad is None, "no rank had one"


@case
def broadcast_gives_the_model(r: int, n: int) -> None:
    for of, buffers in (("grads", True), ("grads", False), ("params", True), ("params", False)):
        model = make(normed, seed=r)
        model[0].bias.requires_grad_(False)
        with malt.torch.Vector(model, of=of, buffers=buffers) as v:
            if r == 1:  # the values of a file
                model.load_state_dict({k: t + 5 for k, t in make(normed, 7).state_dict().items()})
            model[0].weight.grad = torch.full_like(model[0].weight, r)
            v.broadcast(1)
            loaded = {k: t + 5 for k, t in make(normed, 7).state_dict().items()}
            for name, t in model.state_dict().items():
                assert torch.equal(t, loaded[name]), (of, buffers, name)
            assert (model[0].weight.grad == r).all()


@case
def a_rank_with_fewer_steps_is_missed(r: int, n: int) -> None:
    model = make(net)
    for uneven in ("error", "ok"):
        with malt.torch.Vector(model, of="grads", **({} if uneven == "error" else {"uneven": uneven})) as v:
            for _ in range(3):
                v.sync()
            if r != n - 1:
                if uneven == "ok":
                    assert v.sync() == n - 2
                else:
                    with pytest.raises(
                        malt.StateError, match=rf"(?s)continue without rank {n - 1}, which made fewer steps.*even="
                    ):
                        v.sync()
            malt.barrier()


@case
def mean_gradients_are_those_of_the_whole_batch(r: int, n: int) -> None:
    serial = make(net).double()
    data = [x.double() for x in batches(6)]
    train(serial, torch.optim.SGD(serial.parameters(), lr=0.1 * n), data)
    own = [x[r * 8 // n : (r + 1) * 8 // n] for x in data]
    grads, params = make(net).double(), make(net).double()
    with malt.torch.Vector(grads, of="grads") as v:
        train(grads, torch.optim.SGD(grads.parameters(), lr=0.1 * n), own, after_backward=v.sync)
    with malt.torch.Vector(params) as v:  # for plain SGD, the mean of the models is the same
        train(params, torch.optim.SGD(params.parameters(), lr=0.1 * n), own, after_step=v.sync)
    for a, b, c in zip(serial.parameters(), grads.parameters(), params.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(a, c, rtol=1e-12, atol=1e-14)


@case
def stay_in_step_though_one_skips_steps(r: int, n: int) -> None:
    for of in ("params", "grads"):
        model = make(net)
        optimizer = OPTIMIZERS["adam"](model.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        skipped = 0
        with malt.torch.Vector(model, of=of) as v:
            for i, x in enumerate(batches(6, seed=r)):
                optimizer.zero_grad()
                overflow = float("inf") if (i, r) == (2, 1) else 1.0
                scaler.scale(model(x).square().mean() * overflow).backward()
                if of == "grads":
                    v.sync()
                scaler.step(optimizer)
                before = scaler.get_scale()
                scaler.update()
                skipped += scaler.get_scale() < before
                if of == "params":
                    v.sync()
            assert v.clock == 6
        assert same(bits(model))
        assert malt.allreduce(skipped, "sum") == (1 if of == "params" else n)


@case
def one_rank_loads_a_model_by_assignment(r: int, n: int) -> None:
    model = make(net)
    with malt.torch.Vector(model) as v:
        if r == 0:
            model.load_state_dict({k: torch.full_like(t, n) for k, t in model.state_dict().items()}, assign=True)
        else:
            with torch.no_grad():
                for p in model.parameters():
                    p.zero_()
        v.sync()
        assert all((p == 1).all() for p in model.parameters())


@case
def folds_of_the_users_get_the_tensors_in_a_row(r: int, n: int) -> None:
    def largest(own: np.ndarray, updates: list[malt.Update]) -> np.ndarray:
        assert own.shape == updates[0].array.shape == (176 + 16 + 48 + 16,)
        return np.maximum(own, np.max([u.array for u in updates], axis=0))

    model = make(net)
    with malt.torch.Vector(model, fold=largest) as v:
        assert v.names == ("0.weight", "0.bias", "2.weight", "2.bias")
        assert v.array.size == 176 + 16 + 48 + 16
        with torch.no_grad():
            model[0].weight.fill_(r)
        v.sync()
        assert (model[0].weight == n - 1).all()


@case
def uneven_numbers_of_batches(r: int, n: int) -> None:
    model = make(net)
    with malt.torch.Vector(model, consistency="notify-ack") as v:
        train(model, OPTIMIZERS["sgd"](model.parameters()), batches(3 + 2 * r, seed=r), after_step=v.sync)
        v.allreduce()
        assert same(bits(model))


@case
def graphs_and_consistencies(r: int, n: int) -> None:
    for graph, consistency in [("halton", "async"), ("ring", "ssp:1"), ("chord", "notify-ack:2"), ("halton", "bsp")]:
        model = make(normed)
        with malt.torch.Vector(model, graph=graph, consistency=consistency) as v:
            train(
                model, OPTIMIZERS["sgd"](model.parameters()), batches(5, seed=r), after_step=lambda v=v: v.sync(every=2)
            )
            v.allreduce()
            assert same(bits(model))


@case
def only_what_changed_travels(r: int, n: int) -> None:
    model = nn.Embedding(50, 16)
    with malt.torch.Vector(model, sparse="model", filter="dvf:0.1") as v:
        start = model.weight.detach().clone()
        with torch.no_grad():
            model.weight[r] += n
        v.sync()
        own = model.weight.detach() - start
        assert v.stats().sent_bytes < (n - 1) * v.array.nbytes / 4
        torch.testing.assert_close(
            own[:n].sum(1), torch.full((n,), 16 * n / 2).index_fill(0, torch.tensor(r), 16.0 * n)
        )
        assert (own[n:] == 0).all()
        v.allreduce()
        assert same(bits(model))


@case
def unlike_models_are_an_error_on_all(r: int, n: int) -> None:
    other = nn.Sequential(nn.Linear(11, 16), nn.Tanh(), nn.Linear(16, 3))
    assert raised(lambda: malt.torch.Vector(other if r else make(net))) == (
        "malt: the ranks have built different models\nrank 0 has 0.weight: float32 [11, 16], rank 1 has 0.weight: "
        "float32 [16, 11]\nBuild the same one on every rank."
    )
    deeper = nn.Sequential(*make(net), nn.Linear(3, 3))
    message = raised(lambda: malt.torch.Vector(deeper if r else make(net)))
    assert "rank 0 has nothing more, rank 1 has 3.weight: float32 [3, 3]" in message
    images = nn.Conv2d(3, 8, 3)
    if r:
        images.to(memory_format=torch.channels_last)
    message = raised(lambda: malt.torch.Vector(images))
    assert "rank 1 has weight: float32 [8, 3, 3, 3] with strides [27, 1, 9, 3]" in message
    assert "embed.weight = out.weight" in raised(lambda: malt.torch.Vector(make(Tied) if r else make(net)))
    message = raised(lambda: malt.torch.Vector(make(net)) if r else malt.allgather({"loss": 1.0}))
    assert "malt.allgather() " in message, message
    assert "malt.torch.Vector() " in message, message
    malt.torch.Vector(make(net)).close()  # and all goes on


@case
def gradients_in_buckets_are_those_of_one_vector(r: int, n: int) -> None:
    """To the bit: of each model, in one bucket and in many, also where the ranks use other parts of it."""
    for kind in MODELS.values():
        models = []
        for bucket_bytes in (None, 25 << 20, 500, 1):
            model = make(kind)
            v = (
                malt.torch.Vector(model, of="grads")
                if bucket_bytes is None
                else malt.torch.Gradients(model, bucket_bytes=bucket_bytes)
            )
            optimizer = OPTIMIZERS["sgd"](model.parameters())
            for step, x in enumerate(batches(6, seed=r)):
                optimizer.zero_grad()
                if step != 2 or r != 1:  # a rank without a gradient at all
                    model(x).square().mean().backward()
                assert v.sync() == n - 1
                optimizer.step()
            v.close()
            models.append(bits(model))
        assert all(one == models[0] for one in models)
        assert same({name: value for name, value in models[0].items() if "num_batches" not in name})


@case
def buckets_begin_in_the_backward_pass(r: int, n: int) -> None:
    """The last layer's gradient is exchanged before the first layer's is there."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    with malt.torch.Gradients(model, bucket_bytes=1) as g:
        assert [b.array.size for b in g.buckets] == [16] * 6  # biases have room to the next line
        model[0].weight.register_hook(lambda _: seen.append(g.buckets[0].pending is not None))
        for _ in range(2):
            seen: list[bool] = []
            model(torch.ones(2, 4)).sum().backward()
            assert seen == [True]
            assert g.buckets[-1].pending is not None
            g.sync()
            assert all(b.pending is None for b in g.buckets)


@case
def gradients_of_several_backward_passes_add_up(r: int, n: int) -> None:
    twins = [make(normed) for _ in range(2)]
    whole = malt.torch.Vector(twins[0], of="grads")
    with malt.torch.Gradients(twins[1], bucket_bytes=200) as g:
        for model in twins:
            for i, x in enumerate(batches(3, seed=r)):
                if i < 2:
                    with g.no_sync():
                        model(x).square().mean().backward()
                else:
                    model(x).square().mean().backward()
        whole.sync()
        g.sync()
        assert bits(twins[0]) == bits(twins[1])
        for a, b in zip(twins[0].parameters(), twins[1].parameters(), strict=True):
            assert torch.equal(a.grad, b.grad)
        twins[1](x).sum().backward()
        with pytest.raises(malt.StateError, match="twice without a sync"):
            twins[1](x).sum().backward()
        g.sync()
    whole.close()


@case
def buckets_see_that_the_model_has_changed(r: int, n: int) -> None:
    model = make(net)
    model[0].requires_grad_(False)
    with malt.torch.Gradients(model) as g:
        model[0].requires_grad_(True)
        with pytest.raises(malt.StateError, match="the model has changed"):
            g.sync()
        malt.barrier()


@case
def buckets_keep_what_is_infinite(r: int, n: int) -> None:
    """A gradient scaler makes infinities on one rank, and all ranks skip that step: no warning."""
    model = nn.Linear(2, 1)
    with malt.torch.Gradients(model) as g:
        (model(torch.ones(1, 2)).sum() * (float("inf") if r == 0 else 1.0)).backward()
        g.sync()
        assert not model.weight.grad.isfinite().any()


@case
def a_deal_hears_of_a_step_when_all_buckets_are_exchanged(r: int, n: int) -> None:
    heard = []

    class Listener:
        def mark(self) -> int:
            return len(heard)

        def exchanged(self, mark: int) -> None:
            heard.append((mark, all(b.pending is None for b in g.buckets)))

    model = make(net)
    with malt.torch.Gradients(model, bucket_bytes=1) as g:
        listeners.append(Listener())
        try:
            for _ in range(2):
                model(torch.ones(1, 16)).sum().backward()
                g.sync()
        finally:
            listeners.clear()
    assert heard == [(0, True), (1, True)]
