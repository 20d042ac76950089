"""``malt.torch.Vector`` in jobs of several ranks, and under DataLoader workers."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from launching import run

import malt

pytest.importorskip("torch", reason="PyTorch is not installed: make torch")

import torch_work


@pytest.mark.parametrize("size", [2, 4])
def test_cases(size: int) -> None:
    names = [function.__name__ for function in torch_work.CASES]
    assert malt.run(torch_work.everything, size) == [names] * size


LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset

import malt


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        if torch.utils.data.get_worker_info() is not None:
            try:
                malt.allreduce(1.0)
            except malt.StateError as e:
                refused = "not a rank itself" in str(e) or "was forked" in str(e)
                return i, malt.rank(), malt.size(), int(refused)
        return i, malt.rank(), malt.size(), -1


def main():
    model = torch.nn.Linear(1, 1)
    v = malt.torch.Vector(model)
    for method in ("fork", "spawn"):
        seen = []
        loader = DataLoader(malt.shard(Numbers()), 2, num_workers=1, multiprocessing_context=method)
        for i, rank, size, refused in loader:
            assert rank.tolist() == [malt.rank()] * 2 and size.tolist() == [malt.size()] * 2, (rank, size)
            assert refused.tolist() == [1, 1], refused
            with torch.no_grad():
                model.weight.fill_(malt.rank())
            v.sync()
            assert model.weight == (malt.size() - 1) / 2
            seen += i.tolist()
        print(method, seen)


if __name__ == "__main__":
    main()
"""


STEPS = """
model, other = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
opts = [torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam(model.parameters(), lr=0.1)]
free = torch.optim.SGD(other.parameters(), lr=0.1)
v = malt.torch.Vector(model, of="grads", name="{name}")
for i in range(4):
    for m in model, other:
        m.zero_grad()
        m(torch.ones(2, 3)).sum().backward()
    free.step()
    {loop}
v.close()
opts[0].step()
"""

LOOPS = {
    "v.sync(); opts[0].step(); opts[1].step()": False,
    "opts[0].step(); v.sync()": True,
    "v.sync(every=2); opts[0].step()": True,
    "v.allreduce(); opts[i % 2].step()": False,
    "opts[1].step() if i else None; v.sync()": False,
}
"""And whether a step in it gets a warning, once."""


def test_a_step_by_gradients_that_were_not_exchanged_gets_a_warning(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    parts = [STEPS.format(name=f"w{i}", loop=loop) for i, loop in enumerate(LOOPS)]
    script.write_text("import malt, torch\ntorch.set_num_threads(1)" + "".join(parts))
    done = run("-n", "2", "-q", str(script))
    assert done.process.returncode == 0, done.err
    lines = script.read_text().splitlines()
    for i, (loop, warned) in enumerate(LOOPS.items()):
        assert done.err.count(f"stepped without a sync of vector 'w{i}' before it") == 2 * warned, loop
        assert (f"{script}:{lines.index(f'    {loop}') + 1}: RuntimeWarning" in done.err) == warned


def test_workers_of_a_data_loader_are_no_ranks(tmp_path: Path) -> None:
    script = tmp_path / "loader.py"
    script.write_text(textwrap.dedent(LOADER))
    done = run("-n", "2", str(script))
    assert done.process.returncode == 0, done.err
    for method in ("fork", "spawn"):
        said = sorted(re.findall(rf"^\[(\d)\] {method} (.*)$", done.out, re.MULTILINE))
        assert said == [("0", "[0, 2, 4, 6, 8, 10]"), ("1", "[1, 3, 5, 7, 9, 11]")]


WITHOUT_RANK_0 = """
import os
import signal

import malt
import malt.torch
import torch

meeting = malt.Vector(1)
meeting.sync()
if malt.rank() == 0:
    os.kill(os.getpid(), signal.SIGKILL)
while 0 in malt.alive():
    malt.barrier()
torch.manual_seed(malt.rank())
model = torch.nn.Linear(3, 1)
own = model.weight.detach().clone()
made = {make}
values = malt.allgather(model.weight.detach().numpy().ravel())
print("the same", all((v == values[0]).all() for v in values), "as it was", torch.equal(own, model.weight), flush=True)
"""


@pytest.mark.parametrize("make", ["malt.torch.Vector(model, of='grads')", "malt.torch.Gradients(model)"])
def test_a_model_starts_as_on_the_lowest_rank_that_is_left(make: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_RANK_0.replace("{make}", make))
    done = run("--on-death", "continue", "-n", "3", str(script))
    assert done.process.returncode == 0, done.err
    assert sorted(done.out.splitlines()) == [f"[{r}] the same True as it was {r == 1}" for r in (1, 2)]
