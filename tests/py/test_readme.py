"""What the README shows is executed here."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """The README's program as a file, far from the checkout."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    path = tmp_path_factory.mktemp("readme") / "train.py"
    path.write_text(blocks[0])
    return path


def execute(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [(int(r), int(n), float(e)) for r, n, e in re.findall(r"rank (\d+) of (\d+): error (\S+)", done.stdout)]


def test_example_runs_as_four_ranks_that_agree(script):
    said = execute(sys.executable, "-m", "malt", "run", "-n", "4", "train.py", cwd=script.parent)
    assert sorted(rank for rank, _, _ in said) == [0, 1, 2, 3]
    assert {size for _, size, _ in said} == {4}
    assert len({error for _, _, error in said}) == 1
    assert said[0][2] < 1e-6


def test_example_alone_is_the_serial_program(script):
    """G1: bit for bit the program that stands in the comments."""
    code = script.read_text() + "\nnp.save('w.npy', w)\n"
    (script.parent / "alone.py").write_text(code)
    assert execute(sys.executable, "alone.py", cwd=script.parent)[0][:2] == (0, 1)

    truth = np.arange(10.0)
    x = np.random.default_rng(0).normal(size=(40_000, 10))
    y = x @ truth
    w = np.zeros(10)
    for a, b in zip(x, y, strict=True):
        w -= 0.01 * (a @ w - b) * a
    assert np.load(script.parent / "w.npy").tobytes() == w.tobytes()


def test_commands_exist():
    """Every `make` target that the documents name is in the Makefile, with help."""
    targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", (ROOT / page).read_text(), re.MULTILINE))
        assert named, page
        assert named <= targets | {"test-py"}


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        assert "://" in target or (ROOT / target).exists(), target
