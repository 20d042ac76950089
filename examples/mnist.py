"""The MNIST digits: 60,000 images to learn from and 10,000 to test with, of 28 x 28 pixels.

The four files are not part of MALT: set the environment variable ``MALT_DATA`` to the
folder that has them in its folder ``mnist``.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


def read(part: str = "train") -> tuple[Images, Labels]:
    """Read all digits of one part.

    Parameters
    ----------
    part : {"train", "t10k"}

    Returns
    -------
    images : uint8 array (n, 784)
        The pixels row by row, 0 (paper) to 255 (ink).
    labels : int64 array (n,)
        0 to 9.
    """
    if "MALT_DATA" not in os.environ:
        raise SystemExit("MALT_DATA is not set: it has to name the folder in which the folder mnist is")
    folder = Path(os.environ["MALT_DATA"]) / "mnist"
    pixels = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())
    digits = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    # The headers are of 16 and 8 bytes. Copies, because PyTorch wants to be able to write.
    images = np.frombuffer(pixels, np.uint8, offset=16).reshape(-1, 784).copy()
    return images, np.frombuffer(digits, np.uint8, offset=8).astype(np.int64)
