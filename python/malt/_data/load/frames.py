"""Tables as frames of pandas or polars, with the same types of columns on all ranks."""

from __future__ import annotations

import io
from typing import Any, get_args

import numpy as np

from ..._need import need
from ..._options import choose
from ...typing import Frame
from .team import Team


class FrameReader:
    """Makes frames of one kind."""

    def __init__(self, kind: str) -> None:
        choose("frame", kind, get_args(Frame))
        self.kind = kind
        self._package: Any = need(kind, f"load with frame={kind!r}")

    def read_csv(
        self, team: Team, text: bytes, delimiter: str, quote: str | None, encoding: str, columns: list[str]
    ) -> Any:
        """Read a text with a header. Collective.

        Each rank guesses the types from its own rows; where the guesses differ, it
        reads once more with what holds for all: whole numbers and others become
        floats, anything else strings.
        """
        read = self._pandas if self.kind == "pandas" else self._polars
        frame: list[Any] = []

        def guess() -> list[str] | None:
            frame.append(read(text, delimiter, quote, encoding, columns, {}))
            return [str(t) for t in frame[0].dtypes] if len(frame[0]) else None

        guesses = team.share(guess)
        agreed = {
            name: _common([types[i] for types in guesses if types is not None])
            for i, name in enumerate(frame[0].columns)
        }
        own = [str(t) for t in frame[0].dtypes]
        if all(agreed[name] in (None, t) for name, t in zip(agreed, own, strict=True)):
            return frame[0]
        return read(text, delimiter, quote, encoding, columns, {k: t for k, t in agreed.items() if t is not None})

    def from_arrow(self, table: Any) -> Any:
        """Make a frame of a table of Arrow."""
        return table.to_pandas() if self.kind == "pandas" else self._package.from_arrow(table)

    def take(self, frame: Any, rows: np.ndarray[Any, Any]) -> Any:
        """Return the rows with these numbers, numbered from 0 again."""
        return frame.iloc[rows].reset_index(drop=True) if self.kind == "pandas" else frame[rows]

    def _pandas(
        self, text: bytes, delimiter: str, quote: str | None, encoding: str, columns: list[str], types: dict[str, str]
    ) -> Any:
        quoting = {"quoting": 3} if quote is None else {"quotechar": quote}
        return self._package.read_csv(
            io.BytesIO(text),
            sep=delimiter,
            encoding=encoding,
            usecols=columns,
            dtype=types,
            low_memory=False,
            **quoting,
        )

    def _polars(
        self, text: bytes, delimiter: str, quote: str | None, encoding: str, columns: list[str], types: dict[str, str]
    ) -> Any:
        return self._package.read_csv(
            text if encoding.lower() in ("utf-8", "utf8") else text.decode(encoding).encode(),
            separator=delimiter,
            quote_char=quote,
            columns=columns,
            infer_schema_length=None,
            schema_overrides={k: getattr(self._package, t) for k, t in types.items()},
        )


def _common(types: list[str]) -> str | None:
    """Return the type that holds the values of all of these; None if no rank has a value."""
    if len(set(types)) <= 1:
        return types[0] if types else None
    lower = {t.lower() for t in types}
    if lower <= {"int64", "float64"}:
        return "float64" if types[0].islower() else "Float64"
    return "str" if types[0].islower() else "String"
