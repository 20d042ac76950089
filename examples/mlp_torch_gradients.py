"""A network of one hidden layer learns the digits of MNIST by SGD with momentum in PyTorch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import malt  # malt run -n 4 examples/mlp_torch_gradients.py --rate 0.04
import mnist


def main(arguments: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
    """Train, say how many test digits are right, and return the weights."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--rate", type=float, default=0.01, help="learning rate")
    ask.add_argument("--batch", type=int, default=32, help="digits in a step")
    ask.add_argument("--passes", type=int, default=5, help="over the data")
    opt = ask.parse_args(arguments)

    torch.manual_seed(1)
    images, labels = map(torch.from_numpy, malt.shard(*mnist.read("train"), even="pad"))
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    v = malt.torch.Vector(model, of="grads")
    sgd = torch.optim.SGD(model.parameters(), lr=opt.rate, momentum=0.9)
    for _ in range(opt.passes):
        for batch in torch.randperm(len(images)).split(opt.batch):
            sgd.zero_grad()
            nn.functional.cross_entropy(model(images[batch] / 255), labels[batch]).backward()
            v.sync()
            sgd.step()

    images, labels = map(torch.from_numpy, mnist.read("t10k"))
    right = model(images / 255).argmax(1) == labels
    print(f"{right.float().mean():.4f} of {len(right)} test digits are right")
    return [p.detach().numpy() for p in model.parameters()]


if __name__ == "__main__":
    main()
