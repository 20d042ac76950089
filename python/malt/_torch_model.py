"""Where the tensors of a PyTorch model have their places in a vector, and how they get there and back.

A `Place` is a piece of the vector's memory that belongs to one tensor. A float32 or
float64 tensor on the CPU becomes a view of its place, so that nothing has to be
copied. Any other is copied there before an exchange and back after it; so is one
whose memory somebody else relies on: a part of a larger tensor, or memory
shared with other processes.

What a name stands for is looked up at every exchange, because much of PyTorch
replaces a parameter, or the memory of one, behind the back of who refers to it:
``p.data = …``, ``model.double()``, ``load_state_dict(assign=True)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _world
from ._arrays import Array
from ._errors import MismatchError, StateError, UnsupportedError
from ._need import need

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module, Parameter
else:
    torch = need("torch", "malt.torch")
    Parameter = torch.nn.Parameter

__all__ = ["Model"]

ALIGNED = 16  # elements: a cache line, as PyTorch aligns tensors; what kernels do, to the last bit, may depend on it


class Place:
    """A tensor's place in the vector; for one whose values travel.

    Parameters
    ----------
    names : list of str
        What the model calls it. Tied weights have several names.
    tensor : Tensor
        Its shape, dtype and, if it is dense, its memory layout are those of the place.
    alone : bool
        Whether no other tensor of the model uses its memory.
    """

    flat: Array  # the piece of the vector's memory, of one dimension

    def __init__(self, names: list[str], tensor: Tensor, alone: bool) -> None:
        self.names, self.alone = names, alone
        self.shape, self.dtype, self.count = tensor.shape, tensor.dtype, tensor.numel()
        like = tensor if _dense(tensor) else torch.empty(tensor.shape, device="meta")
        self.stride = like.stride()
        self._order = "" if like.is_contiguous() else f" with strides {list(self.stride)}"

    def __str__(self) -> str:
        """Say what all ranks have to agree on."""
        return f"{' = '.join(self.names)}: {_kind(self.dtype)} {list(self.shape)}{self._order}"

    @property
    def exchanged_as(self) -> type[np.floating[Any]]:
        return np.float64 if self.dtype == torch.float64 else np.float32

    def put(self, flat: Array) -> None:
        """Set where the place is."""
        self.flat = flat
        self._address = flat.__array_interface__["data"][0]

    def view(self) -> Tensor:
        """Return the place as a tensor, new at each call: PyTorch can move the memory of one that it was given."""
        return torch.from_numpy(self.flat).as_strided(self.shape, self.stride)

    def take(self, tensors: Sequence[Tensor]) -> None:
        """Bring the tensor's values into its place, if they are not there."""
        if not self._is_at(tensors[0]):
            self._check(tensors)
            self.view().copy_(tensors[0])
            self._bind(tensors)

    def give(self, tensors: Sequence[Tensor]) -> None:
        """Give the tensor the values in its place."""
        if self._is_at(tensors[0]):
            # A backward through what was computed with the values before is now an error.
            torch.autograd.graph.increment_version(tensors)
        elif not self._bind(tensors):
            with torch.inference_mode(tensors[0].is_inference()), torch.no_grad():
                tensors[0].copy_(self.view())

    def _is_at(self, t: Tensor) -> bool:
        return (
            t.data_ptr() == self._address
            and t.dtype == self.dtype
            and t.shape == self.shape
            and t.stride() == self.stride
        )

    def _bind(self, tensors: Sequence[Tensor]) -> bool:
        """Make the tensor a view of its place, if nobody can be relying on the memory that it has."""
        t = tensors[0]
        view = self.view()
        if (
            not self.alone
            or t.device.type != "cpu"
            or t.dtype != view.dtype
            or t.stride() != self.stride
            or t.untyped_storage().nbytes() != view.nbytes
            or t.is_inference()
            or t.is_shared()  # type: ignore[no-untyped-call]
        ):
            return False
        for t in tensors:
            t.data = view
        return True

    def _check(self, tensors: Sequence[Tensor]) -> None:
        t, name = tensors[0], self.names[0]
        _refuse(name, t)
        if t.dtype != self.dtype or t.shape != self.shape:
            raise StateError(
                f"malt: {name} was {_kind(self.dtype)} {list(self.shape)} when the vector was made, and is "
                f"{_kind(t.dtype)} {list(t.shape)} now: convert the model first, as with model.double(), then make "
                "the vector, on every rank"
            )
        if len({u.data_ptr() for u in tensors}) > 1:
            raise self._untied()

    def _untied(self) -> StateError:
        return StateError(
            f"malt: {' and '.join(self.names)} were one tensor when the vector was made, and no longer are: tie them "
            "again, or make the vector anew, on every rank"
        )


