"""``malt.torch.deal``: the batches of a DataLoader over a shard, and of what ranks that die leave."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from jobs import Job

import malt

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")
data = pytest.importorskip("torch.utils.data")

DYING = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    torch.set_num_threads(1)
    dataset = TensorDataset(torch.arange(29.0))

    def batches(loader):
        return [[int(i) for i in batch] for batch, in loader]

    for order, even in ("stride", None), ("block", "pad"), ("shuffle", "drop"):
        deal = malt.torch.deal(dataset, batch_size=4, epochs=2, order=order, even=even)
        want = []
        for e in range(2):
            part = malt.shard(dataset, order=order, even=even, seed=e if order == "shuffle" else None)
            want += batches(DataLoader(part, batch_size=4))
        assert batches(deal) == want and len(deal) == len(want)

    model = torch.nn.Linear(1, 1)
    v = malt.torch.Vector(model, of="grads")
    deal = malt.torch.deal(dataset, batch_size=3, even="pad")
    for x, in deal:
        print(*map(int, x), flush=True)
        if r == 1 and deal.position == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        model.zero_grad()
        model(x[:, None]).square().mean().backward()
        v.sync()
        with torch.no_grad():                # an optimizer takes seconds to import
            for p in model.parameters():
                p -= 0.001 * p.grad
"""


def test_g11_batches_are_those_of_the_shard_and_what_a_death_leaves() -> None:
    """Rank 1 dies in its third batch of 3, after two syncs of gradients: those that live make as many steps each."""
    with Job(3, DYING, env={"MALT_ON_DEATH": "continue"}) as job:
        ranks = job.finish()
        assert [rank.process.returncode for rank in ranks] == [0, -signal.SIGKILL, 0], [rank.err.text for rank in ranks]
        first, second, third = (
            [[int(i) for i in line.split()] for line in rank.out.text.splitlines()] for rank in ranks
        )
    assert second == [[1, 4, 7], [10, 13, 16], [19, 22, 25]]
    assert first == [[0, 3, 6], [9, 12, 15], [18, 21, 24], [27], [19, 25]]
    assert third == [[2, 5, 8], [11, 14, 17], [20, 23, 26], [0], [22, 28]]


def test_batches_count_as_the_loop_gets_them() -> None:
    """Not as workers fetch them, who are far ahead; and they may stay from pass to pass."""
    deal = malt.torch.deal(
        data.TensorDataset(torch.arange(11)),
        batch_size=2,
        epochs=2,
        num_workers=1,
        prefetch_factor=10,
        persistent_workers=True,
    )
    got = []
    for (batch,) in deal:
        got += batch.tolist()
        assert deal.mark() == (deal.epoch, min(2 * deal.position, 11))
        assert len(got) == 11 * deal.epoch + min(2 * deal.position, 11)
    assert got == [*range(11), *range(11)]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda d: malt.torch.deal(d, shuffle=True), TypeError, "Pass order='shuffle'."),
        (lambda d: malt.torch.deal(d, drop_last=True), TypeError, "Pass even='drop'"),
        (lambda d: malt.torch.deal(d, batch_size=0), ValueError, "batch_size=0"),
        (lambda d: malt.torch.deal(d, num_worker=1), TypeError, "Did you mean num_workers?"),
        (
            lambda d: malt.torch.deal((torch.ones(3), torch.ones(3))),
            TypeError,
            "Pass torch.utils.data.TensorDataset(X, y).",
        ),
        (lambda d: malt.torch.deal(data.DataLoader(d)), TypeError, "data 0 is a DataLoader"),
        (lambda d: malt.torch.deal(data.SequentialSampler(d)), TypeError, "whose items come one by one"),
        (lambda d: malt.torch.deal(d, order="random"), ValueError, "order='random'"),
    ],
)
def test_refused(call: Callable[[object], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as e:
        call(data.TensorDataset(torch.arange(3)))
    assert words in str(e.value)


def test_one_rank() -> None:
    deal = malt.torch.deal(data.TensorDataset(torch.arange(5)), batch_size=2, epochs=2)
    assert len(deal) == 6
    for _ in deal:
        if deal.position == 2:
            break
    assert [batch.tolist() for (batch,) in deal] == [[0, 1], [2, 3], [4]] * 2
    assert (deal.epoch, deal.position) == (2, 3)
    assert list(malt.torch.deal(data.TensorDataset(torch.arange(0)), num_workers=1)) == []
    assert [i for (i,) in malt.deal(data.TensorDataset(torch.arange(3)))] == [0, 1, 2]
