"""What a type checker finds in programs that use the installed package, and that its lists are the library's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import malt
from malt import _lib

PROGRAMS = Path(__file__).parent / "typing_checks"
CONFIG = "[mypy]\nstrict = True\n[mypy-torch.*]\nfollow_imports = skip\n"


def test_mypy_finds_each_mistake_and_accepts_what_is_right(tmp_path: Path) -> None:
    """In an empty folder: what is checked against is the wheel that is installed."""
    (tmp_path / "mypy.ini").write_text(CONFIG)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, sorted(PROGRAMS.glob("*.py")))]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.stderr == ""
    found = {
        (Path(path).name, int(line), code)
        for path, line, code in re.findall(r"^(.+?):(\d+): error: .*  \[([\w-]+)\]$", said.stdout, re.MULTILINE)
    }
    lines = enumerate((PROGRAMS / "wrong.py").read_text().splitlines(), 1)
    marked = {("wrong.py", n, code[1]) for n, line in lines if (code := re.search(r"  # ([\w-]+)$", line))}
    assert len(marked) > 30
    assert sorted(found ^ marked) == []


def families(words: object) -> set[str]:
    return {word.partition(":")[0] for word in get_args(words)}


def test_the_names_are_those_of_the_library() -> None:
    library = {option: {name.partition(":")[0] for name in names} for option, names in _names().items()}
    assert library == {
        "graph": families(malt.typing.GraphName) | {"lists"},  # in Python these are lists
        "consistency": families(malt.typing.Consistency),
        "fold": families(malt.typing.FoldName),
        "uneven": families(malt.typing.Uneven),
        "start": families(malt.typing.Start),
        "sparse": families(malt.typing.Sparse) | {"false"},
        "wire": families(malt.typing.Wire),
        "filter": {"dvf", "dvf-l2", "top"},  # in Python any string: each has a number
        "allow_disconnected": {"false", "true"},  # in Python a bool
        "transport": families(malt.typing.Transport) - {"auto"},
    }
    assert families(malt.typing.Op) < families(malt.typing.FoldName)


def _names() -> dict[str, list[str]]:
    names: dict[str, list[str]] = json.loads(_lib.inspect("names"))
    return names


@pytest.mark.parametrize("option", ["consistency", "fold", "uneven", "start", "sparse", "wire"])
def test_the_library_accepts_each_value_that_type_checkers_do(option: str) -> None:
    words = malt.typing.FoldName if option == "fold" else getattr(malt.typing, option.capitalize())
    malt.init()
    for value in get_args(words):
        _lib.check_vector(None, f"{option}={value}")
    with pytest.raises(ValueError, match=option):
        _lib.check_vector(None, f"{option}=nonsense")


def test_the_library_has_each_graph_that_type_checkers_know() -> None:
    for name in get_args(malt.typing.GraphName):
        assert malt.Graph(name, 32, allow_disconnected=True).spec.startswith(name)