class GradPlace(Place):
    """The place of a parameter's gradient, which is copied there and back.

    It could not stay a view: ``zero_grad()`` drops the gradient.
    """

    def take(self, tensors: Sequence[Tensor]) -> None:
        """Bring the gradient into its place; a parameter without one counts as zero."""
        if len(tensors) > 1:
            raise self._untied()
        self._check(tensors)
        gradient = tensors[0].grad
        if gradient is None:
            self.flat.fill(0)
            return
        if gradient.layout != torch.strided:
            raise UnsupportedError(
                f"malt: the gradient of {self.names[0]} is sparse: make its layer with sparse=False, or exchange the "
                "parameters, of='params'"
            )
        self.view().copy_(gradient)

    def give(self, tensors: Sequence[Tensor]) -> None:
        """Give the parameter the gradient; one that no rank had stays None, as optimizers skip that."""
        t = tensors[0]
        if t.grad is not None:
            t.grad.copy_(self.view())
        elif self.flat.any():
            t.grad = self.view().to(t.device, t.dtype, copy=True)


class Model:
    """The tensors of a model, and the places of those that travel.

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
                f"malt: model is of type {type(module).__qualname__}: a torch.nn.Module is expected; for arrays there "
                "is malt.Vector"
            )
        self._module, self._of, self._buffers = module, of, buffers
        found = {name: t for name, t in self._candidates().items() if self._travels(t)}
        if not found:
            what = "float parameters" if of == "params" else "parameters that require a gradient"
            raise ValueError(f"malt: the {type(module).__qualname__} has no {what}, so there is nothing to exchange")
        for name, t in found.items():
            _refuse(name, t)
        self.places = sorted(_places(found, of), key=lambda place: np.dtype(place.exchanged_as).itemsize)
        self._place_of = {name: place for place in self.places for name in place.names}
        self.has_buffers = any(not isinstance(t, Parameter) for t in found.values())

    def first_values(self) -> list[Array]:
        """Lay the places out in arrays of their own, one for each dtype, with the present values."""
        arrays = [
            np.zeros(sum(map(_room, places)), dtype)
            for dtype, places in groupby(self.places, lambda place: place.exchanged_as)
        ]
        self.put(arrays)
        self.take()
        return arrays

    def put(self, arrays: Iterable[Array]) -> None:
        """Set where the places are: in arrays of the shape of `first_values`."""
        same = groupby(self.places, lambda place: place.exchanged_as)
        for (_, places), array in zip(same, arrays, strict=True):
            start = 0
            for place in places:
                place.put(array[start : start + place.count])
                start += _room(place)

    def take(self) -> None:
        """Bring all that travels into its place, and see to it that the model still is what it was."""
        found = self._candidates()
        new = [name for name, t in found.items() if name not in self._place_of and self._travels(t)]
        gone = [name for name in self._place_of if name not in found]
        if new or gone:
            words = [f"{what}: {', '.join(names)}" for what, names in (("new", new), ("gone", gone)) if names]
            raise StateError(
                f"malt: the model is not what it was when the vector was made: {'; '.join(words)}: make the vector "
                "after such changes (also after what was frozen is to be trained), on every rank"
            )
        self._now = [(place, _distinct(found[name] for name in place.names)) for place in self.places]
        with torch.no_grad():
            for place, tensors in self._now:
                place.take(tensors)

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
            Whether tensors that do not travel are to start as they are on rank 0.
        """
        rest = self._rest() if same else {}
        own = [*map(str, self.places), *(f"{name}: {_kind(t.dtype)} {list(t.shape)}" for name, t in rest.items())]
        first = None
        for rank, text in enumerate(_world.allgather("\n".join(own))):
            lines = text.split("\n")
            first = first or lines
            if lines != first:
                a, b = next(
                    (a, b) for a, b in zip([*first, "nothing more"], [*lines, "nothing more"], strict=False) if a != b
                )
                raise MismatchError(
                    f"malt: the ranks have built different models: rank 0 has {a}, rank {rank} has {b}: build the same "
                    "one on every rank"
                )
        if _world.size() > 1:
            for t in rest.values():
                _copy_of_first(t)

    def _candidates(self) -> dict[str, Tensor]:
        """Return by name what might travel."""
        named: dict[str, Tensor] = dict(self._module.named_parameters(remove_duplicate=False))
        if self._buffers:
            named.update(self._module.named_buffers(remove_duplicate=False))
        return {name: t for name, t in named.items() if _floats(t)}

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


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dense(t: Tensor) -> bool:
    """Tell whether its elements fill a piece of memory, in whatever order of the dimensions."""
    return t.permute(sorted(range(t.dim()), key=t.stride, reverse=True)).is_contiguous()


def _refuse(name: str, t: Tensor) -> None:
    """Raise for a tensor whose values cannot be exchanged."""
    if torch.nn.parameter.is_lazy(t):
        raise ValueError(f"malt: {name} has no shape yet: run one batch through the model, then make the vector")
    if t.is_meta:
        raise ValueError(
            f"malt: {name} is on the meta device and has no values yet: give it some, then make the vector"
        )
    if type(t.data) is not torch.Tensor or t.layout != torch.strided or t.is_complex():
        what = f"a {type(t.data).__qualname__}, {t.layout}, {_kind(t.dtype)}"
        raise UnsupportedError(f"malt: {name} is {what}: plain dense tensors of real numbers are expected")


def _copy_of_first(t: Tensor) -> None:
    """Give a tensor the values that it has on rank 0, of whatever type. Collective."""
    own = t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    first = _world.broadcast(own)
    if _world.rank() != 0:
        with torch.no_grad():
            t.copy_(torch.from_numpy(first).view(t.dtype).reshape(t.shape))
