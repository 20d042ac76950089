"""``malt.torch.Gradients``: gradients that are averaged while the backward pass goes on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

from .. import _lib
from .._errors import StateError, UnsupportedError
from .._guide import lines
from .._job import world
from .._options import choose, whole
from .._vectors import vector
from .._vectors.listeners import Marks, marks
from .._vectors.pending import Pending
from ..typing import Start, Wire
from ._model import Model
from ._steps import Steps

if TYPE_CHECKING:
    from torch.nn import Module, Parameter

MIB = 1 << 20


class Bucket(vector.Vector[Any]):
    """Gradients, or buffers, that are exchanged together."""

    def __init__(self, piece: Model, fold: Literal["mean", "sum"], wire: Wire, name: str | None) -> None:
        (values,) = piece.first_values()
        super().__init__(values, fold=fold, wire=wire, uneven="error", name=name)
        self._idle = None  # a model's gradients may be zeros
        self._model = piece
        _lib.MAY_OVERFLOW.add(self.name)
        piece.put(self.arrays)
        piece.give(gradients=False)
        self.due = {id(p) for p in piece.parameters()}
        """The parameters whose gradients are still to come."""
        self.pending: Pending | None = None

    def _take(self) -> None:
        self._model.take()

    def _give(self) -> None:
        self._model.give()

    def _exchanged(self, count: int, sent: Marks) -> None:
        """Tell no listener: a step has been exchanged when all buckets have."""

    def exchanged(self, count: int, sent: Marks) -> None:
        """Tell the listeners of an exchange of all buckets."""
        super()._exchanged(count, sent)


class Gradients(contextlib.AbstractContextManager["Gradients"]):
    """The gradients of a PyTorch model, averaged over all ranks while the backward pass goes on.

    The gradients lie in buckets, as in PyTorch's DistributedDataParallel. Once ``backward()`` has computed all of a
    bucket, its exchange begins, and goes on beside the rest of the pass. `sync` waits for what is
    left. The result is that of ``malt.torch.Vector(model, of="grads")``, to the bit; it pays
    where the exchange takes long and no processor, as between machines::

        g = malt.torch.Gradients(model)
        for x, y in DataLoader(malt.shard(data, even="pad"), 32):
            opt.zero_grad()
            loss_of(model(x), y).backward()
            g.sync()
            opt.step()

    Making it is collective.

    Parameters
    ----------
    model : torch.nn.Module
        The same model on every rank.
    bucket_bytes : int
        The size of a bucket; a larger parameter has one of its own.
    fold : {"mean", "sum"}
        How the gradients of the ranks are combined.
    buffers : bool
        Whether float buffers, such as the running statistics of batch normalisation, are
        averaged, too. Their exchange begins in `sync`.
    wire : {"exact", "bf16", "f16", "int8"}
        How gradients travel between machines, as for `malt.Vector`.
    start : {"same", "own"}
        Whether all ranks start with rank 0's model.
    name : str, optional
        Begins the names of the buckets in messages: ``name/0`` and so on.

    Raises
    ------
    TypeError, ValueError, UnsupportedError, MismatchError
        As for `malt.torch.Vector`. PyTorch is older than 2.1, which cannot tell when a gradient is there.

    Warns
    -----
    RuntimeWarning
        An optimizer steps by gradients that were not exchanged.

    Notes
    -----
    The exchange is that of `malt.Vector.sync` on ``all`` in ``bsp``, with ``uneven="error"``: every
    rank has to call `sync` at every step. Do not touch a gradient between ``backward()`` and `sync`;
    clip gradients after it.

    References
    ----------
    PyTorch Distributed (Li et al., VLDB 2020), section 3.2.3: buckets, and gradients exchanged
    in the order in which the backward pass ends with them.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> with malt.torch.Gradients(model) as g:
    ...     model(torch.ones(1, 3)).sum().backward()
    ...     g.sync()                            # alone, there is nothing to fold
    0
    """

    def __init__(
        self,
        model: Module,
        *,
        bucket_bytes: int = 25 * MIB,
        fold: Literal["mean", "sum"] = "mean",
        buffers: bool = True,
        wire: Wire = "exact",
        start: Start = "same",
        name: str | None = None,
    ) -> None:
        choose("fold", fold, ("mean", "sum"))
        limit = whole("bucket_bytes", bucket_bytes, 1, sys.maxsize, "expected a number of bytes", "expected at least 1")
        self._model = Model(model, "grads", buffers)
        if fold == "sum" and self._model.has_buffers:
            raise ValueError(
                lines("fold='sum' would add up the model's float buffers", do="Pass buffers=False, or fold='mean'.")
            )
        if not hasattr(self._model.parameters()[0], "register_post_accumulate_grad_hook"):
            raise UnsupportedError(
                lines(
                    "this PyTorch does not tell when a gradient is there",
                    "expected PyTorch 2.1 or later",
                    "Use malt.torch.Vector(model, of='grads').",
                )
            )
        self._model.agree(start != "own")
        self.buckets = tuple(
            Bucket(piece, fold, wire, None if name is None else f"{name}/{i}")
            for i, piece in enumerate(self._model.split(limit))
        )
        """The vectors that are exchanged, each with its `stats`; the first that begins comes first."""
        self._due = [set(bucket.due) for bucket in self.buckets]
        self._held = False
        self._hooks = [
            p.register_post_accumulate_grad_hook(partial(self._computed, bucket))
            for bucket in self.buckets
            for p in bucket._model.parameters()
        ]
        self._steps = Steps(self._model, "the gradients") if world.size() > 1 else None

    def _computed(self, bucket: Bucket, parameter: Parameter) -> None:
        """Note that a gradient is there; PyTorch calls this in the backward pass."""
        if self._held:
            return
        if id(parameter) not in bucket.due:
            raise StateError(
                lines(
                    "backward() has run twice without a sync of the gradients",
                    "the first gradients are being exchanged",
                    "Call sync() after each backward(), or run all but the last under no_sync().",
                )
            )
        bucket.due.discard(id(parameter))
        if not bucket.due:
            bucket.pending = bucket.sync_begin()

    def sync(self) -> int:
        """Wait until the gradients of all ranks are averaged.

        Every rank calls it once for each ``backward()`` that is not under `no_sync`. Parameters
        without a gradient on this rank count as zeros.

        Returns
        -------
        int
            The number of other ranks whose gradients are in the result.

        Raises
        ------
        StateError, TimeoutError, PeerError
            As for `malt.Vector.sync`; then some buckets may be averaged, and others not.
        """
        if self._steps is not None:
            self._steps.exchanged()
        self._model.found()  # raises if the model has changed
        sent, failed = marks(), None
        for bucket, due in zip(self.buckets, self._due, strict=True):
            bucket.pending = bucket.pending or bucket.sync_begin()
            bucket.due = set(due)
        counts = []
        for bucket in self.buckets:
            try:
                counts.append(cast("Pending", bucket.pending).wait())
            except Exception as e:
                failed = failed or e
            bucket.pending = None
        if failed is not None:
            raise failed
        self.buckets[-1].exchanged(min(counts), sent)
        return min(counts)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let a ``backward()`` add to the gradients without exchanging them.

        For batches that are computed in several parts: all but the last run under it.
        """
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before

    def close(self) -> None:
        """Close it: other ranks no longer wait for this one in it. Not collective. A second call has no effect."""
        for hook in self._hooks:
            hook.remove()
        if self._steps is not None:
            self._steps.stop()
        for bucket in self.buckets:
            if bucket.pending is None or bucket.pending.done():  # after an error in the loop, others may not come
                bucket.close()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
