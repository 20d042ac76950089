"""That the linter of English gets to see every text, wherever it stands in its source."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "_ext"
SAID = "Whoever waits for the own host"

CELL = {"cell_type": "code", "source": [f'%time x\nprint("{SAID}")']}
PLACES = {
    "docstring": ("python/malt/a.py", f'"""A vector.\n\n    {SAID}\n"""', False),
    "broken docstring": (
        "python/malt/a.pyi",
        'x: int\n"""A vector.\n\n    Whoever waits for the own\n    host.\n"""',
        False,
    ),
    "message": ("python/malt/_cli/a.py", f'raise ValueError(f"{{x}}: {SAID}")', True),
    "example": ("examples/a.py", f'"""{SAID}"""', False),
    "guide": ("docs/guide/a.py", f'print("{SAID}")', True),
    "outside": ("python/a.py", f'"""{SAID}"""', False),
    "prose": ("examples/a.ipynb", json.dumps({"cells": [{"cell_type": "markdown", "source": [SAID]}]}), False),
    "cell": ("examples/a.ipynb", json.dumps({"cells": [CELL]}), True),
    "comment of a cell": (
        "examples/a.ipynb",
        json.dumps({"cells": [{"cell_type": "code", "source": [f"%time x\nx = 1  # {SAID}"]}]}),
        True,
    ),
    "go": ("libmalt/a.go", f'package a\n\nvar c = \'"\' // "\nvar x = f(\n\t"{SAID}",\n)', True),
    "go, in parts": ("capi/a.go", 'var x = "Whoever waits " +\n\t"for the own host"', True),
    "go, raw": ("rdma/b/a.go", f"var x = `{SAID}`", True),
    "package": ("rdma/doc.go", f"// Package rdma\n// {SAID}\npackage rdma", False),
    "c": ("capi/a.c", '/* " */ char *x =\n\t"Whoever waits "\n\t"for the own host";', True),
    "c, after a line": ("capi/a.c", f'char *x = "It is closed\\n{SAID}";', True),
    "example in c": ("examples/c/a.c", f"/* A vector.\n * {SAID}\n */", False),
    "header": ("capi/a.h", f"/* A vector.\n * {SAID}\n */", False),
    "make": ("Makefile", f"all: ## {SAID}", True),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    spec = importlib.util.spec_from_file_location("english", FOLDER / "english.py")
    assert spec is not None
    assert spec.loader is not None
    english = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(english)
    name, source, message = PLACES[place]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    monkeypatch.setattr(english, "ROOT", tmp_path)
    english.write(tmp_path / "out")
    prose = ".md" if name.endswith(".ipynb") else ".txt"
    text = (tmp_path / "out" / f"{name}{'.messages.txt' if message else prose}").read_text()
    assert re.search(rf"(?<!\w){SAID}", text)
