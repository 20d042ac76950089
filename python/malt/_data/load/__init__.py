"""Reading a rank's part of data in files: `malt.load`."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from ... import _guide
from ..._errors import MismatchError, OutOfMemoryError
from ..._options import choose, misspelt, spelled
from ...typing import FileFormat, Frame, Order
from ..shard import checked_seed, cut
from .files import File, see_it_is_the_file
from .formats import guess
from .labels import warn_if_sorted
from .paths import Path, find, same
from .progress import Progress
from .readers import COUNTED, opened
from .team import Team


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

    The part is the one that `malt.shard` would cut from the whole data, so rows of several
    files stay together. To combine loaded data with data that `malt.shard` has cut, pass
    both the same ``order``: the default of `malt.shard` is ``stride``. Each rank reads only
    the bytes that it needs, if the format allows it. A single rank gets everything.

    Parameters
    ----------
    *paths : str, path, or list of them
        A file; a glob such as ``"part-*.csv"``, whose files are read as one in alphabetical
        order; a list of files, which are read as one in its order; or a URL that fsspec
        understands, such as ``s3://``, ``hdfs://`` or ``https://``. Several paths, such as
        rows and their labels, are read separately and cut in the same way, and must have
        the same number of rows.
    order : {"block", "stride", "shuffle"}
        As for `malt.shard`, for every format. Only with ``block`` can a rank leave the rest
        unread. If the rows are in a particular order, such as sorted by label (this gives a
        warning), pass ``stride`` or ``shuffle``: each rank then reads all bytes of a text
        file, but parses only its own rows.
    seed : int, optional
        For ``shuffle``: chooses the random order; 0 by default.
    shard : bool
        False: read everything, on this rank only; not collective. For a small test set.
    format : str, optional
        A format of the table below; by default that of the file's name.
    n_features : int, optional
        Columns of the matrix of SVMlight files; by default the largest index on any rank
        decides. For a test set, pass the number of the training set.
    zero_based : bool or "auto"
        Whether the indices of SVMlight files begin with 0; "auto": if any rank
        reads a 0.
    dtype : dtype, optional
        The type of the numbers; by default float64 from text and Parquet, otherwise that of
        the file.
    columns : list of str or int, optional
        The columns to read from CSV and Parquet, by name or number; they come in the order
        of the file. For npz, the arrays.
    label : str or int, optional
        The column of CSV and Parquet to return separately.
    frame : {"pandas", "polars"}, optional
        Return CSV and Parquet as a frame instead of an array.
    header : bool, optional
        Whether the first row of CSV files names the columns; by default it does if nothing
        in it is a number. Required if only some of it are numbers.
    delimiter, quotechar : str, optional
        For CSV. The delimiter is by default a comma, or a tab in ``.tsv``. Newlines between
        quotes belong to the value; ``quotechar=None`` if quotes have no meaning.
    encoding : str
        The encoding of text and CSV.
    storage_options : dict, optional
        Options of fsspec, such as credentials.
    progress : bool, optional
        Whether rank 0 shows a progress bar on standard error; by default if that is a
        terminal or a notebook, and the load takes longer than 2 s.

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

        "mapped" means memory-mapped, for a local file. The array is writable; changes stay
        in memory. Empty lines and, in SVMlight, comments are not rows; ``qid:`` is ignored.

        All formats except npz and Parquet may be compressed: ``.gz``, ``.bz2``, ``.xz``.
        Each rank then unpacks the whole file and parses its part. If there are many files,
        each rank counts the rows in some of them, and unpacks only the files that it needs.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, OSError
        A file cannot be read.
    ValueError
        A line does not fit the format (the message has its number); the format is unclear
        from the name; the file has another format than its name says; the lengths of several
        paths differ; an argument is wrong.
    MismatchError
        The ranks see different files or pass different arguments, or the load failed on
        another rank.
    OutOfMemoryError
        This rank's part does not fit into memory.
    TimeoutError, PeerError
        A rank does not call `load` in time, or is dead.
    PackageError
        The format or URL needs a package that is not installed: scipy for SVMlight, pyarrow
        for Parquet, fsspec for URLs, and the packages that fsspec needs.

    References
    ----------
    MALT (Li, Kadav, Kruus, Ungureanu, EuroSys 2015), section 3.1: ``load_data``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("width,height,kind\n1,2,0\n3,4,1\n")
    >>> X, y = malt.load(path, label="kind")    # a single rank: everything
    >>> X
    array([[1., 2.],
           [3., 4.]])
    >>> y
    array([0., 1.])
    """
    if "even" in unknown:
        raise TypeError(
            _guide.lines(
                "load has no even=",
                "malt.shard has it",
                'Cut everything: malt.shard(malt.load(path, shard=False), even="pad").',
            )
        )
    if unknown:
        raise misspelt(unknown, load)
    if not paths:
        raise TypeError(_guide.lines("load() without a path", do="Pass a file, such as malt.load('train.svm.gz')."))
    choose("order", order, get_args(Order))
    seed = checked_seed(order, seed)
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
    title = f"malt.load {paths[0] if len(paths) == 1 else f'{len(paths)} files'}"
    team = Team(shard, partial(Progress, title, progress))
    try:
        told = {**options, "order": order, "seed": seed, "format": format}
        groups = _agreed_files(team, paths, storage_options, {k: str(v) for k, v in told.items()})
        parts, lengths = [], []
        for files in groups:
            kind = format or guess(files[0].name)
            source = opened(kind, files, team, options)
            # The rows of a text are counted only where their number matters.
            counted = kind in COUNTED or order == "shuffle" or (order == "block" and team.size > 1)
            n = source.count() if counted else None
            if order == "block" and n is None:
                mine = cut("stride", None, None, team.rank, team.size)
            else:
                mine = cut(order, seed, n, team.rank, team.size)
            part = source.part(mine)
            team.share(partial(_see_unchanged, files))
            parts.append(part)
            if order == "block" and team.size > 1 and isinstance(part, tuple):
                warn_if_sorted(team, files[0].name, part[1])
            if n is None:
                each = team.share(partial(_length, part))
                n = sum(each) if len(each) == team.size else source.count()
            lengths.append(n)
    except OutOfMemoryError:
        raise
    except MemoryError as e:
        raise OutOfMemoryError(
            _guide.lines(
                f"load: this rank's part does not fit into its memory: {str(e) or 'no memory'}",
                f"file: {title.removeprefix('malt.load ')}",
                "Start ranks on more hosts, choose columns=, or use npy or CSV, read in parts.",
                topic="out-of-memory",
            )
        ) from e
    finally:
        team.progress.end()
    if len(set(lengths)) > 1:
        found = ", ".join(f"{files[0].name} has {n}" for files, n in zip(groups, lengths, strict=True))
        raise ValueError(
            _guide.lines(
                "load of data with different numbers of rows",
                found,
                "Data that you cut together must have the same number of rows.",
            )
        )
    return parts[0] if len(parts) == 1 else tuple(parts)


