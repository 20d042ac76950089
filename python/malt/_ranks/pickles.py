"""Pickles between a process and the children that it has started itself.

Another process cannot import ``__main__``, in which everything in a notebook is defined.
So objects from there are pickled by value, as cloudpickle does.
"""

from __future__ import annotations

import io
import pickle
from types import FunctionType
from typing import Any

MAIN = "__mp_main__"
"""What ``__main__`` is called in a rank that imported it: multiprocessing's name for the same thing."""


class _Pickler(pickle.Pickler):
    """Notices whether the pickle names something in ``__main__``."""

    names_main = False

    def persistent_id(self, obj: Any) -> None:
        """Look at an object on its way into the pickle."""
        if isinstance(obj, FunctionType | type) and obj.__module__ in ("__main__", MAIN):
            self.names_main = True


def packed(value: Any) -> tuple[bytes, bool]:
    """Return the pickle of a value, and whether it names what is in ``__main__``.

    It does so only where cloudpickle could not help: then it can be loaded only
    where ``__main__`` has the same things.

    Raises
    ------
    TypeError
        It cannot be pickled; the message says why, and what to do if there is
        something that helps for every kind of value.
    """
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    failure: Exception | None = None
    try:
        pickler.dump(value)
        if not pickler.names_main:
            return buffer.getvalue(), False
    except Exception as error:  # pickling runs code of the objects, which may raise anything
        failure = error
    try:
        import cloudpickle  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        advice = "\nDefine it in a module, or pip install cloudpickle."
    else:
        try:
            return cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL), False
        except Exception as error:
            failure, advice = failure or error, ""
    if failure is None:
        return buffer.getvalue(), True
    raise TypeError(f"{failure}{advice}") from None
