"""The examples in the docstrings are run; the reference is whole; links are looked up.

What the pages show is run by test_guide.py.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import malt

DOCS = Path(__file__).parents[2] / "docs"

MODULES = [
    "malt",
    *(m.name for m in pkgutil.walk_packages(malt.__path__, "malt.") if not m.name.endswith(("__main__", "_malt"))),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    if "torch" in name:
        pytest.importorskip("torch", reason="PyTorch is not installed: make torch")
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"malt": malt, "np": np}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert sum(examples) > 20


def test_reference_has_every_name() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto(?:class|function|exception):: (\w+)", pages, re.MULTILINE))
    assert documented == set(malt.__all__)


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    return importlib.import_module("links")


def test_links_that_lead_nowhere_are_found(links, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a> <a href="https://elsewhere.invalid/">y</a><p id="p">')
    (tmp_path / "b.html").write_text('<a href="a.html">x</a> <a href="#here">y</a><p id="here">')
    assert links.broken(tmp_path) == []
    (tmp_path / "b.html").write_text('<a href="a.html#q">x</a> <a href="c.html">y</a>')
    assert [line.split(": ")[1] for line in links.broken(tmp_path)] == [
        "b.html#here has no such anchor",
        "a.html#q has no such anchor",
        "c.html is no file",
    ]
