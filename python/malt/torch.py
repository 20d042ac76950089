"""PyTorch models as vectors: ``malt.torch.Vector(model)``.

Needs PyTorch, which importing `malt` alone does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from . import _lib, _vector, _world
from ._fold import Fold
from ._graph import GraphLike
from ._options import choose, misspelt, options_of
from ._torch_model import Model
from .typing import Consistency, Of

if TYPE_CHECKING:
    from torch.nn import Module
    from typing_extensions import Unpack

__all__ = ["Vector"]


class Vector(_vector.Vector[Any]):
    """The parameters, or the gradients, of a PyTorch model as a vector.

    Parameters and float buffers, such as the running statistics of batch
    normalisation, become views of the vector's memory: the optimizer changes
    them there, and `sync` averages them there, without a copy. Nothing else of
    the loop changes::

        v = malt.torch.Vector(model)
        for x, y in DataLoader(malt.shard(data), 32):
            opt.zero_grad()
            loss_of(model(x), y).backward()
            opt.step()
            v.sync()
        v.allreduce()

    Making it is collective.

    Parameters
    ----------
    model : torch.nn.Module
        On every rank the same one. A part of a model will do, for example the
        head, where the rest is frozen.
    of : {"params", "grads"}
        What is exchanged: the parameters, with `sync` after ``opt.step()``; or
        their gradients, with `sync` between ``backward()`` and ``opt.step()``.
    buffers : bool
        Whether float buffers are exchanged too.
    **options
        Those of `malt.Vector`: ``graph``, ``consistency``, ``fold``, ``start``,
        ``name`` and so on. ``uneven`` is "error" with ``of="grads"``. With
        ``start="same"`` all of the model, whether it is exchanged or not, begins as
        it is on rank 0.

    Raises
    ------
    TypeError, ValueError
        Not a module, or one without parameters, or with some that have no values yet.
    UnsupportedError
        A parameter is complex, sparse, or of a class of its own.
    MismatchError
        The ranks have built different models; the message shows the first difference.
    PackageError
        At the import: PyTorch is not installed.

    Warns
    -----
    RuntimeWarning
        Gradients over any graph but ``all``, or in ``ssp`` or ``async``: the ranks drift apart.

    See Also
    --------
    malt.Vector : All that the calls do.

    Notes
    -----
    *Learning rate.* It stays what you have set. Averaged parameters have moved
    as far as those of one rank: with N ranks, use N times the learning rate to
    come as far in a pass as one process does. Averaged gradients are those of a
    batch N times as large.

    *The optimizer's own state* (momentum, Adam's moments) is each rank's own and
    is not exchanged.

    *Every rank calls* `sync` *equally often*, also where a step was skipped, as
    by a gradient scaler: nothing is hooked into the optimizer. With gradients
    and ``torch.amp.GradScaler`` call it before ``scaler.step`` (and before
    ``scaler.unscale_``): what is infinite on one rank then is so on all, and all
    skip the step.

    *Gradients* are copied, because ``zero_grad()`` drops them. A parameter that
    has one on some ranks only gets the average with zeros for the others; one
    that has none on any keeps None. Parameters that do not require gradients
    are left out. All ranks need equally many batches, as ``malt.shard(data,
    even="pad")`` gives them: a sync that would go on without a rank that has made
    fewer raises a `StateError`, unless the vector has ``uneven="ok"``.

    *Copied* to the vector and back are, besides gradients, all tensors that are
    on another device than the CPU, or of another type than float32 and float64
    (exchanged as float32), or whose memory others use as well: parts of larger
    tensors, memory shared between processes. A tensor that got other
    memory (``p.data = …``, ``load_state_dict(assign=True)``) becomes a view
    again at the next exchange. One that got another type or shape is refused.
    References to the memory of a parameter that were taken before, as by
    ``p.data`` or ``p.detach()``, do not follow it into the vector.

    *Arrays.* `array` is all tensors one after the other, each beginning at a
    multiple of 64 bytes with zeros between; `arrays` are two where the model has
    both float32 and float64. A fold of your own gets them so.

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

    _instead = "the model's state_dict()"

    def __init__(
        self, model: Module, *, of: Of = "params", buffers: bool = True, **options: Unpack[_vector.Options]
    ) -> None:
        known = options_of(_vector.Vector)
        if unknown := [name for name in options if name not in known]:
            raise misspelt(unknown, Vector, _vector.Vector)
        choose("of", of, get_args(Of))
        self._of = of
        self._model = Model(model, of, buffers)
        if of == "grads" and self._model.has_buffers and options.get("fold", "mean") in ("sum", "min", "max"):
            raise ValueError(
                f"malt: fold={options['fold']!r} with of='grads' would fold the model's float buffers alike: pass "
                "buffers=False, or fold='mean'"
            )
        if of == "grads":
            options.setdefault("uneven", "error")
        self._model.agree(options.get("start", "same") != "own")
        first = self._model.first_values()
        super().__init__(first if len(first) > 1 else first[0], **options)
        self._idle = None  # a step may be skipped, and whether the tensors are views is looked up at each exchange
        self._model.put(self.arrays)
        self._model.give(gradients=False)
        self._warn_of_drift()

    @property
    def names(self) -> tuple[str, ...]:
        """What is exchanged, as the model names it, in the order of the memory."""
        return tuple(place.names[0] for place in self._model.places)

    def broadcast(self, root: int = 0, *, timeout: float | None = None) -> None:
        """Give every rank root's model: all its parameters and buffers. Collective.

        Whatever `sync` exchanges, and with ``buffers=False``, too. Gradients stay as they are.

        Parameters
        ----------
        root : int
            The rank whose model counts, for example because it has loaded a file.
        timeout : float, optional
            Seconds; None is the job's.

        Raises
        ------
        ValueError, TypeError
            ``root`` is not a rank.
        TimeoutError, PeerError, StateError
            As `allreduce`.
        """
        source = _world.checked_rank("root", root)
        self._take()
        self._object.broadcast(source, timeout)
        self._model.give(gradients=False)
        self._model.spread(source, timeout)

    def configure(
        self,
        *,
        graph: GraphLike | None = None,
        consistency: Consistency | None = None,
        fold: Fold | None = None,
        timeout: float | None = None,
    ) -> None:
        """Change the mode, as `malt.Vector.configure`."""
        super().configure(graph=graph, consistency=consistency, fold=fold, timeout=timeout)
        self._warn_of_drift()

    def _take(self) -> None:
        self._model.take()

    def _give(self) -> None:
        self._model.give()

    def _warn_of_drift(self) -> None:
        if self._of != "grads":
            return
        for mode, over, instead in (
            (f"graph={self._described['graph']!r}", self._described["graph"] != "all", "graph='all'"),
            (f"consistency={self.consistency!r}", self.consistency.startswith(("ssp", "async")), "consistency='bsp'"),
        ):
            if over:
                _lib.warn(
                    f"malt: gradients over {mode}: the ranks step by different averages, and nothing brings their "
                    f"models together again; use {instead}, or exchange the parameters, of='params'"
                )
