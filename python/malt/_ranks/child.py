"""A rank of ``malt.run``: fetches the function, calls it, and hands its result back.

Pickles travel here between a parent and the children that it has started itself,
over descriptors that they inherit: never between ranks.
"""

from __future__ import annotations

import mmap
import os
import pickle
import runpy
import sys
import traceback
from types import ModuleType
from typing import Any

from .. import _frames
from .._guide import lines
from .parent import end_with
from .pickles import MAIN

importing_main = False
"""Whether this rank is importing the caller's script at the moment."""


def main(payload: int, result: int, parent: int) -> None:
    """Be a rank.

    Parameters
    ----------
    payload : int
        Descriptor of a file with two pickles: how to get ready, then the call.
    result : int
        Descriptor for the result: its length in 8 bytes, then a pickle.
    parent : int
        Process id of the caller.
    """
    end_with(parent)
    os.set_inheritable(payload, False)
    os.set_inheritable(result, False)
    try:
        value = _call(payload)
        _send(result, (True, value), value)
    except Exception as error:
        _fail(result, error)
        sys.exit(1)


def _call(payload: int) -> Any:
    # All ranks share the file and so its position: mapped, it has none.
    with mmap.mmap(payload, 0, prot=mmap.PROT_READ) as mapped:
        ready_length = int.from_bytes(mapped[:8], "little")
        ready = pickle.loads(mapped[8 : 8 + ready_length])
        if ready["path"] is not None:
            sys.path[:] = ready["path"]
        sys.argv[:] = ready["argv"]
        if ready["main"] is not None:
            _import_main(*ready["main"])
        with memoryview(mapped) as view:
            fn, args, kwargs = pickle.loads(view[8 + ready_length :])
    os.close(payload)
    return fn(*args, **kwargs)


def _import_main(kind: str, name: str) -> None:
    """Run the caller's script or module again, but not as ``__main__``."""
    global importing_main
    importing_main = True
    try:
        run = runpy.run_module if kind == "module" else runpy.run_path
        module = ModuleType(MAIN)
        sys.modules["__main__"] = sys.modules[MAIN] = module
        module.__dict__.update(run(name, run_name=MAIN))
    finally:
        importing_main = False


def _send(result: int, message: Any, value: Any) -> None:
    try:
        data = dumps(message)
    except Exception as error:
        kind = type(value).__qualname__
        raise TypeError(
            lines(
                f"the function returned a {kind}, which cannot be sent back",
                str(error),
                "Return arrays, numbers, or objects that pickle accepts.",
            )
        ) from None
    with open(result, "wb") as file:
        file.write(len(data).to_bytes(8, "little"))
        file.write(data)


def dumps(value: Any) -> bytes:
    """Pickle, with cloudpickle's help where it is installed and needed."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        try:
            import cloudpickle  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            pass
        else:
            data: bytes = cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            return data
        raise


def _fail(result: int, error: Exception) -> None:
    """Tell the launcher, the caller and the other ranks: in this order."""
    from .report import reporter

    reporter().failed(error)
    with _frames.hidden(error):
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        packed: bytes | None = dumps(error)
    except Exception:
        packed = None  # the caller makes do with the text
    _send(result, (False, (packed, type(error).__qualname__, str(error), text)), None)
    if f"{__package__}._lib" in sys.modules:  # else it has not joined
        from .. import _lib

        _lib.abort(error)
