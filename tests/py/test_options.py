"""Options: a misspelt one is named together with the nearest."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import malt


def calls() -> dict[str, Callable[[], object]]:
    v = malt.Vector(3)
    return {
        "grahp: did you mean graph?": lambda: malt.Vector(3, grahp="all"),
        "evry: did you mean every?": lambda: v.sync(evry=1000),
        "ordr: did you mean order?": lambda: malt.shard([1, 2], ordr="block"),
        "n_feature: did you mean n_features?": lambda: malt.load("x.svm", n_feature=3),
        "time_out: did you mean timeout?": lambda: malt.run(max, 2, time_out=3),
        "x: fn, n, args, kwargs, timeout are known": lambda: malt.run(max, 2, x=1),
    }


@pytest.mark.parametrize("says", calls())
def test_a_misspelt_option_is_named_with_the_nearest(says: str) -> None:
    with pytest.raises(TypeError) as error:
        calls()[says]()
    assert str(error.value) == f"malt: unexpected option {says}"


@pytest.mark.parametrize("word", ["buffer", "consistancy"])
def test_the_vector_of_a_torch_model_knows_its_own_options_and_those_of_a_vector(word: str) -> None:
    torch = pytest.importorskip("torch")
    near = {"buffer": "buffers", "consistancy": "consistency"}[word]
    with pytest.raises(TypeError, match=rf"^malt: unexpected option {word}: did you mean {near}\?$"):
        malt.torch.Vector(torch.nn.Linear(2, 1), **{word: True})


def test_a_misspelt_option_of_sync_is_refused_before_anything_is_counted() -> None:
    v = malt.Vector(3)
    wrong: dict[str, Any] = {"evry": 2}
    with pytest.raises(TypeError, match="every"):
        v.sync(**wrong)
    assert v.clock == 0


@pytest.mark.parametrize("taker", [malt.Vector, malt.Vector.sync, malt.shard, malt.load, malt.run])
def test_help_shows_no_room_for_unknown_options(taker: Callable[..., object]) -> None:
    kinds = {p.kind for p in inspect.signature(taker).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
