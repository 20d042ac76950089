"""The MovieLens ratings that the matrix factorisation learns: users, films, stars.

Their licence does not allow this repository to contain them. Set ``MALT_DATA`` to a folder
that has ``movielens-small3/train.csv.gz`` and ``test.csv.gz``, with a heading and lines of
``user,item,rating``, numbered from 0: https://grouplens.org/datasets/movielens/
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.intp]
Stars = NDArray[np.float64]


def read(part: str = "train") -> tuple[Numbers, Numbers, Stars]:
    """Read all ratings of one part.

    Parameters
    ----------
    part : {"train", "test"}

    Returns
    -------
    users, items : intp arrays (n,)
    stars : float64 array (n,)
        0.5 to 5.
    """
    folder = os.environ.get("MALT_DATA")
    if not folder:
        raise SystemExit(
            "movielens: MALT_DATA is not set: it names the folder that holds movielens-small3/train.csv.gz"
        )
    path = Path(folder, "movielens-small3", f"{part}.csv.gz")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), table[:, 2]


def shuffled(seed: int = 0) -> tuple[Numbers, Numbers, Stars]:
    """Read the training ratings in random order, the same for the same `seed`."""
    users, items, stars = read("train")
    order = np.random.default_rng(seed).permutation(len(stars))
    return users[order], items[order], stars[order]
