"""Parquet files, read by row groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._guide import lines
from ..._need import need
from ..turns import Cut
from .columns import chosen, labelled
from .cuts import in_order, local_cuts
from .files import File
from .frames import FrameReader
from .memory import see_memory
from .team import Team


class Parquet:
    """The rows of Parquet files; a row group is read if any of its rows is wanted."""

    def __init__(
        self,
        files: list[File],
        team: Team,
        *,
        columns: list[str | int] | None,
        label: str | int | None,
        frame: str | None,
        dtype: np.dtype[Any] | None,
    ) -> None:
        self._arrow: Any = need("pyarrow", "load of Parquet files")
        self._parquet: Any = need("pyarrow.parquet", "load of Parquet files")
        self._files = files
        self._team = team
        self._dtype = np.dtype(np.float64) if dtype is None else dtype
        self._reader = None if frame is None else FrameReader(frame)
        self._groups: list[list[int]] = []  # rows of each group of each file

        def look() -> None:
            schema: Any = None
            for file in files:
                with file.anywhere() as f:
                    about = self._opened(file, f)
                    self._groups.append([about.metadata.row_group(i).num_rows for i in range(about.num_row_groups)])
                    if schema is None:
                        schema = about.schema_arrow.remove_metadata()
                    elif not schema.equals(about.schema_arrow.remove_metadata()):
                        raise ValueError(
                            lines(
                                f"load: the columns of {file.name} differ from those of {files[0].name}",
                                _differing(about.schema_arrow, schema),
                                "Load only files with the same columns together.",
                            )
                        )
            names = schema.names
            self._columns, self._label = chosen(files[0].name, names, columns, label)
            self._names = [names[i] for i in self._columns]
            self._empty = self._arrow.schema([schema.field(i) for i in self._columns]).empty_table()

        team.share(look)

    def _opened(self, file: File, f: Any) -> Any:
        with self._damage(file, "it is not a whole Parquet file"):
            return self._parquet.ParquetFile(f)

    @contextmanager
    def _damage(self, file: File, what: str) -> Iterator[None]:
        """Say in which file there is what pyarrow cannot read."""
        try:
            yield
        except (self._arrow.ArrowException, OSError) as e:
            if isinstance(e, OSError) and e.errno is not None:  # the disk's, or the network's
                raise
            raise ValueError(lines(f"load: {file.name}", f"{what} ({e})", "Fetch the file again.")) from e

    def count(self) -> int:
        return sum(map(sum, self._groups))

    def part(self, cut: Cut) -> Any:
        tables = [self._empty]

        def read() -> None:
            for i, of_file in local_cuts(cut, [sum(groups) for groups in self._groups]):
                with self._files[i].anywhere() as f:
                    file = self._opened(self._files[i], f)
                    wanted = local_cuts(of_file, self._groups[i])
                    self._team.progress.begin("reading", sum(self._bytes(file, g) for g, _ in wanted))
                    for group, rows in wanted:
                        see_memory(2 * self._decoded(file, group))  # the group, and what is taken of it
                        with self._damage(self._files[i], f"row group {group} is damaged"):
                            table = file.read_row_group(group, columns=self._names)
                        tables.append(table.select(self._names).take(np.arange(self._groups[i][group])[rows]))
                        self._team.progress.add(self._bytes(file, group))

        self._team.share(read)
        table = self._arrow.concat_tables(tables)
        order = in_order(cut)
        if order is not None:
            table = table.take(order)
        whole = self._array(table) if self._reader is None else self._reader.from_arrow(table)
        return labelled(whole, self._names, None if self._label is None else self._names.index(self._label))

    def _decoded(self, file: Any, group: int) -> int:
        """Return about how many bytes the values of a group take, which may be packed into very few."""
        each = self._dtype.itemsize if self._reader is None else 4
        values = int(file.metadata.row_group(group).num_rows) * len(self._names)
        return max(self._bytes(file, group), values * each)

    @staticmethod
    def _bytes(file: Any, group: int) -> int:
        return int(file.metadata.row_group(group).total_byte_size)

    def _array(self, table: Any) -> np.ndarray[Any, Any]:
        see_memory(len(table) * (len(self._names) + 1) * self._dtype.itemsize)  # a column is a copy first
        array = np.empty((len(table), len(self._names)), self._dtype)
        for i, name in enumerate(self._names):
            column = table[name]
            kind = column.type
            number = any(getattr(self._arrow.types, f"is_{k}")(kind) for k in ("integer", "floating", "boolean"))
            if not number:
                raise ValueError(
                    lines(
                        f"load: column {name!r} of {self._files[0].name} has type {kind}, which is not numeric",
                        do="Choose columns= of numbers, or load a frame with frame='pandas' or 'polars'.",
                    )
                )
            if column.null_count and self._dtype.kind != "f":
                raise ValueError(
                    lines(
                        f"load: column {name!r} of {self._files[0].name} misses {column.null_count} values",
                        f"{self._dtype} has no value for them",
                        "Pass dtype=np.float64: it makes them nan.",
                    )
                )
            array[:, i] = column.to_numpy()
        return array


def _differing(schema: Any, first: Any) -> str:
    """Return the first column that two files do not share."""
    pairs = itertools.zip_longest(schema, first)
    return next(f"{one or 'none'} is not {other or 'there'}" for one, other in pairs if one != other)
