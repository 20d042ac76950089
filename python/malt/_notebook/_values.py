"""Variables on their way between the notebook and the ranks: ``-i`` and ``-o``.

They travel as pickles, between the kernel and its own children.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from malt._ranks.pickles import packed

from ._errors import CellError


def pack(variables: Mapping[str, Any], names: Iterable[str]) -> dict[str, bytes]:
    """Return the pickles of some of the notebook's variables."""
    values = {}
    for name in names:
        if name not in variables:
            raise CellError(f"%%malt: -i {name}", "the notebook has no variable of that name")
        value = variables[name]
        try:
            values[name], names_main = packed(value)
        except TypeError as error:
            kind = type(value).__qualname__
            raise CellError(f"%%malt: -i {name}", f"a {kind} cannot be sent to the ranks", str(error)) from None
        if names_main:
            raise CellError(
                f"%%malt: -i {name} was defined in the notebook",
                "such objects cannot be sent to the ranks without cloudpickle",
                "Install it: pip install cloudpickle, or define it in a %%malt cell.",
            )
    return values


def load(name: str, rank: int, data: bytes) -> Any:
    """Return the value that a rank has sent."""
    try:
        return pickle.loads(data)
    except Exception as error:
        raise CellError(
            f"%%malt: -o {name} of rank {rank} cannot be received", f"{type(error).__name__}: {error}"
        ) from None
