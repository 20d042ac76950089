"""PyTorch models as vectors: ``malt.torch.Vector(model)``.

Needs PyTorch, which importing `malt` alone does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from .. import _lib
from .._guide import lines
from .._job import world
from .._options import choose, misspelt, options_of
from .._vectors import vector
from .._vectors.arrays import Array
from .._vectors.idle import Idle
from ..typing import ChangesName, Of
from ._deal import deal
from ._gradients import Gradients
from ._model import Model
from ._steps import Steps

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch.nn import Module
    from typing_extensions import Unpack

__all__ = ["Gradients", "Vector", "deal"]

UNCHANGED = (
    "the model of {} has not changed in 8 syncs, so nothing is learnt",
    "the optimizer may have the parameters of another model, such as a copy",
    "Make the vector of the model that the loop trains.",
)


class Vector(vector.Vector[Any]):
    """A vector of the parameters, or the gradients, of a PyTorch model.

    Parameters and float buffers, such as the running statistics of batch
    normalisation, become views of the vector's memory: the optimizer changes
    them there, and `sync` averages them there, without a copy. The rest of the loop
    stays the same::

        v = malt.torch.Vector(model)
        for x, y in DataLoader(malt.shard(data), 32):
            opt.zero_grad()
            loss_of(model(x), y).backward()
            opt.step()
            v.sync()
        v.allreduce()

    Making the vector is collective.

    Parameters
    ----------
    model : torch.nn.Module
        The same model on every rank. It may be a part of a larger model, for example the
        head if the rest is frozen.
    of : {"params", "grads"}
        What is exchanged: the parameters, with `sync` after ``opt.step()``; or
        their gradients, with `sync` between ``backward()`` and ``opt.step()``.
    buffers : bool
        Whether float buffers are exchanged, too.
    ids, wants : array of int, optional
        As for `malt.Vector`: for a model of one tensor, such as an ``nn.Embedding`` of which each
        rank has other rows. Each rank starts with its own, and `sync` combines the rows, or
        their gradients, that have equal ids.
    **options
        The options of `malt.Vector`: ``graph``, ``consistency``, ``fold``, ``start``,
        ``name`` and so on. With ``of="grads"``, ``uneven`` is "error" by default, except in
        ``async``. With ``start="same"`` the whole model starts as on rank 0, including
        the parts that are not exchanged.

    Raises
    ------
    TypeError, ValueError
        The model is not a module, has no parameters, or has parameters without values.
    UnsupportedError
        A parameter is complex, sparse, or of a tensor subclass.
    MismatchError
        The ranks have built different models; the message shows the first difference.
    PackageError
        At the import: PyTorch is not installed.

    Warns
    -----
    RuntimeWarning
        Gradients over any graph but ``all``, or in ``ssp`` or ``async``, or an optimizer steps
        by gradients that were not exchanged: the ranks drift apart. Or the model has not
        changed in its first 8 syncs.

    See Also
    --------
    malt.Vector : All that the calls do.
    Gradients : averages gradients while the backward pass goes on.

    Notes
    -----
    *Learning rate.* MALT does not change it. The average of N models has moved only as far
    as one of them, so with N ranks use N times the learning rate to make the same progress
    in a pass as one process. Averaged gradients are those of a batch N times as large.

    *The optimizer's state* (momentum, Adam's moments) belongs to each rank and is not
    exchanged.

    *Skipped steps.* Only `sync` exchanges, not the optimizer, so call it even if a step was
    skipped, as by a gradient scaler. With ``of="grads"`` and ``torch.amp.GradScaler``, call
    `sync` before ``scaler.unscale_`` and ``scaler.step``: a gradient that is infinite on one
    rank is then infinite on all, and all skip the step.

    *Gradients* are copied, because ``zero_grad()`` drops them. If only some ranks have a
    gradient of a parameter, the others count as zeros; if no rank has one, it stays None.
    Parameters that do not require gradients are left out. Every rank must call `sync`
    equally often, so all need the same number of batches: ``malt.shard(data, even="pad")``.
    Otherwise `sync` raises a `StateError`, unless the vector has ``uneven="ok"``.

    *Copies.* Besides gradients, these tensors are copied to the vector and back: tensors on
    another device than the CPU, tensors of other types than float32 and float64 (they are
    exchanged as float32), parts of larger tensors, and memory shared with other processes.

    *Replaced memory.* A tensor that gets other memory (``p.data = …``,
    ``load_state_dict(assign=True)``) becomes a view again at the next exchange; if its type
    or shape has changed, the exchange raises an error. References to the memory that a
    parameter had before, as from ``p.data`` or ``p.detach()``, do not refer to the vector.

    *Rows with ids.* `configure` gives the rows of the tensor other ids; the tensor keeps its
    values, and `array` is the new memory of it.

    *Arrays.* `array` has all tensors one after the other; each begins at a multiple of 64
    bytes, with zeros between. If the model has both float32 and float64, `arrays` has one
    array of each. Your own fold gets the same arrays.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> v = malt.torch.Vector(model, name="linear")
    >>> torch.optim.SGD(model.parameters(), lr=0.1).step()
    >>> v.sync()                                # alone, there is nothing to fold
    0
    >>> v.names
    ('weight', 'bias')
    >>> v.close()
    """

    _instead = "the model's state_dict(), and make a malt.torch.Vector"

    def __init__(
        self,
        model: Module,
        *,
        of: Of = "params",
        buffers: bool = True,
        ids: npt.ArrayLike | None = None,
        wants: npt.ArrayLike | None = None,
        **options: Unpack[vector.Options],
    ) -> None:
        known = options_of(vector.Vector)
        if unknown := [name for name in options if name not in known]:
            raise misspelt(unknown, Vector, vector.Vector)
        choose("of", of, get_args(Of))
        self._of = of
        self._model = Model(model, of, buffers)
        if of == "grads" and options.get("fold") in get_args(ChangesName):
            raise ValueError(
                lines(
                    f"fold={options['fold']!r} with of='grads'",
                    "gradients are new at each step: their changes mean nothing",
                    "Leave of= out, or take fold='sum' or 'mean'.",
                )
            )
        if of == "grads" and self._model.has_buffers and options.get("fold", "mean") in ("sum", "min", "max"):
            raise ValueError(
                lines(
                    f"fold={options['fold']!r} with of='grads' would fold the model's float buffers the same way",
                    do="Pass buffers=False, or fold='mean'.",
                )
            )
        if of == "grads" and options.get("consistency") != "async" and ids is None:
            options.setdefault("uneven", "error")
        if ids is None:
            self._model.agree(options.get("start", "same") != "own")
        first = self._model.first_values() if ids is None else [self._model.table()]
        super().__init__(first if len(first) > 1 else first[0], ids=ids, wants=wants, **options)
        if self._idle is not None:
            self._idle = Idle(self.arrays, None, 8, UNCHANGED) if of == "params" else None  # some steps may be skipped
        (_lib.MAY_OVERFLOW.add if of == "grads" else _lib.MAY_OVERFLOW.discard)(self.name)
        self._model.put(self.arrays)
        self._model.give(gradients=False)
        self._steps = Steps(self._model, self._object.name) if of == "grads" and world.size() > 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        """The model's names of the exchanged tensors, in the order of the memory."""
        return tuple(place.names[0] for place in self._model.places)

    def broadcast(self, root: int = 0, *, timeout: float | None = None) -> None:
        """Copy root's model, with all its parameters and buffers, to every rank. Collective.

        This includes tensors that `sync` does not exchange. Gradients stay as they are.

        Parameters
        ----------
        root : int
            The rank whose model counts, for example because it has loaded a file.
        timeout : float, optional
            In seconds; by default the timeout of the job.

        Raises
        ------
        ValueError, TypeError
            ``root`` is not a rank.
        TimeoutError, PeerError, StateError
            As for `allreduce`.
        """
        source = world.checked_rank("root", root)
        self._take()
        self._object.broadcast(source, timeout)
        self._model.give(gradients=False)
        self._model.spread(source, timeout)

    def close(self) -> None:
        """Close it, as `malt.Vector.close` does: other ranks no longer wait for this one in it."""
        super().close()
        if self._steps is not None:
            self._steps.stop()

    def _configure_rows(self, ids: Array | None, wants: Array | None, timeout: float | None) -> None:
        if ids is not None and len(ids) != len(self.array):
            raise ValueError(
                lines(
                    f"{len(ids)} ids for the {len(self.array)} rows of {self.names[0]}",
                    "a tensor keeps its shape",
                    "Close the vector, and make one of a table with as many rows.",
                )
            )
        super()._configure_rows(ids, wants, timeout)
        self._model.put(self.arrays)
        self._model.take()

    def _take(self) -> None:
        if self._steps is not None:
            self._steps.exchanged()
        self._model.take()

    def _give(self) -> None:
        self._model.give()

    def _describe(self) -> None:
        """Learn the options in force, and warn of those with which gradients drift apart."""
        super()._describe()
        if self._of != "grads" or self._ids is not None:
            return
        for mode, over, instead in (
            (f"graph={self._described['graph']!r}", self._described["graph"] != "all", "graph='all'"),
            (f"consistency={self.consistency!r}", self.consistency.startswith(("ssp", "async")), "consistency='bsp'"),
        ):
            if over:
                _lib.warn(
                    lines(
                        f"gradients over {mode}: the ranks step by different averages",
                        "nothing brings their models together again",
                        f"Use {instead}, or exchange the parameters: of='params'.",
                    )
                )
