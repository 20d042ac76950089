"""Which format a file has, by its name."""

from __future__ import annotations

import re

from ..._guide import lines
from ...typing import FileFormat

# Of a name without folder and without .gz, .bz2, .xz.
_NAMES: dict[FileFormat, str] = {
    "svmlight": r".*\.(svm|svmlight|libsvm)",
    "npy": r".*\.npy",
    "npz": r".*\.npz",
    "csv": r".*\.(csv|tsv)",
    "parquet": r".*\.(parquet|pq)",
    "idx": r".*([.-]idx\d+-(ubyte|byte|short|int|float|double)|\.idx\d*)",
    "text": r".*\.(txt|text|log)",
}

_PACKED = re.compile(r"\.(gz|bz2|xz)$", re.IGNORECASE)


def guess(name: str) -> FileFormat:
    """Return the format that a name tells.

    Examples
    --------
    >>> guess("rcv1/train.svm.gz"), guess("https://host/train-images-idx3-ubyte.gz?token=1")
    ('svmlight', 'idx')
    """
    base = name
    if "://" in name:
        link = next(link for link in name.split("::") if "://" in link)  # zip://rows.csv::https://host/a.zip
        base = re.split(r"[?#]", link)[0]
    base = _PACKED.sub("", base.rstrip("/").rpartition("/")[2])
    for kind, pattern in _NAMES.items():
        if re.fullmatch(pattern, base, re.IGNORECASE):
            return kind
    raise ValueError(
        lines(
            f"load: the name {name!r} does not tell the format",
            f"it is one of {', '.join(_NAMES)}",
            "Pass format=.",
        )
    )
