"""Errors of the Python side are short lines: what happened; where, and which ranks; what to do."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
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
    (lambda: malt.init(rank=0), "Call malt.init before any other"),
    (lambda: malt.shard({1, 2}), "Pass sorted"),
    (lambda: malt.shard("text"), "Pass the lines or items of a text as a list"),
    (lambda: malt.run(lambda: None, 1, args=(object,), timeout=-1), "expected 0 or more seconds"),
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
        ("malt.allreduce(3, average=True)", 'Did you mean op="mean"?'),
        ("malt.Vector(3, average=True)", 'Did you mean fold="mean"?'),
        ("malt.Vector(3, consistency=2)", "Did you mean 'ssp:2'?"),
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


def said(call: Callable[[], Any]) -> str:
    with pytest.raises((ValueError, TypeError, malt.Error)) as raised:
        call()
    return str(raised.value)


def test_a_vector_without_a_name_is_called_as_the_program_calls_it() -> None:
    weights = malt.Vector(3)

    class Model:
        def __init__(self) -> None:
            self.v = malt.Vector(3)

        def train(self) -> None:
            self.v.gather()

    assert said(weights.gather).startswith("malt: weights.gather: ")  # the library's sentence
    assert said(lambda: setattr(weights, "array", [1])).startswith("malt: the array of weights has shape")
    assert said(Model().train).startswith("malt: self.v.gather: ")


def test_a_copied_vector_is_called_as_the_program_calls_it() -> None:
    model = malt.Vector(3)
    assert said(lambda: copy.copy(model)).startswith("malt: model cannot be copied")


@pytest.mark.parametrize(
    ("program", "module", "name"),
    [
        ("lib/python3/mine", "lib/python3/mine/helpers", "given"),
        ("mine", "elsewhere/site-packages", "weights"),
        ("mine", "elsewhere/dist-packages/package", "weights"),
    ],
)
def test_a_vector_is_called_as_the_program_calls_it_and_not_a_package(
    program: str, module: str, name: str, tmp_path: Path
) -> None:
    for folder in (tmp_path / program, tmp_path / module):
        folder.mkdir(parents=True)
    (tmp_path / module / "helping.py").write_text("def call(given):\n    given.gather()\n")
    script = tmp_path / program / "train.py"
    script.write_text(
        "import malt, helping\nweights = malt.Vector(3)\n"
        "try: helping.call(weights)\nexcept malt.Error as error: print(error)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path / module)}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"malt: {name}.gather: ")


def test_to_find_that_name_takes_few_calls() -> None:
    """A guard on a count: a loop may wait with short timeouts, and each error names its vector."""
    called: list[str] = []
    mine = malt.Vector(3)
    for _ in range(2):  # what is imported for the first is there
        called.clear()
        sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
        try:
            with pytest.raises(malt.StateError, match=r"mine\.gather"):
                mine.gather()
        finally:
            sys.setprofile(None)
    looked = called.count("ours")  # once for each frame up to the test
    assert looked > 0
    assert len(called) - looked < 60, called


def test_a_vector_without_any_name_is_called_by_its_number() -> None:
    assert re.match(r"malt: vector-\d+\.gather: ", said(lambda: malt.Vector(3).gather()))
    assert said(lambda: malt.Vector(3, name="model").gather()).startswith("malt: model.gather: ")
