"""The examples in the docstrings are run; the reference is whole; links are looked up.

What the pages show is run by test_guide.py.
"""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import malt
from malt._cli import top

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
    everywhere = [importlib.import_module(name) for name in MODULES if "torch" not in name]
    examples = [len(test.examples) for module in everywhere for test in finder.find(module)]
    assert sum(examples) > 20


@pytest.mark.parametrize("name", ["slow", "hangs"])
def test_pictures_of_malt_top_have_its_columns_and_sentences(name: str) -> None:
    """After a change ``python docs/figures/screens.py`` makes them again."""
    text = "".join(ElementTree.parse(DOCS / "guide" / f"{name}.svg").getroot().itertext()).replace("\u00a0", " ")
    head, *rows = text[text.index("rank   ") :].strip().splitlines()
    assert tuple(head.split()) == top.COLUMNS
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "3"]
    assert re.search(r"ranks 0, 1 and 3 (wait \d+% of the time|have waited \d\.\d s) for rank 2\b", text)


def documented(module: str) -> set[str]:
    """Return the names of a module that the pages of the reference have."""
    text = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    parts = re.split(r"^\.\. currentmodule:: (\S+)$", text, flags=re.MULTILINE)
    directive = re.compile(r"^\.\. auto(?:class|data|function|exception):: (\w+)", re.MULTILINE)
    return {
        name
        for at, part in zip(parts[1::2], parts[2::2], strict=True)
        if at == module
        for name in directive.findall(part)
    }


def test_reference_has_every_name() -> None:
    assert documented("malt") == set(malt.__all__), "docs/api lists what is documented"


@pytest.mark.parametrize("name", [name for name, home in malt._where().items() if home == "."])
def test_reference_has_every_name_of_an_adapter(name: str) -> None:
    pytest.importorskip(name)
    module = importlib.import_module(f"malt.{name}")
    assert documented(f"malt.{name}") == set(module.__all__), "docs/api lists what is documented"


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
        "c.html is not a file",
    ]


def test_figures_of_the_slow_rank_are_those_of_the_notebook() -> None:
    notebook = json.loads((DOCS.parent / "examples/notebooks/03_consistency.ipynb").read_text())
    printed = "".join("".join(o.get("text", "")) for cell in notebook["cells"] for o in cell.get("outputs", []))
    found = re.findall(r"^(\S+) +[\d.]+ s +([\d.]+) s +([\d.]+)$", printed, flags=re.MULTILINE)
    done = {mode: (seconds, f"{float(loss):.3f}") for mode, seconds, loss in found}
    row = next(line for line in (DOCS / "guide/choosing.md").read_text().splitlines() if "five times slower" in line)
    assert [*done] == ["bsp", "ssp:2", "async", "notify-ack"]
    assert f"finish in {done['async'][0]} s, in `bsp` in {done['bsp'][0]} s" in row
    assert f"loss {done['async'][1]}, in `bsp` {done['bsp'][1]}" in row
