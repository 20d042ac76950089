"""Where the C library of the package is, for programs of C."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """Return the folder of ``malt.h``, for the compiler's ``-I``.

    Examples
    --------
    >>> import os
    >>> os.listdir(malt.get_include())
    ['malt.h']
    """
    return str(Path(__file__).with_name("include"))


def get_library() -> str:
    """Return the path of the shared library, for linking a program with it.

    The program looks for ``libmalt.so.0`` when it starts: link it with
    ``-Wl,-rpath,FOLDER``, where FOLDER is the folder of this file.

    Examples
    --------
    >>> malt.get_library().endswith("/malt/libmalt.so.0")
    True
    """
    return str(Path(__file__).with_name("libmalt.so.0"))
