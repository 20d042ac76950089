"""The examples that learn MNIST with PyTorch, in jobs: with averaged parameters, and with averaged gradients."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from datasets import needed
from launching import run

pytest.importorskip("torch", reason="PyTorch is not installed: make torch")

EXAMPLES = Path(__file__).parents[2] / "examples"


def accuracies(size: int, *arguments: str) -> list[float]:
    """Return the accuracies that the ranks of an example print."""
    done = run("-n", str(size), *arguments, env={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLES)})
    assert done.process.returncode == 0, done.err
    return [float(word) for word in re.findall(r"(0\.\d{4}) of 10000 test digits are right", done.out)]


@pytest.mark.parametrize(
    ("size", "example", "rate", "passes"),
    [(4, "mlp_torch", 0.1, "2"), (2, "mlp_torch_gradients", 0.01, "1")],
    ids=["parameters", "gradients"],
)
def test_ranks_learn_as_well_as_one_process(size: int, example: str, rate: float, passes: str) -> None:
    """Within half a point after as many passes, with the learning rate times the number of ranks."""
    needed("mnist")
    (serial,) = accuracies(1, "-m", f"serial.{example}", "--passes", passes)
    assert serial > 0.93
    parallel = accuracies(size, str(EXAMPLES / f"{example}.py"), "--rate", str(rate * size), "--passes", passes)
    assert len(parallel) == size
    assert len(set(parallel)) == 1, "the ranks have different models"
    assert abs(parallel[0] - serial) <= 0.005
