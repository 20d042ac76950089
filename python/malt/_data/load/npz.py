"""Archives of arrays: npz, also as scipy.sparse.save_npz writes them."""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import numpy as np

from ..._guide import lines
from ..._need import need
from ..._options import choose
from ..turns import Cut
from .files import File
from .memory import see_memory
from .team import Team

SPARSE = {"indices", "indptr", "format", "shape", "data"}


class Archive:
    """The arrays of one npz file, cut the same way.

    A member of an archive can only be read from its beginning: each rank reads
    the members whole, one after the other, and keeps its rows.
    """

    def __init__(
        self,
        files: list[File],
        team: Team,
        *,
        columns: list[str | int] | None,
        dtype: np.dtype[Any] | None,
    ) -> None:
        if len(files) > 1:
            raise ValueError(
                lines(
                    f"load of {len(files)} npz files",
                    "all arrays of one file are cut the same way",
                    "Load one at a time.",
                )
            )
        self._file = files[0]
        self._team = team
        self._columns = columns
        self._dtype = dtype
        self._wanted: list[str] = []
        self._data: bytes | None = None  # of a file that is elsewhere
        self._sparse: Any = None
        self._part: Any = None

    def count(self) -> int:
        return self._team.share(self._open)[0]

    def _open(self) -> int:
        """Read the headers of the arrays; return their common number of rows."""
        name = self._file.name
        with self._file.anywhere() as f:
            if self._file.head[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):
                raise ValueError(lines(f"load: {name} is not an npz file", f"it begins with {self._file.head[:6]!r}"))
            self._data = f.read() if not self._file.local else None
        with self._archive() as archive:
            members = [info.filename.removesuffix(".npy") for info in archive.zip.infolist()]
            foreign = [info.filename for info in archive.zip.infolist() if not info.filename.endswith(".npy")]
            if foreign and self._columns is None:
                raise ValueError(
                    lines(
                        f"load: {name} holds {foreign[0]!r}, which is not an array",
                        f"its arrays are {[member for member in members if member not in foreign]}",
                        "Choose arrays with columns=.",
                    )
                )
            members = [member for member in members if member not in foreign]
            if set(members) >= SPARSE:
                self._sparse = need("scipy.sparse", f"load of the sparse matrix in {name}", package="scipy")
                return int(archive["shape"][0])
            wanted = members if self._columns is None else [self._member(c, members) for c in self._columns]
            self._wanted = wanted
            lengths: dict[str, int] = {}
            for member in wanted:
                shape = self._shape(archive, member)
                if not shape:
                    raise ValueError(
                        lines(
                            f"load: {member!r} in {name} is a single number, which has no rows",
                            f"its arrays are {members}",
                            "Choose arrays with columns=.",
                        )
                    )
                lengths[member] = shape[0]
        if len(set(lengths.values())) > 1:
            each = ", ".join(f"{k!r} has {n}" for k, n in lengths.items())
            raise ValueError(
                lines(
                    f"load: the arrays of {name} have different lengths",
                    each,
                    "Choose arrays of one length with columns=.",
                )
            )
        return next(iter(lengths.values()), 0)

    def _member(self, column: str | int, members: list[str]) -> str:
        choose(f"array of {self._file.name}", column, members)
        return str(column)

    def _source(self) -> Any:
        return self._file.path if self._data is None else io.BytesIO(self._data)

    def _archive(self) -> Any:
        try:
            return np.load(self._source(), allow_pickle=False)
        except (ValueError, OSError, zipfile.BadZipFile) as e:
            raise ValueError(lines(f"load: {self._file.name}", str(e), "Fetch the file again.")) from e

    def _shape(self, archive: Any, member: str) -> tuple[int, ...]:
        from .arrays import npy_header, promised

        name = f"{member!r} in {self._file.name}"
        with archive.zip.open(member + ".npy") as f:
            dtype, shape, _, begin = npy_header(f, name)
        promised(name, begin + dtype.itemsize * math.prod(shape), archive.zip.getinfo(member + ".npy").file_size)
        return shape

    def part(self, cut: Cut) -> Any:
        def read() -> None:
            with self._archive() as archive:
                wanted = {f"{name}.npy" for name in self._wanted or SPARSE}
                see_memory(sum(info.file_size for info in archive.zip.infolist() if info.filename in wanted))
            if self._sparse is not None:
                self._part = self._sparse.load_npz(self._source()).tocsr()[cut]
                if self._dtype is not None:
                    self._part = self._part.astype(self._dtype)
                return
            with self._archive() as archive:
                self._part = {}
                for member in self._wanted:
                    rows = archive[member][cut]
                    whole = rows.base is None or rows.nbytes == rows.base.nbytes
                    rows = rows if whole else rows.copy()  # the others' rows need not stay in memory
                    self._part[member] = rows if self._dtype is None else rows.astype(self._dtype, copy=False)

        self._team.share(read)
        return self._part
