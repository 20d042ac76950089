"""Arrays of other libraries, PyTorch's and JAX's among them: as bytes or numpy arrays, and back to what they were.

None of the libraries is imported before one of its arrays is met: here, or in a message
of another rank that has it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._guide import lines
from .._need import need

LIKE_MINE = "torch", "jax"


class Packed(NamedTuple):
    """An array as it travels: ``what`` is "library:dtype:device:flags"."""

    what: str
    shape: tuple[int, ...]
    data: np.ndarray[Any, Any]  # bytes


def known(value: object) -> bool:
    """Tell whether this is an array, though not numpy's own.

    Frames and series are not: their labels would be lost.
    """
    if _library(value) is not None:
        return True
    converts = hasattr(value, "__array__") or hasattr(value, "__dlpack__")
    return converts and isinstance(getattr(value, "dtype", None), np.dtype) and not hasattr(value, "index")


def packed(value: Any, where: str) -> Packed | np.ndarray[Any, Any]:
    """Return what travels of an array; of a library that is none of `LIKE_MINE`, a numpy array."""
    library = _library(value)
    if library == "torch":
        t = _dense(value, where)
        flags = "grad" if value.requires_grad and value.is_leaf else ""
        what = f"torch:{str(t.dtype).removeprefix('torch.')}:{value.device.type}:{flags}"
        raw = t.contiguous().reshape(-1)
        torch = sys.modules["torch"]
        return Packed(what, tuple(t.shape), raw.view(torch.uint8).numpy() if t.numel() else np.empty(0, np.uint8))
    array = _converted(value, where)
    if library == "jax":
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return Packed(f"jax:{array.dtype.name}::", array.shape, raw)
    return array


def unpacked(what: str, shape: tuple[int, ...], data: memoryview) -> Any:
    """Return the array that was `packed`; ValueError where the text, or the length, is none of that."""
    library, dtype, device, flags = what.split(":")
    if library == "torch":
        torch = need("torch", "a tensor of another rank")
        kind = getattr(torch, dtype, None)
        if not isinstance(kind, torch.dtype):
            raise ValueError(f"tensor of {dtype!r}")
        t = torch.empty(shape, dtype=kind)
        if t.numel() * t.element_size() != len(data):
            raise ValueError(f"tensor of {shape} {dtype} in {len(data)} bytes")
        if t.numel():
            t.reshape(-1).view(torch.uint8).numpy()[:] = np.frombuffer(data, np.uint8)
        if device == "cuda" and torch.cuda.is_available():
            t = t.cuda()  # the one that this rank uses, whichever the sender's was
        elif device == "mps" and torch.backends.mps.is_available():
            t = t.to("mps")
        return t.requires_grad_() if flags == "grad" else t
    if library == "jax":
        numpy = need("jax.numpy", "an array of another rank", package="jax")
        kind = np.dtype(getattr(numpy, dtype))
        if kind.hasobject or kind.itemsize * math.prod(shape) != len(data):
            raise ValueError(f"array of {shape} {dtype} in {len(data)} bytes")
        return numpy.asarray(np.frombuffer(data, kind).reshape(shape))
    raise ValueError(f"array of {library!r}")


def as_numpy(value: Any, where: str) -> tuple[np.ndarray[Any, Any], Callable[[np.ndarray[Any, Any]], Any]]:
    """Return an array to reckon with, and what makes an array of ``value``'s library, on its device, of the result.

    Floats that numpy, or the library, adds up badly go as float32, and come back as they were.
    """
    library = _library(value)
    if library == "torch":
        torch = sys.modules["torch"]
        t = _dense(value, where)
        small = t.is_floating_point() and t.element_size() < 4
        array: np.ndarray[Any, Any] = (t.float() if small else t).numpy()

        def back(result: np.ndarray[Any, Any]) -> Any:
            return torch.from_numpy(np.asarray(result)).to(value.device, value.dtype if small else None)

        return array, back
    array = _converted(value, where)
    if library != "jax":
        return array, np.asarray
    numpy = sys.modules["jax"].numpy
    small = numpy.issubdtype(value.dtype, numpy.floating) and value.dtype.itemsize < 4
    array = array.astype(np.float32) if small else array

    def back_to_jax(result: np.ndarray[Any, Any]) -> Any:
        made = numpy.asarray(result, value.dtype if small else None)
        if result.dtype.kind in "iu" and not np.array_equal(made, result):  # JAX cuts 64 bits down to 32
            raise OverflowError(
                lines(
                    f"{where}: the result does not fit into JAX's {made.dtype}",
                    f"it has values from {result.min()} to {result.max()}",
                    'Write jax.config.update("jax_enable_x64", True), or combine floats.',
                )
            )
        return made

    return array, back_to_jax


def _converted(value: Any, where: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
    except Exception as e:  # whatever the library raises: of an array on a device, of one that was given away
        if "Tracer" in type(value).__name__:
            why = "a value of a function that JAX is tracing, and has no numbers yet", "Call malt outside of jax.jit."
        else:
            why = f"a {_name(value)} that does not convert to numpy", str(e)
        raise TypeError(lines(f"{where} is {why[0]}", why[1])) from e


def _library(value: object) -> str | None:
    for name, kind in (("torch", "Tensor"), ("jax", "Array")):
        library = sys.modules.get(name)
        if library is not None and isinstance(value, getattr(library, kind, ())):
            return name
    return None


def _dense(t: Any, where: str) -> Any:
    """Return the tensor on the CPU, out of autograd; raise where its values are not plain numbers."""
    torch = sys.modules["torch"]
    if t.layout != torch.strided or t.is_quantized or t.is_meta:
        what = "quantized" if t.is_quantized else "on the meta device" if t.is_meta else str(t.layout)
        raise TypeError(
            lines(f"{where} is a tensor, {what}", "only dense tensors travel between ranks", "Send .to_dense().")
        )
    t = t.detach().cpu()
    return t.resolve_conj().resolve_neg() if hasattr(t, "resolve_neg") else t


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
