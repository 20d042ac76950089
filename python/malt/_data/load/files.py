"""Files, here or elsewhere, compressed or not, as streams of bytes."""

from __future__ import annotations

import builtins
import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from ..._guide import lines
from .progress import Progress

BLOCK = 1 << 20
"""Bytes that are read at once: parsing what fits the cache is faster."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark with which some programs begin a text in UTF-8."""

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
PAGES = b"<!doctype html", b"<html", b"<head", b"<body"
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
PACKED = {"gzip": 1032, "bzip2": 100_000, "xz": 100_000}
"""Bytes that one packed byte can stand for: with gzip by the format; with the others more than ever occurs."""

_READERS: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class File:
    """One file.

    Parameters
    ----------
    name : str
        As it is called in messages: the path or URL.
    path : str
        What `opener` takes, with a mode.
    size : int, optional
        Bytes as stored; None if nobody knows, or if they only come in turn.
    opener : callable
        Opens it, as the builtin does; of a file system of fsspec, its ``open``.
    local : bool
        Whether the operating system can map it.
    """

    def __init__(
        self, name: str, path: str, size: int | None, opener: Callable[..., Any] = builtins.open, local: bool = True
    ) -> None:
        self.name = name
        self.path = path
        self.size = size
        self.local = local
        self._opener = opener
        self._head: bytes | None = None

    @property
    def base(self) -> str:
        """The last part of its name: what is the same on machines that keep it in different places."""
        return self.name.rstrip("/").rpartition("/")[2]

    @property
    def head(self) -> bytes:
        """Its first bytes, as stored: up to 64 KiB."""
        if self._head is None:
            with self.raw() as f:
                self._head = f.read(1 << 16)
        return self._head

    @property
    def compression(self) -> str:
        """How it is compressed, by its first bytes: a server may have unpacked what is called ``.gz``."""
        return next((kind for magic, kind in MAGIC.items() if self.head.startswith(magic)), "")

    @property
    def divisible(self) -> bool:
        """Whether reading can begin anywhere."""
        return self.size is not None and not self.compression

    @property
    def most(self) -> int | None:
        """How many bytes can be in it, unpacked; None if nobody knows its size."""
        return None if self.size is None else self.size * PACKED.get(self.compression, 1)

    @contextmanager
    def raw(self) -> Iterator[IO[bytes]]:
        """Open it as it is stored."""
        with self._opener(self.path, "rb") as f:
            yield f

    @contextmanager
    def anywhere(self) -> Iterator[IO[bytes]]:
        """Open it as it is stored, to be read here and there: what comes only in turn is read first."""
        if self.compression:
            raise ValueError(
                lines(
                    f"load: {self.name} is packed by {self.compression}",
                    "files of this format pack their parts themselves",
                    "Unpack the file first.",
                )
            )
        with self.raw() as f:
            yield io.BytesIO(f.read()) if self.size is None else f

    @contextmanager
    def plain(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Open it; gives what is in it, unpacked, and the stored bytes under that."""
        compression = self.compression  # before it is opened: in memory, fsspec gives one position to all who open it
        self._check_name()
        with self.raw() as raw:
            if not compression:
                yield raw, raw
                return
            with _READERS[compression](raw) as f:
                try:
                    yield f, raw
                except (*_DAMAGE, OSError) as e:
                    if not isinstance(e, _DAMAGE) and e.errno is not None:  # bz2 raises OSErrors without a number
                        raise
                    raise ValueError(
                        lines(
                            f"load: {self.name}",
                            f"the {compression} data are damaged or end too early ({e})",
                            "Fetch the file again.",
                        )
                    ) from e

    def forward(self, f: IO[bytes], start: int) -> None:
        """Move from the beginning of what `plain` gave to a byte."""
        if self.divisible:
            f.seek(start)
        while not self.divisible and start > 0:
            start -= len(f.read(min(start, BLOCK)) or b" " * start)

    def stream(self, start: int = 0, end: int | None = None, progress: Progress | None = None) -> Iterator[bytes]:
        """Read what is in it, unpacked, block by block.

        Parameters
        ----------
        start, end : int
            From which byte to before which; its end if None.
        progress : Progress, optional
            Is told how many stored bytes have been read.
        """
        with self.plain() as (f, raw):
            if end is None and self.divisible:
                end = self.size or None  # of a file that grows, what it was; the kernel's own files have none
            self.forward(f, start)
            before = raw.tell()
            at = start
            while end is None or at < end:
                block = f.read(BLOCK if end is None else min(BLOCK, end - at))
                if not block:
                    break
                if progress is not None:
                    now = raw.tell()
                    progress.add(now - before)
                    before = now
                yield block
                at += len(block)

    def see_unchanged(self) -> None:
        """Raise if a file that is here has another length than at the beginning: a row may be half of one."""
        now = os.stat(self.path).st_size if self.local and self.size else self.size
        if now != self.size:
            raise ValueError(
                lines(
                    f"load: {self.name} has changed while it was read",
                    f"it had {self.size:,} bytes, and now has {now:,}",
                    "Load it when it is complete.",
                )
            )

    def _check_name(self) -> None:
        """Raise if the name promises a compression that the content does not have."""
        promised = next((kind for suffix, kind in SUFFIXES.items() if self.name.endswith(suffix)), "")
        if promised and self.size == 0:
            raise ValueError(lines(f"load: {self.name} is empty", f"a {promised} file is not", "Fetch it again."))
        if promised and not self.compression:
            raise ValueError(
                lines(
                    f"load: {self.name} is not a {promised} file",
                    f"it begins with {self.head[:8]!r}",
                    "Rename it, or fetch it again.",
                )
            )


def see_it_is_the_file(name: str, first: bytes) -> None:
    """Raise if these first bytes are those of a web page, or of a pointer, that came instead of the file."""
    begin = first.removeprefix(BOM).lstrip()
    if begin.lower().startswith(PAGES) and not name.endswith((".html", ".htm")):
        raise ValueError(
            lines(
                f"load: {name}, line 1: this is a web page, which begins with {begin[:15]!r}",
                "the server sent it instead of the file, such as to ask for a login",
                "Open it in a browser.",
            )
        )
    if begin.startswith(b"version https://git-lfs."):
        raise ValueError(
            lines(
                f"load: {name}, line 1: this is a pointer of Git LFS, and not the file itself", do="Run git lfs pull."
            )
        )


def readinto(f: IO[bytes], view: memoryview) -> int:
    """Fill memory from a file; return how many bytes there were."""
    done = 0
    while done < len(view):
        if isinstance(f, io.RawIOBase | io.BufferedIOBase):
            got = f.readinto(view[done : done + BLOCK]) or 0
        else:
            piece = f.read(min(BLOCK, len(view) - done))
            got = len(piece)
            view[done : done + got] = piece
        if not got:
            break
        done += got
    return done
