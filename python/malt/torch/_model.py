"""The tensors of a PyTorch model, and which of them have a place in a vector.

Each name is looked up again at every exchange, because much of PyTorch
replaces a parameter, or the memory of one, although other objects refer to it:
``p.data = …``, ``model.double()``, ``load_state_dict(assign=True)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import MismatchError, PeerError, StateError, UnsupportedError
from .._guide import lines
from .._job import world
from .._need import need
from .._vectors.arrays import Array
from ._place import GradPlace, Place, kind, refuse

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module, Parameter
else:
    torch = need("torch", "malt.torch")
    Parameter = torch.nn.Parameter

ALIGNED = 16  # elements: a cache line, as PyTorch aligns tensors; what kernels do, to the last bit, may depend on it


class Model:
    """The tensors of a model, and the places of the tensors that travel.

    Parameters
    ----------
    module : torch.nn.Module
    of : {"params", "grads"}
    buffers : bool
        Whether float buffers travel too.
    """

    def __init__(self, module: Module, of: str, buffers: bool) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(
                lines(
                    f"model is of type {type(module).__qualname__}",
                    "expected a torch.nn.Module, the model itself rather than its parameters",
                    "Use malt.Vector for arrays.",
                )
            )
        if of == "grads" and world.replaces():
            raise UnsupportedError(
                lines(
                    "gradients do not go with on_death=replace",
                    "a rank that joins again has the model of the start, and not that of the others",
                    "Exchange parameters, with malt.torch.Vector(model); or take --on-death continue.",
                )
            )
        self._module, self._of, self._buffers = module, of, buffers
        self._only: frozenset[str] | None = None  # the names of a piece
        found = {name: t for name, t in self._candidates().items() if self._travels(t)}
        if not found:
            what = "float parameters" if of == "params" else "parameters that require a gradient"
            raise ValueError(lines(f"the {type(module).__qualname__} has no {what}", "there is nothing to exchange"))
        for name, t in found.items():
            refuse(name, t)
        self.places = sorted(_places(found, of), key=lambda place: np.dtype(place.exchanged_as).itemsize)
        self._place_of = {name: place for place in self.places for name in place.names}
        self.has_buffers = any(not isinstance(t, Parameter) for t in found.values())

    def split(self, limit: int) -> list[Model]:
        """Cut it into pieces of at most so many bytes, or of one place, and one dtype.

        They come in the order in which a backward pass ends with them: that of the last gradient is first.
        Buffers are in the last ones.
        """
        pieces: list[list[Place]] = []
        before, room = None, 0
        last = [*reversed(self.places)]
        gradients = [place for place in last if isinstance(place, GradPlace)]
        for place in gradients + [place for place in last if place not in gradients]:
            size = _room(place) * np.dtype(place.exchanged_as).itemsize
            kind_of = place.exchanged_as, type(place)
            if kind_of != before or size > room:
                pieces.append([])
                before, room = kind_of, limit
            pieces[-1].append(place)
            room -= size
        return [self._piece(places) for places in pieces]

    def _piece(self, places: list[Place]) -> Model:
        piece = copy(self)
        piece.places = places
        piece._place_of = {name: place for place in places for name in place.names}
        piece._only = frozenset(piece._place_of)
        return piece

    def parameters(self) -> list[Parameter]:
        """Return the parameters of the gradients that travel."""
        named = dict(self._module.named_parameters(remove_duplicate=False))
        return [named[place.names[0]] for place in self.places if isinstance(place, GradPlace)]

    def first_values(self) -> list[Array]:
        """Lay the places out in arrays of their own, one for each dtype, with the present values."""
        arrays = [
            np.zeros(sum(map(_room, places)), dtype)
            for dtype, places in groupby(self.places, lambda place: place.exchanged_as)
        ]
        self.put(arrays)
        self.take()
        return arrays

    def table(self) -> Array:
        """Return the present values of the only place, in its shape: its rows may have ids."""
        if len(self.places) > 1:
            raise UnsupportedError(
                lines(
                    f"ids= of a {type(self._module).__qualname__} with {len(self.places)} tensors",
                    "only the rows of one tensor can have ids",
                    "Give the layer with the rows a vector of its own, and the others another one.",
                )
            )
        (array,), (place,) = self.first_values(), self.places
        return array[: place.count].reshape(place.shape)

    def put(self, arrays: Iterable[Array]) -> None:
        """Set where the places are: in arrays of the shape of `first_values`, or of `table`."""
        same = groupby(self.places, lambda place: place.exchanged_as)
        for (_, places), array in zip(same, (a.reshape(-1) for a in arrays), strict=True):
            start = 0
            for place in places:
                place.put(array[start : start + place.count])
                start += _room(place)

    def take(self) -> None:
        """Bring all that travels into its place, and see to it that the model still is what it was."""
        found = self.found()
        self._now = [(place, _distinct(found[name] for name in place.names)) for place in self.places]
        with torch.no_grad():
            for place, tensors in self._now:
                place.take(tensors)

    def found(self) -> dict[str, Tensor]:
        """Return by name what might travel, and see to it that the model still is what it was."""
        found = self._candidates()
        new = [name for name, t in found.items() if name not in self._place_of and self._travels(t)]
        gone = [name for name in self._place_of if name not in found]
        if new or gone:
            words = [f"{what}: {', '.join(names)}" for what, names in (("new", new), ("gone", gone)) if names]
            raise StateError(
                lines(
                    "the model has changed since the vector was made",
                    "; ".join(words),
                    "Make the vector after such changes, or after (un)freezing, on every rank.",
                )
            )
        return found

    def give(self, gradients: bool = True) -> None:
        """Give the tensors that `take` has found what is in their places."""
        with torch.no_grad():
            for place, tensors in self._now:
                if gradients or not isinstance(place, GradPlace):
                    place.give(tensors)

    def agree(self, same: bool) -> None:
        """See to it that all ranks have built the same model. Collective.

        Parameters
        ----------
        same : bool
            Whether tensors that do not travel are to start as they are on the lowest rank.
        """
        rest = self._rest() if same else {}
        own = [*map(str, self.places), *(f"{name}: {kind(t.dtype)} {list(t.shape)}" for name, t in rest.items())]
        texts = world.allgather_in("malt.torch.Vector", "\n".join(own))
        first = texts[0].split("\n")
        for rank, text in zip(world.alive(), texts, strict=True):
            theirs = text.split("\n")
            if theirs != first:
                a, b = next(
                    (a, b) for a, b in zip([*first, "nothing more"], [*theirs, "nothing more"], strict=False) if a != b
                )
                raise MismatchError(
                    lines(
                        "the ranks have built different models",
                        f"rank {world.alive()[0]} has {a}, rank {rank} has {b}",
                        "Build the same one on every rank.",
                    )
                )
        while same:
            root = world.alive()[0]
            try:
                self.spread(root, None)
            except PeerError:
                if root in world.alive():
                    raise
            else:
                break

    def spread(self, root: int, timeout: float | None) -> None:
        """Give the tensors that have no place root's values. Collective."""
        if world.size() > 1:
            for t in self._rest().values():
                _copy(t, root, timeout)

    def has_any(self, tensors: Iterable[Tensor]) -> bool:
        """Tell whether some of the tensors are parameters of the model."""
        return not {*map(id, self._module.parameters())}.isdisjoint(map(id, tensors))

    def _candidates(self) -> dict[str, Tensor]:
        """Return by name what might travel."""
        named: dict[str, Tensor] = dict(self._module.named_parameters(remove_duplicate=False))
        if self._buffers:
            named.update(self._module.named_buffers(remove_duplicate=False))
        return {name: t for name, t in named.items() if _floats(t) and (self._only is None or name in self._only)}

    def _travels(self, t: Tensor) -> bool:
        return self._of == "params" or not isinstance(t, Parameter) or t.requires_grad

    def _rest(self) -> dict[str, Tensor]:
        """Return by name what has no place: whole numbers, and with ``of="grads"`` the parameters."""
        here = [*self._module.named_parameters(), *self._module.named_buffers()]
        values = {name for place in self.places if not isinstance(place, GradPlace) for name in place.names}
        return {name: t for name, t in here if name not in values and t.numel()}


