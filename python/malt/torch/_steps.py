"""Optimizers that step by gradients which were not exchanged."""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any

from .. import _lib
from .._guide import lines
from ._model import Model

_all: weakref.WeakSet[Steps] = weakref.WeakSet()


@cache
def _listen() -> None:
    """Have `_stepped` called after the steps of all optimizers, unless PyTorch is too old for that."""
    from torch.optim import optimizer

    hook = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if hook is not None:
        hook(_stepped)


def _stepped(optimizer: Any, *_: object) -> None:
    for steps in list(_all):
        steps.look(optimizer)


class Steps:
    """Warns, once, if an optimizer of a model steps without an exchange of its gradients before.

    Parameters
    ----------
    model : Model
    called : str
        What messages call that which exchanges the gradients.
    """

    def __init__(self, model: Model, called: str) -> None:
        self._model, self._called = model, called
        self._exchanges = 0
        self._before: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        # by optimizer: the exchanges before its last step; -1 if it is another model's
        _all.add(self)
        _listen()

    def exchanged(self) -> None:
        """Note an exchange."""
        self._exchanges += 1

    def stop(self) -> None:
        """Look no more."""
        _all.discard(self)

    def look(self, optimizer: Any) -> None:
        """Look at an optimizer that has made a step."""
        before = self._before.get(optimizer)
        if before is None:
            own = self._model.has_any(p for group in optimizer.param_groups for p in group["params"])
            before = 0 if own else -1
        if before == self._exchanges:
            self.stop()
            _lib.warn(
                lines(
                    f"{type(optimizer).__name__} stepped without a sync of {self._called} before it",
                    "each rank used its own gradient, and the ranks' models drift apart",
                    "Call its sync() at every step, between backward() and step().",
                )
            )
        self._before[optimizer] = before if before < 0 else self._exchanges
