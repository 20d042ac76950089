"""The place of one tensor in a vector's memory, and how its values get there and back.

A float32 or float64 tensor on the CPU becomes a view of its place, so that nothing
has to be copied. Any other is copied there before an exchange and back after it; so is
one whose memory somebody else relies on: a part of a larger tensor, or memory shared
with other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import StateError, UnsupportedError
from .._guide import lines
from .._need import need
from .._vectors.arrays import Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = need("torch", "malt.torch")


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
        return f"{' = '.join(self.names)}: {kind(self.dtype)} {list(self.shape)}{self._order}"

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
        if not all(map(self._is_at, tensors)):
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
            or t.is_shared()
        ):
            return False
        for t in tensors:
            t.data = view
        return True

    def _check(self, tensors: Sequence[Tensor]) -> None:
        t, name = tensors[0], self.names[0]
        refuse(name, t)
        if t.dtype != self.dtype or t.shape != self.shape:
            raise StateError(
                lines(
                    f"{name} is {kind(t.dtype)} {list(t.shape)} now",
                    f"it was {kind(self.dtype)} {list(self.shape)} when the vector was made",
                    "Convert the model first (model.double()), then make the vector, on every rank.",
                )
            )
        if len({u.data_ptr() for u in tensors}) > 1:
            raise self._untied()

    def _untied(self) -> StateError:
        return StateError(
            lines(
                f"{' and '.join(self.names)} are no longer the same tensor",
                "they were when the vector was made",
                "Tie them again, or make the vector again, on every rank.",
            )
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
                lines(
                    f"the gradient of {self.names[0]} is sparse",
                    do="Make its layer with sparse=False, or exchange the parameters: of='params'.",
                )
            )
        self.view().copy_(gradient)

    def give(self, tensors: Sequence[Tensor]) -> None:
        """Give the parameter the gradient; one that no rank had stays None, as optimizers skip that."""
        t = tensors[0]
        if t.grad is not None:
            t.grad.copy_(self.view())
        elif self.flat.any():
            t.grad = self.view().to(t.device, t.dtype, copy=True)


def kind(dtype: torch.dtype) -> str:
    """Return the name of a dtype."""
    return str(dtype).removeprefix("torch.")


def _dense(t: Tensor) -> bool:
    """Tell whether its elements fill a piece of memory, in whatever order of the dimensions."""
    return t.permute(sorted(range(t.dim()), key=t.stride, reverse=True)).is_contiguous()


def refuse(name: str, t: Tensor) -> None:
    """Raise for a tensor whose values cannot be exchanged."""
    if torch.nn.parameter.is_lazy(t):
        raise ValueError(lines(f"{name} has no shape yet", do="Run one batch through the model, then make the vector."))
    if t.is_meta:
        raise ValueError(
            lines(f"{name} is on the meta device and has no values yet", do="Give it some, then make the vector.")
        )
    if type(t.data) is not torch.Tensor or t.layout != torch.strided or t.is_complex():
        what = f"a {type(t.data).__qualname__}, {t.layout}, {kind(t.dtype)}"
        raise UnsupportedError(lines(f"{name} is {what}", "expected plain dense tensors of real numbers"))
    if any(stride == 0 and n > 1 for stride, n in zip(t.stride(), t.shape, strict=True)):
        raise UnsupportedError(
            lines(
                f"{name} was made by expand: several of its elements share one number in memory",
                do="Give the model a copy, .clone(), or leave float buffers out, buffers=False.",
            )
        )