def _floats(t: Tensor) -> bool:
    return torch.nn.parameter.is_lazy(t) or (t.numel() > 0 and (t.is_floating_point() or t.is_complex()))


def _places(found: dict[str, Tensor], of: str) -> list[Place]:
    """Return a place for each tensor; names that stand for the same memory share one."""
    names: dict[Any, list[str]] = {}
    for name, t in found.items():
        gradient = of == "grads" and isinstance(t, Parameter)
        key = id(t) if gradient else (t.device, t.data_ptr(), t.shape, t.stride(), t.dtype)
        names.setdefault((gradient, key), []).append(name)
    users = Counter(found[same[0]].untyped_storage().data_ptr() for same in names.values())
    return [
        (GradPlace if gradient else Place)(same, t, users[t.untyped_storage().data_ptr()] == 1)
        for (gradient, _), same in names.items()
        for t in [found[same[0]]]
    ]


def _distinct(tensors: Iterable[Tensor]) -> list[Tensor]:
    return list({id(t): t for t in tensors}.values())


def _room(place: Place) -> int:
    return -(-place.count // ALIGNED) * ALIGNED


def _copy(t: Tensor, root: int, timeout: float | None) -> None:
    """Give a tensor the values that it has on root, of whatever type. Collective."""
    own = t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    values = world.broadcast(own, root, timeout=timeout)
    if world.rank() != root:
        with torch.no_grad():
            t.copy_(torch.from_numpy(values).view(t.dtype).reshape(t.shape))
