"""``malt plan`` against simulated hosts: what crosses the cables, and how fast a step can be."""

from __future__ import annotations

import random

import pytest
from net.planned import measured

from malt._cli import forecast

FIGURES = forecast.Figures(
    [
        {"kind": "size", "bytes": 4096, "copy": 1e-6, "sync": 1e-5, "copied": 1e-5},
        {"kind": "network", "seen": 1e-4, "update": 2e-5, "byte": 1e-9},
    ]
)
"""Of some machine: here only cables count."""

WAYS = [("all", "bsp"), ("halton", "notify-ack"), ("all", "async")]


@pytest.mark.parametrize("size", [12_000, random.randrange(120_000, 180_000, 4)])
def test_predictions_hold(size: int) -> None:
    """Whole arrays, or shares: the bytes on the cables are those predicted, and no step takes less time.

    It may take more, as the load of the machine has it: `planned.py` looks at that.
    """
    job = forecast.Job(size, 0.01, [1, 1, 1], 20e6)
    real = measured(job, WAYS, 3)
    for (graph, consistency), (seconds, sent) in zip(WAYS, real, strict=True):
        want = forecast.forecast(graph, consistency, job, FIGURES)
        assert want.seconds <= 1.25 * seconds, (graph, consistency)
        if consistency != "async":  # which may leave out updates, and count some of earlier steps
            assert sent / forecast.FRAME == pytest.approx(want.sent, rel=0.15), (graph, consistency)
