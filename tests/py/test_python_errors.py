"""Errors of the Python side are short lines: what happened; where, and which ranks; what to do."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import malt


def sparse_vector() -> Any:
    return malt.Vector((3, 2), sparse="model")


PROVOCATIONS: list[tuple[Callable[[], Any], str]] = [
    (lambda: malt.Vector([np.ones(2), np.ones(3)], sparse="model"), "Make a vector of each"),
    (lambda: malt.Vector((3, 2), sparse=True), "Write one of the two"),  # type: ignore[call-overload]
    (lambda: malt.Vector(3).scatter(rows=[1]), "Make the vector with sparse="),
    (lambda: sparse_vector().scatter(rows=np.ones(1)), "Write whole numbers"),
    (lambda: sparse_vector().scatter(rows=sparse.csr_matrix((3, 4))), "Transpose it"),
    (lambda: malt.Vector([np.ones(2, np.float32), np.ones(3)]).flat, "Use .arrays"),
    (lambda: copy.copy(malt.Vector(3)), "Copy or save v.array"),
    (lambda: malt.broadcast(object()), "Convert it"),
    (lambda: malt.broadcast(np.array([None])), "Convert it with astype"),
    (lambda: malt.broadcast(np.ma.masked_array([1.0], [True])), "Send .filled"),
    (lambda: malt.init(rank=0), "Call malt.init before all else"),
    (lambda: malt.shard({1, 2}), "Pass sorted"),
    (lambda: malt.shard("text"), "pass its lines or items as a list"),
    (lambda: malt.run(lambda: None, 1, args=(object,), timeout=-1), "malt: "),
]


@pytest.mark.parametrize(("provoke", "advice"), PROVOCATIONS)
def test_errors_are_short_lines_that_end_with_what_to_do(provoke: Callable[[], Any], advice: str) -> None:
    malt.init()
    with pytest.raises(Exception, match="malt: ") as raised:
        provoke()
    message = str(raised.value).split("\n")
    assert message[0].startswith("malt: ")
    assert len(message) <= 4
    assert max(map(len, message)) <= 120
    assert advice in message[-1]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("malt.allreduce(3, average=True)", 'did you mean op="mean"?'),
        ("malt.Vector(3, average=True)", 'did you mean fold="mean"?'),
        ("malt.Vector(3, consistency=2)", "did you mean 'ssp:2'?"),
        ("malt.allreduce(3, 'Adasum')", "MALT has no Adasum"),
    ],
)
def test_the_words_of_other_libraries_get_what_to_write(call: str, hint: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        eval(call, {"malt": malt})
    assert hint in str(raised.value)
    assert "'sum'?" not in str(raised.value)


def test_a_forked_child_is_told_in_three_lines() -> None:
    program = (
        "import os, malt\nmalt.init()\n"
        "if os.fork() == 0:\n try: malt.barrier()\n except malt.StateError as e: print(e, flush=True)\n os._exit(0)\n"
        "os.wait()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    message = done.stdout.splitlines()
    assert [line.split()[0] for line in message] == ["malt:", "the", "Start"]
    assert max(map(len, message)) <= 120
