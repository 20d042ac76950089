"""Notebook cells that run on several ranks: ``%load_ext malt``, then ``%%malt -n 4``.

::

    notebook's kernel                              rank (a child process, with an IPython shell of its own)
    _magic   the commands (_options, _values)
    _team    the ranks: started, ended             _rank    runs one cell after another
    _cell    one cell on all of them         <-->  _shell   what it shows, and its tracebacks
    _show    what is put under the cell
             _channel carries requests and answers, pipes what a rank prints

The ranks are children of the kernel, started and guarded by what ``malt run``
uses (``_ranks``). It needs no controller, no port and
no file, and the ranks end with the kernel, however it ends. Only this package
uses IPython; ``%load_ext malt`` loads it.

ipyparallel would replace the shell and the socket pair, some 400 lines. It is not used because it
brings a controller, engines that connect to ports of the machine with key files in the user's home,
and a client with an event loop. Its engines outlive a kernel that is killed, and it does not know
ranks that wait for each other. Launching, ending and interrupting would still be our own.

* Access to a rank. Values travel as pickles, so no other process may reach the connection: the
  socket pair has no name and is inherited, and content is in files without a name.

* Ctrl-C in the kernel is noted, not raised, while a cell runs, so that no step is left half done.
  The ranks get a message and SIGINT. The signal raises in the cell only. The message interrupts a
  rank that has not begun with the cell.
  IPython catches KeyboardInterrupt in !commands and events, and errors that took its place in formatters;
  Python does in finalizers. There it is raised once more, by `Shell.heeding` and the rank's `_lost`.

* An exception on one rank. The other ranks, which may wait for it, are interrupted. The job goes
  on: after a cell that failed, all ranks call allgather until they are in step, and syncs that the
  failure interrupted are dropped (_settle).

* The death of one rank. All ranks are ended. The next cell starts new ones and says so. With
  --on-death continue the others go on, and with -o the place of a rank that died has a `PeerError`.

* Between cells nothing reads from the ranks: the kernel has no thread of MALT.
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%malt`` and ``%malt`` to IPython: ``%load_ext malt`` calls this.

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
    """End the ranks and remove the commands: ``%unload_ext malt`` calls this."""
    from ._magic import unregister

    unregister(shell)
