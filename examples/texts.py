"""News texts as the words in them: RCV1, with the label CCAT or not, if it is there, or else texts that are made up.

RCV1 is not part of MALT. It is read from ``rcv1-ccat`` in the folder that the environment variable ``MALT_DATA`` names,
with ``train.svm.gz`` and ``test.svm.gz``: a line for each text, of its label and its words, as ``number:value``.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Text = tuple[NDArray[np.int64], NDArray[np.float64]]
Labels = NDArray[np.float64]


def read(part: str = "train") -> tuple[list[Text], Labels]:
    """Read all texts of one part.

    Parameters
    ----------
    part : {"train", "test"}

    Returns
    -------
    texts : list of (int64 array, float64 array)
        The numbers of a text's words, and a value for each. The squares of the values add up to 1.
    labels : float64 array (n,)
        +1 or -1.
    """
    path = Path(os.environ.get("MALT_DATA", ".")) / "rcv1-ccat" / f"{part}.svm.gz"
    if not path.exists():
        return made_up(part)
    texts, labels = [], []
    for line in gzip.decompress(path.read_bytes()).splitlines():
        label, rest = line.split(b" ", 1)
        pairs = np.array(rest.replace(b":", b" ").split(), np.float64).reshape(-1, 2)
        texts.append((pairs[:, 0].astype(np.int64), pairs[:, 1].copy()))
        labels.append(float(label))
    return texts, np.array(labels)


def made_up(part: str, words: int = 4_000) -> tuple[list[Text], Labels]:
    """Return texts of 30 words, few of which are in most texts, with labels that most words hint at."""
    hint = np.random.default_rng(0).normal(size=words)
    draw = np.random.default_rng(1 if part == "train" else 2)
    drawn = (words * draw.random((2000 if part == "train" else 500, 30)) ** 4).astype(np.int64)
    texts = [(row, np.full(len(row), len(row) ** -0.5)) for row in map(np.unique, drawn)]
    return texts, np.array([np.sign(hint[row].sum()) for row, _ in texts])


def stacked(texts: list[Text]) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.float64]]:
    """Return for each word of each text: which text, the word's number, its value."""
    text = np.repeat(np.arange(len(texts)), [len(words) for words, _ in texts])
    return text, np.concatenate([words for words, _ in texts]), np.concatenate([values for _, values in texts])
