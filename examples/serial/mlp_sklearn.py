"""A network of one hidden layer learns the digits of MNIST by SGD in scikit-learn."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

import mnist


def main(arguments: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
    """Train, say how many test digits are right, and return the weights."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--solver", default="sgd", help="sgd or adam")
    ask.add_argument("--rate", type=float, default=0.02, help="learning rate")
    ask.add_argument("--batch", type=int, default=320, help="digits in a call of partial_fit, ten steps")
    ask.add_argument("--passes", type=int, default=3, help="over the data")
    opt = ask.parse_args(arguments)

    images, labels = mnist.read("train")
    images = (images / 255).astype(np.float32)
    net = MLPClassifier(128, solver=opt.solver, learning_rate_init=opt.rate, batch_size=32, random_state=0)
    for _ in range(opt.passes):
        for i in range(0, len(images), opt.batch):
            net.partial_fit(images[i : i + opt.batch], labels[i : i + opt.batch], classes=range(10))

    images, labels = mnist.read("t10k")
    right = net.predict((images / 255).astype(np.float32)) == labels
    print(f"{right.mean():.4f} of {len(right)} test digits are right")
    return [*net.coefs_, *net.intercepts_]


if __name__ == "__main__":
    main()