def _agreed_files(
    team: Team, paths: Sequence[Path | Sequence[Path]], storage_options: Mapping[str, Any] | None, told: dict[str, str]
) -> list[list[File]]:
    """Find the files, and raise on all ranks unless all see the same and were told the same."""
    groups: list[list[File]] = []

    def look() -> list[Any]:
        groups.extend(find(path, storage_options) for path in paths)
        for files in groups:
            see_it_is_the_file(files[0].name, files[0].head)
        return [
            told,
            *([[f.base, f.size, zlib.crc32(f.head) if f is files[0] else 0] for f in files] for files in groups),
        ]

    first, *others = team.share(look, timeout=None)
    one, *ranks = team.ranks
    for rank, theirs in zip(ranks, others, strict=True):
        for name, value in first[0].items():
            if theirs[0].get(name) != value:
                raise MismatchError(
                    _guide.lines(
                        f"load with {name}={value} on rank {one} and {theirs[0].get(name)} on rank {rank}",
                        do="Pass the same on all ranks.",
                    )
                )
        if len(first) != len(theirs):
            raise MismatchError(
                _guide.lines(f"load of {len(first) - 1} paths on rank {one}, {len(theirs) - 1} on rank {rank}")
            )
        for mine, other in zip(first[1:], theirs[1:], strict=True):
            if difference := same(one, mine, rank, other):
                raise MismatchError(_guide.lines("load: the ranks do not see the same files", difference))
    return groups


def _see_unchanged(files: Sequence[File]) -> None:
    for file in files:
        file.see_unchanged()


def _length(part: Any) -> int:
    """Return the number of rows of what a source gives."""
    if isinstance(part, tuple):
        return _length(part[1])
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)
