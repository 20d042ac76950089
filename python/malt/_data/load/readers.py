"""What reads each format, and which of the options it has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..._guide import lines
from .arrays import Arrays, idx_header, npy_header
from .delimited import CSV
from .files import File
from .lines import Lines
from .npz import Archive
from .parquet import Parquet
from .source import Source
from .svmlight import SVMlight
from .team import Team

_READERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "svmlight": (SVMlight, ("n_features", "zero_based", "dtype")),
    "npy": (partial(Arrays, header=npy_header), ("dtype",)),
    "idx": (partial(Arrays, header=idx_header), ("dtype",)),
    "npz": (Archive, ("columns", "dtype")),
    "csv": (
        CSV,
        ("columns", "label", "frame", "dtype", "header", "delimiter", "quotechar", "encoding"),
    ),
    "parquet": (Parquet, ("columns", "label", "frame", "dtype")),
    "text": (Lines, ("encoding",)),
}
_DEFAULTS = {"zero_based": "auto", "quotechar": '"', "encoding": "utf-8"}

COUNTED = ("npy", "idx", "npz", "parquet")
"""The formats that say how many rows they have."""


def opened(kind: str, files: list[File], team: Team, options: Mapping[str, Any]) -> Source:
    """Return what reads files of a format. Collective.

    Raises
    ------
    ValueError
        An option is given that the format has not.
    """
    reader, own = _READERS[kind]
    for name, value in options.items():
        if name not in own and value != _DEFAULTS.get(name):
            kinds = ", ".join(k for k, (_, known) in _READERS.items() if name in known)
            raise ValueError(lines(f"load: {name}={value!r} is for {kinds}", f"{files[0].name} is read as {kind}"))
    _check(options)
    source: Source = reader(files, team, **{name: options[name] for name in own})
    return source


def _check(options: Mapping[str, Any]) -> None:
    """Raise for options that no file could fit."""
    wide, base, columns = options["n_features"], options["zero_based"], options["columns"]
    if wide is not None and (isinstance(wide, bool) or not hasattr(wide, "__index__") or wide < 0):
        raise ValueError(lines(f"load: n_features={wide!r}", "expected a number of columns"))
    if base not in (True, False, "auto"):
        raise ValueError(lines(f"load: zero_based={base!r}", "expected True, False or 'auto'"))
    if isinstance(columns, str | int):
        raise TypeError(lines(f"load: columns={columns!r}", f"expected a list, such as columns=[{columns!r}]"))
