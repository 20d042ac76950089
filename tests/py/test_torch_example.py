"""The example that learns MNIST: serial, with averaged parameters, and with averaged gradients."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from launching import run

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")

from torch_models import bits  # noqa: E402

import mlp_torch  # noqa: E402
import mlp_torch_gradients  # noqa: E402
import mlp_torch_serial  # noqa: E402
import mnist  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


def accuracy(text: str) -> set[float]:
    return set(map(float, re.findall(r"(0\.\d{4}) of 10000 test digits are right", text)))


@cache
def digits(part: str) -> tuple[np.ndarray, np.ndarray]:
    if not (Path(os.environ.get("MALT_DATA", "")) / "mnist").is_dir():
        pytest.skip("MALT_DATA names no folder with mnist in it")
    return mnist.read(part)


@pytest.mark.parametrize("example", [mlp_torch, mlp_torch_gradients])
def test_g1_alone_it_is_the_serial_program(example: object, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {part: tuple(x[:1001] for x in digits(part)) for part in ("train", "t10k")}
    monkeypatch.setattr(mnist, "read", few.__getitem__)
    models = [module.main(["--passes", "2", "--batch", "20"]) for module in (mlp_torch_serial, example)]
    assert bits(models[0]) == bits(models[1])


@pytest.mark.parametrize("example", ["mlp_torch", "mlp_torch_gradients"])
def test_it_differs_from_the_serial_program_by_five_lines(example: str) -> None:
    command = ["git", "diff", "--no-index", "--numstat", "mlp_torch_serial.py", f"{example}.py"]
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, check=False)
    added, removed, _ = done.stdout.split(maxsplit=2)
    assert 3 < int(added) <= 5
    assert int(removed) <= 1


@pytest.mark.parametrize(
    ("size", "example", "passes"), [(4, "mlp_torch", "2"), (2, "mlp_torch_gradients", "1")], ids=str
)
def test_ranks_learn_as_well_as_one_process(
    size: int, example: str, passes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within half a point, after as many passes over the data."""
    digits("train")
    mlp_torch_serial.main(["--passes", passes])
    (serial,) = accuracy(capsys.readouterr().out)
    assert serial > 0.94
    command = ["-n", str(size), str(EXAMPLES / f"{example}.py"), "--rate", str(0.1 * size), "--passes", passes]
    done = run(*command, env={"OMP_NUM_THREADS": "1"})
    assert done.process.returncode == 0, done.err
    assert done.out.count("digits are right") == size
    (parallel,) = accuracy(done.out)  # the same on every rank
    assert abs(parallel - serial) <= 0.005
