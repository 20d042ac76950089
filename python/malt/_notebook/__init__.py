"""Notebook cells that run on several ranks: ``%load_ext malt``, then ``%%malt -n 4``.

::

    notebook's kernel                              rank (a child process, with an IPython shell of its own)
    _magic   the commands (_options, _values)
    _team    the ranks: started, ended             _rank    runs one cell after another
    _cell    one cell on all of them         <-->  _shell   what it shows, and its tracebacks
    _show    what is put under the cell
             _channel carries requests and answers, pipes what a rank prints

The ranks are children of the kernel, started and guarded by what ``malt run``
uses (``_launch``, ``_parent``, ``_guard``): there is no controller, no port and
no file, and they end with the kernel however it ends. Only this package knows
IPython; it is loaded by ``%load_ext malt``.
"""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%malt`` and ``%malt`` to IPython; what ``%load_ext malt`` calls.

    Raises
    ------
    PackageError
        IPython is not installed.
    """
    from malt._need import need

    need("IPython", "%load_ext malt")
    from ._magic import register

    register(shell)


def unload_ipython_extension(shell: Any) -> None:
    """End the ranks and take the commands away; what ``%unload_ext malt`` calls."""
    from ._magic import unregister

    unregister(shell)
