"""MALT: data-parallel training of an existing Python loop.

Every rank (process) runs the same script on its own part of the data. Every so often
it sends its model or gradient to the ranks that a graph names, and averages the models
that have arrived into its own. Six lines differ from the serial program::

    import numpy as np
    import malt  # new

    truth = np.arange(10.0)
    x = np.random.default_rng(0).normal(size=(40_000, 10))
    y = x @ truth

    v = malt.Vector(10)  # was: w = np.zeros(10)
    w = v.array  # new
    for a, b in zip(*malt.shard(x, y)):  # was: for a, b in zip(x, y):
        w -= 0.01 * (a @ w - b) * a
        v.sync(every=100)  # new: every 100 rows, average the model with the other ranks'
    v.allreduce()  # new: the same model on every rank

    print(f"error {abs(w - truth).max():.1e}")

``malt run -n 4 train.py`` runs it as four ranks. By default all ranks meet at each
sync. ``python train.py`` runs it as a single rank and gives the serial result, bit for
bit.

Importing the package is quick: it loads the library only at the first use.
"""

from __future__ import annotations

from importlib import import_module

from . import _frames as _frames  # shows exceptions from now on

import_module("._job.identity", __name__)  # has to see forks from now on

_homes: dict[str, str] = {}


def _where() -> dict[str, str]:
    """Return the module of each public name, as ``__init__.pyi`` says: it is loaded when the name is first used."""
    if not _homes:
        lines = __loader__.get_data(f"{__path__[0]}/__init__.pyi").decode().splitlines()
        _homes.update((words[3], words[1]) for words in map(str.split, lines) if words[:1] == ["from"])
    return _homes


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("malt")
    if name == "__all__":
        return sorted(name for name, home in _where().items() if home != ".")
    home = "._notebook" if name in ("load_ipython_extension", "unload_ipython_extension") else _where().get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home == ".":  # for what not everybody has
        return import_module(home + name, __name__)
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_where(), "__version__"]
