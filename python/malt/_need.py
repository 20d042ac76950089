"""Packages that MALT works with when the user has them."""

from __future__ import annotations

import importlib
from types import ModuleType

from ._errors import PackageError
from ._guide import lines


def need(module: str, what: str, *, package: str | None = None) -> ModuleType:
    """Import a module that not everybody has.

    Parameters
    ----------
    module : str
        Its name, such as ``"scipy.sparse"``.
    what : str
        What cannot be done without, to begin the message: ``"load of SVMlight files"``.
    package : str, optional
        What pip installs it as, where that is not the module's first name.

    Raises
    ------
    PackageError
        It is not installed, or fails to load.
    """
    first = module.partition(".")[0]
    package = package or first
    try:
        importlib.import_module(first)
        return importlib.import_module(module)
    except ImportError as e:
        if isinstance(e, ModuleNotFoundError) and e.name == first:
            why = "which is not installed"
        else:
            why = f"which is installed but does not load ({e})"
        raise PackageError(
            lines(f"{what} needs {package}, {why}", do=f"Install it: pip install {package}."), name=module
        ) from e
