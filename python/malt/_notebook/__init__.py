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

ipyparallel was weighed and not taken: it brings a controller, engines that meet it on ports of the
machine, with key files in the user's home, and a client with an event loop; its engines outlive a
kernel that is killed, and it knows nothing of ranks that wait for each other. It would have saved
the shell and the socket pair, some 400 lines, and left us the launching, the ending and the
interrupting.

* Who can reach a rank. Values travel as pickles, so only where no other process can be: the socket
  pair has no name and is inherited, content lies in files without a name.

* Ctrl-C in the kernel is noted, not raised, while a cell runs, so nothing is left half done. The
  ranks get a message and SIGINT; the signal raises in the cell only, and the message is for a rank
  that has not begun with it.

* One rank raises: the others, which may wait for it, are interrupted. The job lives on: after a
  cell that failed all ranks call allgather until they are in step, and syncs that the failure cut
  in half are dropped (_settle).

* One rank dies: all are ended, and the next cell starts new ones and says so.

* Between cells nothing reads from the ranks: there is no thread of ours in the kernel.
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
