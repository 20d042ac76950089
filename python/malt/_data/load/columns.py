"""Which columns of a table are wanted, and which of them is the label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._guide import lines
from ..._options import choose


def chosen(
    file: str, names: list[str], columns: Sequence[str | int] | None, label: str | int | None
) -> tuple[list[int], str | None]:
    """Return the numbers of the columns to be read, in the file's order, and the name of the label among them."""
    wanted = set(range(len(names))) if columns is None else {position(file, names, c) for c in columns}
    if label is None:
        return sorted(wanted), None
    number = position(file, names, label)
    _see_single(file, names, names[number])
    return sorted(wanted | {number}), names[number]


def position(file: str, names: list[str], column: str | int) -> int:
    """Return which column a name or number is."""
    if isinstance(column, str):
        try:
            choose(f"{file}: column", column, names)
        except ValueError as e:
            raise ValueError(str(e).replace("malt: ", "malt: load: ", 1)) from None
        _see_single(file, names, column)
        return names.index(column)
    if isinstance(column, bool) or not isinstance(column, int):
        raise TypeError(lines(f"load: column {column!r} of {file}", "expected a name, or a number from 0"))
    if not -len(names) <= column < len(names):
        raise ValueError(
            lines(f"load: column {column} of {file}", f"it has {len(names)} columns, 0 to {len(names) - 1}")
        )
    return column % len(names)


def _see_single(file: str, names: list[str], name: str) -> None:
    """Raise if several columns have a name that has to tell one."""
    if (count := names.count(name)) > 1:
        raise ValueError(
            lines(
                f"load: {count} columns of {file} are called {name!r}",
                f"the names are {names[:20]}",
                "Give each column its own name, or take the column of an array by number.",
            )
        )


def labelled(table: Any, names: list[str], label: int | None) -> Any:
    """Return the table, or the table without its label, and the label."""
    if label is None:
        return table
    name = names[label]
    if hasattr(table, "drop"):  # a frame
        return table.drop(columns=name) if hasattr(table, "iloc") else table.drop(name), table[name]
    rest = [i for i in range(len(names)) if i != label]
    return table[:, rest], table[:, label]
