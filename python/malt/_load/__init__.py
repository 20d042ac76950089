"""Reading a rank's part of data in files: `malt.load`."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from .. import _guide
from .._errors import MismatchError, OutOfMemoryError
from .._options import choose, misspelt, spelled
from .._shard import checked_seed, cut
from ..typing import FileFormat, Frame, Order
from .files import File
from .formats import guess
from .labels import warn_if_sorted
from .paths import Path, find, same
from .progress import Progress
from .readers import COUNTED, opened
from .team import Team

__all__ = ["load"]


@spelled
def load(
    *paths: Path | Sequence[Path],
    order: Order = "block",
    seed: int | None = None,
    shard: bool = True,
    format: FileFormat | None = None,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: Any = None,
    columns: Sequence[str | int] | None = None,
    label: str | int | None = None,
    frame: Frame | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    quotechar: str | None = '"',
    encoding: str = "utf-8",
    storage_options: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    **unknown: NoReturn,
) -> Any:
    r"""Read this rank's part of the data in files. Collective.

    The part is the one that `malt.shard` would cut from the whole, so what is
    loaded from several files belongs together. What is loaded here and cut there
    does too if both are told the same order: that of `malt.shard` is ``stride``
    unless told. Each rank reads only what it needs, as far as the format lets it.
    Alone, a rank gets everything.

    Parameters
    ----------
    *paths : str, path, or list of them
        A file; a glob such as ``"part-*.csv"``, or a list, whose files are read as
        one, those of a glob in alphabetical order; or a URL that fsspec
        understands, such as ``s3://``, ``hdfs://`` or ``https://``. Several are read
        separately and cut alike, as rows and their labels must be, and must have one
        number of rows.
    order : {"block", "stride", "shuffle"}
        As for `malt.shard`, for every format. ``block`` is what lets a rank leave
        the rest unread. Where the order of the file means something, as when it is
        sorted by label (for which there is a warning), take ``stride`` or
        ``shuffle``: all ranks read all the bytes of a text then, but parse only
        their rows.
    seed : int, optional
        For ``shuffle``.
    shard : bool
        False: everything, on the rank that asks, and not collective: for a small
        test set.
    format : str, optional
        One of the table below; None: by the file's name.
    n_features : int, optional
        Columns of the matrix of SVMlight files; None: as many as the rank with the
        largest index needs. Pass that of the training set for a test set.
    zero_based : bool or "auto"
        Whether the indices of SVMlight files begin with 0; "auto": if any rank
        reads a 0.
    dtype : dtype, optional
        Of the numbers; None: float64 from texts and Parquet, otherwise that of the file.
    columns : list of str or int, optional
        The columns, by name or number, of CSV and Parquet, which come in the order of
        the file; the arrays of npz.
    label : str or int, optional
        The column of CSV and Parquet to be returned apart.
    frame : {"pandas", "polars"}, optional
        Return CSV and Parquet as a frame instead of an array.
    header : bool, optional
        Whether the first row of CSV files names the columns; None: if anything in
        it is not a number.
    delimiter, quotechar : str, optional
        Of CSV: a comma, or a tab in ``.tsv``; newlines between quotes belong to the
        value. ``quotechar=None`` for files in which it is a character like any other.
    encoding : str
        Of text lines and CSV.
    storage_options : dict, optional
        For fsspec: credentials, and the like.
    progress : bool, optional
        Whether rank 0 shows a bar on standard error; None: if that is a terminal or
        a notebook, and the load takes longer than 2 s.

    Returns
    -------
    the part, or a tuple of parts if several paths were given
        ========  ===============================  ==================================  =======================
        format    names                            returns                             a rank reads, for block
        ========  ===============================  ==================================  =======================
        svmlight  .svm .svmlight .libsvm           (X, y): csr_matrix (n, n_features)  its bytes
                                                   and float64 array (n,)
        csv       .csv .tsv                        float64 array (n, columns), or a    its bytes
                                                   frame; with ``label`` (X, y)
        text      .txt .text .log                  list of str, without newlines       its bytes
        npy       .npy                             array (n, …), mapped if the file    its bytes
                                                   is here
        idx       …-idx3-ubyte, .idx               array (n, …), mapped if the file    its bytes
                                                   is here
        npz       .npz                             dict of name to array; csr_matrix   everything
                                                   of what scipy's save_npz wrote
        parquet   .parquet .pq                     float64 array (n, columns), or a    its row groups
                                                   frame; with ``label`` (X, y)
        ========  ===============================  ==================================  =======================

        Any of these but npz and Parquet may be compressed: ``.gz``, ``.bz2``, ``.xz``.
        Then each rank unpacks everything and parses its part, except that of many
        files each rank counts the rows in some and unpacks the files that it needs.

        Empty lines and, in SVMlight, comments are not rows; ``qid:`` is ignored.
        A mapped array is writable; what is written stays in memory.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, OSError
        A file cannot be read.
    ValueError
        A line that is not as the format has it, with its number; a name that tells
        no format; a file that is not what it is called; data that do not fit
        together, with their lengths; a wrong argument.
    MismatchError
        The ranks do not see the same files, were told different things, or the
        load failed on another rank.
    PackageError
        The format or URL needs a package that is missing: scipy for SVMlight,
        pyarrow for Parquet, fsspec for URLs, and what that needs.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3.1: ``load_data``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("width,height,kind\n1,2,0\n3,4,1\n")
    >>> X, y = malt.load(path, label="kind")    # alone: everything
    >>> X
    array([[1., 2.],
           [3., 4.]])
    >>> y
    array([0., 1.])
    """
    if "even" in unknown:
        raise TypeError(
            "malt: load has no even=: load everything, and cut that: malt.shard(malt.load(path, shard=False), "
            'even="pad"); of X, y = malt.load(path, shard=False), malt.shard(X, y, even="pad")'
        )
    if unknown:
        raise misspelt(unknown, load)
    if not paths:
        raise TypeError("malt: load() without a path: pass a file, such as malt.load('train.svm.gz')")
    choose("order", order, get_args(Order))
    if order == "shuffle":
        seed = checked_seed(seed)
    elif seed is not None:
        raise ValueError(f"malt: seed={seed!r} with order={order!r}: only order='shuffle' has a seed")
    if format is not None:
        choose("format", format, get_args(FileFormat))
    options = {
        "n_features": n_features,
        "zero_based": zero_based,
        "dtype": None if dtype is None else np.dtype(dtype),
        "columns": columns,
        "label": label,
        "frame": frame,
        "header": header,
        "delimiter": delimiter,
        "quotechar": quotechar,
        "encoding": encoding,
    }
    team = Team(shard)
    title = f"malt.load {paths[0] if len(paths) == 1 else f'{len(paths)} files'}"
    bar = Progress(title, progress, team.rank)
    try:
        told = {**options, "order": order, "seed": seed, "format": format}
        groups = _agreed_files(team, paths, storage_options, {k: str(v) for k, v in told.items()})
        parts, lengths = [], []
        for files in groups:
            kind = format or guess(files[0].name)
            source = opened(kind, files, team, bar, options)
            # The rows of a text are counted only where their number matters.
            counted = kind in COUNTED or order == "shuffle" or (order == "block" and team.size > 1)
            n = source.count() if counted else None
            if order == "block" and n is None:
                mine = cut("stride", None, None, team.rank, team.size)
            else:
                mine = cut(order, seed, n, team.rank, team.size)
            part = source.part(mine)
            parts.append(part)
            if order == "block" and team.size > 1 and isinstance(part, tuple):
                warn_if_sorted(team, files[0].name, part[1])
            lengths.append(sum(team.share(partial(_length, part))) if n is None else n)
    except OutOfMemoryError:
        raise
    except MemoryError as e:
        raise OutOfMemoryError(
            _guide.lines(
                f"load: this rank's part does not fit into its memory: {str(e) or 'no memory'}",
                f"file: {title.removeprefix('malt.load ')}",
                "Start ranks on more hosts, choose columns=, or use a format that is read in parts: npy, CSV, text.",
                topic="out-of-memory",
            )
        ) from e
    finally:
        bar.end()
    if len(set(lengths)) > 1:
        each = ", ".join(f"{files[0].name} has {n}" for files, n in zip(groups, lengths, strict=True))
        raise ValueError(f"malt: load of data with different numbers of rows: {each}: what is cut alike must have one")
    return parts[0] if len(parts) == 1 else tuple(parts)


def _agreed_files(
    team: Team, paths: Sequence[Path | Sequence[Path]], storage_options: Mapping[str, Any] | None, told: dict[str, str]
) -> list[list[File]]:
    """Find the files, and raise on all ranks unless all see the same and were told the same."""
    groups: list[list[File]] = []

    def look() -> list[Any]:
        groups.extend(find(path, storage_options) for path in paths)
        return [
            told,
            *([[f.base, f.size, zlib.crc32(f.head) if f is files[0] else 0] for f in files] for files in groups),
        ]

    first, *others = team.share(look, timeout=None)
    for rank, theirs in enumerate(others, 1):
        for name, value in first[0].items():
            if theirs[0].get(name) != value:
                raise MismatchError(
                    f"malt: load with {name}={value} on rank 0 and {theirs[0].get(name)} on rank {rank}: all ranks "
                    "must pass the same"
                )
        if len(first) != len(theirs):
            raise MismatchError(f"malt: load of {len(first) - 1} paths on rank 0, {len(theirs) - 1} on rank {rank}")
        for mine, other in zip(first[1:], theirs[1:], strict=True):
            if difference := same(0, mine, rank, other):
                raise MismatchError(f"malt: load: the ranks do not see the same files: {difference}")
    return groups


def _length(part: Any) -> int:
    """Return the number of rows of what a source gives."""
    if isinstance(part, tuple):
        return _length(part[1])
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)
