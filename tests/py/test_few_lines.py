"""What MALT changes in real loops: few lines and, alone, not one bit of the result.

Every program of ``examples/serial`` has a twin with MALT in ``examples``. The ``main`` of
both takes arguments and returns the model: an array, or several.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from datasets import needed

from serial import __main__ as serial

PAIRS = {parallel.stem: (original, parallel) for original, parallel in serial.pairs()}

QUICK: dict[str, list[str]] = {
    "logistic": ["--iterations", "5"],
    "svm": ["--k", "1", "--passes", "1"],
    "gradients": ["--k", "1", "--passes", "1"],
    "mf": ["--passes", "1"],
    "sgd_sklearn": ["--passes", "1"],
    "kmeans_sklearn": ["--rows", "10000"],
    "mlp_torch": ["--batch", "500", "--passes", "1"],
    "mlp_sklearn": ["--batch", "3200", "--passes", "1"],
    "mlp_torch_gradients": ["--batch", "500", "--passes", "1"],
}
"""Arguments with which a program takes about a second."""

NEEDS = {"torch": "torch", "sklearn": "sklearn"}
"""What a program imports that is not installed everywhere."""

DATA = {"mnist": "mnist", "movielens": "movielens-small3"}
"""What a program imports that reads data from outside the repository."""


def test_there_are_pairs() -> None:
    assert "svm" in PAIRS
    for original, parallel in PAIRS.values():
        assert parallel.exists(), f"{original} has no twin {parallel}"


@pytest.mark.parametrize("name", PAIRS)
def test_few_lines_change(name: str) -> None:
    """At most nine; five where an adapter binds the model."""
    added, _ = serial.counted(*PAIRS[name])
    adapter = re.search(r"\bmalt\.(torch|sklearn)\.", PAIRS[name][1].read_text())
    assert 0 < added <= (5 if adapter else 9)


@pytest.mark.parametrize("name", PAIRS)
def test_serial_program_does_without_malt(name: str) -> None:
    assert "malt" not in PAIRS[name][0].read_text()


@pytest.mark.parametrize("name", PAIRS)
def test_g1_alone_the_model_is_the_serial_one(name: str) -> None:
    for word, package in NEEDS.items():
        if re.search(rf"\bimport {word}|from {word}", PAIRS[name][0].read_text()):
            pytest.importorskip(package)
    for word, folder in DATA.items():
        if f"import {word}" in PAIRS[name][0].read_text():
            needed(folder)
    want, got = (trained(importlib.import_module(module), name) for module in (f"serial.{name}", name))
    assert len(want) == len(got) > 0
    for a, b in zip(want, got, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: more only wait for each other where the cores are busy."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    try:
        from threadpoolctl import threadpool_limits  # comes with scikit-learn
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield


def trained(module: Any, name: str) -> list[np.ndarray[Any, Any]]:
    with one_thread():
        model = module.main(QUICK.get(name, []))
    return [np.array(part) for part in (model if isinstance(model, list | tuple) else [model])]
