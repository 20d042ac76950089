"""A linear SVM on DNA windows with scikit-learn's SGDClassifier, in batches."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier

import splice

BATCH = 1000


def indicators(letters: splice.Letters) -> NDArray[np.float32]:
    """Return one column per position and letter, not 0 where the window has it; rows have length 1."""
    found = letters[:, :, None] == np.arange(4, dtype=np.uint8)
    return np.where(found, np.float32(splice.LENGTH**-0.5), np.float32(0)).reshape(len(letters), -1)


def main(argv: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Train, then test the model."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--passes", type=int, default=2, help="over the data")
    opt = ask.parse_args(argv)

    letters, labels = splice.shuffled()

    model = SGDClassifier(loss="hinge", alpha=1e-5, random_state=0)
    for _ in range(opt.passes):
        for i in range(0, len(labels), BATCH):
            model.partial_fit(indicators(letters[i : i + BATCH]), labels[i : i + BATCH], classes=[-1, 1])

    letters, labels = splice.read("test")
    print(f"{model.score(indicators(letters), labels):.4f} of {len(labels)} test windows are right")
    return np.asarray(model.coef_)


if __name__ == "__main__":
    main()
