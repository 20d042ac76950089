"""``wire=``: in fewer bits a slow network takes less time, and models learn as well."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG

MALT = Path(sys.executable).with_name("malt")

LEARN = """
import json, time
import malt
import numpy as np

WORDS, ROWS, STEPS = 60_000, 2000, 40
r = malt.rank()
rng = np.random.default_rng(0)
true = rng.normal(size=WORDS)
words = rng.integers(0, WORDS, (2 * ROWS, 50))
labels = np.where(true[words].sum(axis=1) > 0, 1.0, -1.0)

def logistic(wire):
    "Logistic regression of rows of words."
    v = malt.Vector(np.zeros(WORDS, np.float32), wire=wire)
    own, signs = words[r::2][: ROWS // 2], labels[r::2][: ROWS // 2]
    took = []
    for _ in range(STEPS):
        for row, sign in zip(own[:100], signs[:100]):
            push = sign / (1 + np.exp(sign * v.array[row].sum()))
            v.array[row] += np.float32(0.05 * push)
        own, signs = np.roll(own, -100, axis=0), np.roll(signs, -100)
        start = time.perf_counter()
        v.sync()
        took.append(time.perf_counter() - start)
    margins = labels * v.array[words].sum(axis=1)
    return float(np.logaddexp(0, -margins).mean()), float(np.median(took))

centres = rng.normal(size=(10, 300))
classes = rng.integers(0, 10, 2 * ROWS)
points = (centres[classes] + 3 * rng.normal(size=(2 * ROWS, 300))).astype(np.float32)

def network(wire):
    "A network with a hidden layer."
    first = np.random.default_rng(1)
    v = malt.Vector([first.normal(0, 0.05, s).astype(np.float32) for s in ((300, 200), (200, 10))], wire=wire)
    w, u = v.arrays
    took = []
    for step in range(STEPS):
        batch = slice(r + 50 * step, r + 50 * step + 200, 2)
        x, y = points[batch], classes[batch]
        hidden = np.maximum(x @ w, 0)
        scores = hidden @ u
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(y)), y] -= 1
        back = (p @ u.T) * (hidden > 0)
        u -= 0.1 * hidden.T @ p / len(y)
        w -= 0.1 * x.T @ back / len(y)
        start = time.perf_counter()
        v.sync()
        took.append(time.perf_counter() - start)
    scores = np.maximum(points @ w, 0) @ u
    scores -= scores.max(axis=1, keepdims=True)
    right = scores[np.arange(len(classes)), classes]
    return float((np.log(np.exp(scores).sum(axis=1)) - right).mean()), float(np.median(took))

wires = "exact", "bf16", "f16", "int8"
found = {model.__name__: {wire: model(wire) for wire in wires} for model in (logistic, network)}
if r == 0:
    print(json.dumps(found), flush=True)
"""


def test_fewer_bits_are_faster_and_learn_as_well(tmp_path: Path) -> None:
    (tmp_path / "learn.py").write_text(LEARN)
    command = [MALT, "sim", "--hosts", "2", "--rate", "50mbit", "learn.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr
    for model, found in json.loads(done.stdout[done.stdout.index("{") :]).items():
        loss, took = found["exact"]
        assert loss < {"logistic": 0.5, "network": 0.1}[model], "it has learnt"
        for wire in ("bf16", "f16", "int8"):
            other, other_took = found[wire]
            assert other == pytest.approx(loss, rel=1e-3), (model, wire)
            assert other_took < 0.8 * took, (model, wire)
