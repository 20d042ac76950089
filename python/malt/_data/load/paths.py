"""From paths, globs, lists of them and URLs to files."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..._guide import lines
from ..._need import need
from .files import File

Path = str | os.PathLike[str]

_GLOB = re.compile(r"[*?\[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")


def find(path: Path | Sequence[Path], storage_options: Mapping[str, Any] | None) -> list[File]:
    """Return the files that a path, or each of a list, stands for; those of a glob in alphabetical order."""
    several = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(several, Sequence) or not all(isinstance(p, str | os.PathLike) for p in several):
        raise TypeError(lines(f"load of {path!r}", "expected a path, a URL, or a list of them"))
    if not several:
        raise ValueError(lines("load of an empty list", "expected a path, a URL, or a list of them"))
    files = []
    for p in several:
        name = os.fspath(p)
        files += _remote(name, storage_options or {}) if _URL.match(name) else _local(name)
    return files


def _local(name: str) -> list[File]:
    path = os.path.expanduser(name)
    paths = [path]
    if _GLOB.search(path) and not os.path.lexists(path):
        paths = sorted(p for p in glob.glob(path, recursive=True) if os.path.isfile(p))
        if not paths:
            raise FileNotFoundError(lines(f"load: no file matches {name!r}", f"the working directory is {os.getcwd()}"))
    files = []
    for p in paths:
        if os.path.isdir(p):
            raise IsADirectoryError(
                lines(f"load: {p} is a folder", do=f"Pass its files, such as {os.path.join(p, '*')!r}.")
            )
        try:
            about = os.stat(p)
        except FileNotFoundError:
            where = "" if os.path.isabs(p) else f"the working directory is {os.getcwd()}"
            raise FileNotFoundError(lines(f"load: there is no file {p!r}", where, _near(p))) from None
        if not stat.S_ISREG(about.st_mode):
            raise ValueError(
                lines(
                    f"load: {p} is a pipe or a device, and files are read more than once",
                    do="Write its output to a file first.",
                )
            )
        files.append(File(p, p, about.st_size))
    return files


def _near(path: str) -> str:
    """Return a guess of what was meant by the name of a file that is not there."""
    import difflib

    folder, base = os.path.split(path)
    try:
        close = difflib.get_close_matches(base, os.listdir(folder or "."), 1, 0.6)
    except OSError:
        return f"there is no folder {folder!r}"
    return f"Did you mean {os.path.join(folder, close[0])!r}?" if close else ""


def _remote(url: str, storage_options: Mapping[str, Any]) -> list[File]:
    core = need("fsspec.core", f"load of the URL {url}", package="fsspec")
    try:
        fs, path = core.url_to_fs(url, **storage_options)
    except ImportError as e:  # fsspec names the package that this kind of URL takes
        from ..._errors import PackageError

        raise PackageError(lines(f"load of the URL {url}", str(e))) from e
    except ValueError as e:
        raise ValueError(lines(f"load: {url}", str(e))) from e
    paths = [path]
    if _GLOB.search(path) and "*" in path:
        paths = sorted(fs.glob(path))
        if not paths:
            raise FileNotFoundError(lines(f"load: no file matches {url!r}"))
    files = []
    for p in paths:
        try:
            about = fs.info(p)
        except FileNotFoundError:
            raise FileNotFoundError(lines(f"load: there is no file {url!r}")) from None
        if about.get("type") == "directory":
            raise IsADirectoryError(
                lines(f"load: {url} is a folder", do=f"Pass its files, such as '{url.rstrip('/')}/*'.")
            )
        name = url if len(paths) == 1 and "*" not in url else fs.unstrip_protocol(p)
        size = about.get("size")
        if size is not None and _comes_in_turn(fs, p, size):
            files.append(File(name, p, None, partial(fs.open, block_size=0), local=False))
        else:
            files.append(File(name, p, size, fs.open, local=False))
    return files


def _comes_in_turn(fs: Any, path: str, size: int) -> bool:
    """Return whether a server sends whole files only; it says so when asked for a part that is not the beginning."""
    if "http" not in fs.protocol or size < 2:
        return False
    try:
        with fs.open(path, cache_type="none") as f:
            f.seek(1)
            f.read(1)
    except ValueError:
        return True
    return False


def same(rank: int, mine: list[list[Any]], other: int, theirs: list[list[Any]]) -> str | None:
    """Return in what two ranks' files differ: lists of name, size and checksum of the beginning."""
    if len(mine) != len(theirs):
        odd = sorted({x[0] for x in mine} ^ {x[0] for x in theirs})
        only = f" (not on both: {', '.join(odd[:3])})" if odd else ""
        return f"{len(mine)} files on rank {rank}, {len(theirs)} on rank {other}{only}"
    for (name, size, checksum), (name2, size2, checksum2) in zip(mine, theirs, strict=True):
        if name != name2:
            return f"{name} on rank {rank}, {name2} on rank {other}"
        if size != size2:
            return f"{name} has {size:,} bytes on rank {rank}, {size2:,} on rank {other}"
        if checksum != checksum2:
            return f"{name} has {size:,} bytes on ranks {rank} and {other}, but begins differently"
    return None
