"""Small PyTorch models, their optimizers and one training loop, for tests."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

torch.set_num_threads(1)  # more only wait for each other where the cores are busy

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam-plain": lambda p: torch.optim.Adam(p, lr=0.01, foreach=False),
    "adam-foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adam-fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.5, max_iter=3),
}


class Tied(nn.Module):
    """An embedding that is also the last layer, by one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 16)
        self.mix = nn.Linear(16, 16)
        self.out = nn.Linear(16, 16, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.mix(self.embed((x[:, :3] > 0).sum(1)))))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x.reshape(len(x), -1, 4))[0][:, -1]


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 11), nn.Tanh(), nn.Linear(11, 3))


def normed() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def convolution() -> nn.Module:
    shaped = nn.Unflatten(1, (4, 2, 2))
    layers = nn.Sequential(shaped, nn.Conv2d(4, 8, 2, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 1), nn.Flatten())
    return layers.to(memory_format=torch.channels_last)


MODELS = {"net": net, "normed": normed, "convolution": convolution, "recurrent": Recurrent, "tied": Tied}


def make(kind: Callable[[], nn.Module], seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return kind()


def batches(count: int, seed: int = 2) -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(8, 16, generator=random) for _ in range(count)]


def nothing() -> None:
    pass


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: list[torch.Tensor],
    *,
    after_backward: Callable[[], object] = nothing,
    after_step: Callable[[], object] = nothing,
) -> None:
    """Take a step per batch to make what the model says of it small."""
    for x in data:

        def closure(x: torch.Tensor = x) -> torch.Tensor:
            optimizer.zero_grad()
            loss = (model(x) - 0.5).square().mean()
            loss.backward()
            after_backward()
            return loss

        optimizer.step(closure)
        after_step()


def bits(model: nn.Module) -> dict[str, bytes]:
    """Return by name the bytes of all that the model holds, for comparison bit by bit."""
    with torch.no_grad():
        return {
            name: t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            for name, t in model.state_dict().items()
        }
