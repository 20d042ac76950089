"""Every error of the package is made as three lines, each of which fits a terminal.

The tests walk the syntax trees of the package: `test_error_form` provokes a part of the errors.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest

import malt
from malt import _errors

SOURCES = sorted(Path(malt.__file__).parent.rglob("*.py"))
WIDTH = 80  # of a terminal
VALUE = 8  # letters that a value takes, more or less

ERRORS = {name for name in dir(builtins) if name.endswith("Error")} | set(_errors.__all__)
"""What is raised with one text: `lines` has to have made that."""

TAKERS = {"lines", "unfit", "refuse", "_refuse", "UsageError", "SimError", "CellError", "MalformedError"}
"""What takes the lines one by one."""

PARSERS = ("self.error", "parse.error")

INNER = {
    "_job/codec.py": "of a message that cannot be read: packed into another error",
    "_job/foreign.py": "the same",
    "_data/load/memory.py": "becomes a part of the error of load",
    "_data/load/text.py": "cannot happen",
    "_ranks/pickles.py": "what pickle says, packed into another error",
    "__init__.py": "Python's own sentence for a missing name",
}
"""Where an error with one text is not what a user sees, and why."""


def called(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call of a syntax tree, with the last name of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            yield name if name in PARSERS else name.rpartition(".")[2], node


def texts(node: ast.expr) -> Iterator[str]:
    """Yield the lines that an argument may be, with a few letters in place of each value."""
    if isinstance(node, ast.Constant):
        yield from str(node.value).split("\n")
    elif isinstance(node, ast.JoinedStr):
        whole = "".join(str(v.value) if isinstance(v, ast.Constant) else "#" * VALUE for v in node.values)
        yield from whole.split("\n")
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def short(path: Path) -> str:
    return str(path.relative_to(Path(malt.__file__).parent))


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_errors_are_made_of_lines(path: Path) -> None:
    for name, call in called(ast.parse(path.read_text())):
        where = f"{path}:{call.lineno}"
        text = call.args[0] if call.args else None
        if name in ERRORS and short(path) not in INNER:
            assert not isinstance(text, ast.Constant | ast.JoinedStr | ast.BinOp), f"{where}: one text, without lines()"
        if name in TAKERS or name in PARSERS:
            parts = [*call.args, *(k.value for k in call.keywords if k.arg in ("where", "do"))]
            for line in (line for part in parts for line in texts(part)):
                assert len(line) <= WIDTH, f"{where}: {line}"


def test_exceptions_from_the_rule_are_needed() -> None:
    for name in INNER:
        tree = ast.parse((Path(malt.__file__).parent / name).read_text())
        assert any(
            name in ERRORS and call.args and isinstance(call.args[0], ast.Constant | ast.JoinedStr)
            for name, call in called(tree)
        ), name
