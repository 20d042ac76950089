"""Options: a misspelt one is named together with the nearest."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import malt


def calls() -> dict[str, Callable[[], object]]:
    v = malt.Vector(3)
    return {
        "grahp\nDid you mean graph?": lambda: malt.Vector(3, grahp="all"),
        "evry\nDid you mean every?": lambda: v.sync(evry=1000),
        "ordr\nDid you mean order?": lambda: malt.shard([1, 2], ordr="block"),
        "epoch\nDid you mean epochs?": lambda: malt.deal([1, 2], epoch=2),
        "n_feature\nDid you mean n_features?": lambda: malt.load("x.svm", n_feature=3),
        "time_out\nDid you mean timeout?": lambda: malt.run(max, 2, time_out=3),
        "x\nit is one of fn, n, args, kwargs, timeout, on_death": lambda: malt.run(max, 2, x=1),
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
    with pytest.raises(TypeError, match=rf"^malt: unexpected option {word}\nDid you mean {near}\?$"):
        malt.torch.Vector(torch.nn.Linear(2, 1), **{word: True})


def test_a_misspelt_option_of_sync_is_refused_before_anything_is_counted() -> None:
    v = malt.Vector(3)
    wrong: dict[str, Any] = {"evry": 2}
    with pytest.raises(TypeError, match="every"):
        v.sync(**wrong)
    assert v.clock == 0


@pytest.mark.parametrize("taker", [malt.Vector, malt.Vector.sync, malt.shard, malt.deal, malt.load, malt.run])
def test_help_shows_no_room_for_unknown_options(taker: Callable[..., object]) -> None:
    kinds = {p.kind for p in inspect.signature(taker).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


@pytest.mark.parametrize(
    ("option", "value", "meant"),
    [
        ("consistency", "asp", '"async"'),
        ("consistency", "synchronous", '"bsp"'),
        ("consistency", "stale", '"ssp:2"'),
        ("consistency", "ssp=4", '"ssp:4"'),
        ("graph", "ring-allreduce", '"all"'),
        ("graph", "random=2", '"random:2"'),
        ("fold", "avg", "'mean'"),
        ("fold", "maximum", "'max'"),
        ("sparse", "weights", "'model'"),
        ("wire", "bfloat16", "'bf16'"),
        ("start", "local", "'own'"),
    ],
)
def test_words_of_other_systems_are_looked_up(option: str, value: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s){option}.*{value}.*[Dd]id you mean {meant}\?"):
        malt.Vector(3, **{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("op", ["average", "AVG", "ReduceOp.AVG", np.mean])
def test_what_other_libraries_call_a_mean(op: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"(?s)op=.*\nDid you mean 'mean'"):
        malt.allreduce(3, op)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["topology\nDid you mean graph", "op\nDid you mean fold"])
def test_options_of_other_systems_are_looked_up(option: str) -> None:
    with pytest.raises(TypeError, match=rf"unexpected option {option}\?"):
        malt.Vector(3, **{option.split("\n")[0]: "ring"})  # type: ignore[arg-type]


def test_async_misses_no_rank() -> None:
    with pytest.raises(ValueError, match="uneven='error' with consistency='async'\nasync waits for no rank"):
        malt.Vector(3, uneven="error", consistency="async")


def test_a_number_in_place_of_the_fold() -> None:
    with malt.Vector(3) as v:
        with pytest.raises(TypeError, match=r"(?s)fold=10\n.*\nDid you mean every=10\?"):
            v.sync(10)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"(?s)fold=0\.5\n.*\nDid you mean weight=0\.5\?"):
            v.sync(0.5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"(?s)fold=2\.5\n.*\nDid you mean timeout=2\.5\?"):
            v.gather(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [("a",), 3, b"a"])
@pytest.mark.parametrize("made", [malt.Vector, malt.Segment])
def test_a_name_is_a_string(made: type, name: object) -> None:
    with pytest.raises(TypeError, match=r"name=.*\nexpected a string, such as name='model'"):
        made(3, name=name)
