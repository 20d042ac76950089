"""The splice-site data: DNA windows, and their positional k-mers as features of a linear model.

A window of 102 letters has one indicator feature per position and k-mer. The
feature's number is ``offset[k] + position * 4**k + code``, where ``code`` reads
the k-mer in base 4 (A, C, G, T = 0…3) and ``offset[k]`` leaves room for the
shorter ones. Every window has the same number of features, so in a row of unit length
each has the same value, `numpy.sqrt(1 / features per window)`, and only the numbers of
the features need to be kept.

See ``data/splice-site/README.md`` for origin and licence.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data" / "splice-site"
LENGTH = 102
"""Letters per window."""

Letters = NDArray[np.uint8]
Rows = NDArray[np.int32]
Labels = NDArray[np.float64]


def read(part: str = "train") -> tuple[Letters, Labels]:
    """Read all windows of one part.

    Parameters
    ----------
    part : {"train", "test"}

    Returns
    -------
    letters : uint8 array (n, 102)
        A, C, G, T as 0…3.
    labels : float64 array (n,)
        +1 for a splice site, -1 for a decoy.
    """
    path = DATA / f"{part}.txt.gz"
    line = len("+1 \n") + LENGTH
    text = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)
    if text.size % line:
        raise ValueError(f"{path}: {text.size} bytes are not a whole number of lines of {line}; fetch the file again")
    text = text.reshape(-1, line)
    code = np.full(256, 255, np.uint8)
    code[np.frombuffer(b"ACGT", np.uint8)] = range(4)
    letters = code[text[:, 3:-1]]
    if (letters > 3).any():
        raise ValueError(f"{path}: a window holds a letter other than ACGT; fetch the file again")
    return letters, np.where(text[:, 0] == ord("+"), 1.0, -1.0)


def shuffled(part: str = "train") -> tuple[Letters, Labels]:
    """Read all windows of one part in a random order, which is the same each time."""
    letters, labels = read(part)
    order = np.random.RandomState(0).permutation(len(labels))
    return letters[order], labels[order]


def parameters(k: int = 3) -> int:
    """Return the number of features of all k-mers up to length `k`: 8,424 for 3, 531,432 for 6."""
    return sum((LENGTH - i + 1) * 4**i for i in range(1, k + 1))


def features(letters: Letters, k: int = 3) -> Rows:
    """Expand windows into the numbers of their features.

    Parameters
    ----------
    letters : uint8 array (n, 102)
    k : int
        Longest k-mer.

    Returns
    -------
    int32 array (n, m)
        Row by row the features that are one; m = 303 for k = 3.
    """
    out = np.empty((len(letters), sum(LENGTH - i + 1 for i in range(1, k + 1))), np.int32)
    code: Rows = np.zeros((len(letters), LENGTH + 1), np.int32)
    column = offset = 0
    for i in range(1, k + 1):
        places = LENGTH - i + 1
        # A k-mer is the (k-1)-mer at its place followed by one letter.
        code = 4 * code[:, :places] + letters[:, i - 1 :]
        out[:, column : column + places] = code + (offset + 4**i * np.arange(places, dtype=np.int32))
        column += places
        offset += places * 4**i
    return out
