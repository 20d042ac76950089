"""The examples in the docstrings are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import malt

MODULES = [
    "malt",
    *(m.name for m in pkgutil.walk_packages(malt.__path__, "malt.") if not m.name.endswith(("__main__", "_malt"))),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"malt": malt, "np": np}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert sum(examples) > 20
