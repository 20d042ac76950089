"""What a person reads in source files, as text for a linter: ``python english.py FOLDER``.

Writes a file FOLDER/PATH.txt for each source file: docstrings and messages of Python, messages of Go and C,
the documentation of Go's packages, the comments of malt.h. A text begins on the line that it has in its source.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (
    "python/malt/**/*.py",
    *(f"{d}/**/*.go" for d in ("graphs", "rdma", "libmalt", "capi", "internal")),
    "capi/*.[ch]",
)
SENTENCE = re.compile(r"\w\W* \w.* \w")  # three words, so that names and formats stay out


def python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings with their lines; an f-string is one, with … for its values."""
    inside = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)} - {id(node)}
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def lines(source: str, pattern: str) -> Iterator[tuple[int, str]]:
    """Yield what a pattern finds, with its line."""
    for found in re.finditer(pattern, source, re.DOTALL | re.MULTILINE):
        yield source.count("\n", 0, found.start(1)) + 1, found[1]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what is read of a file."""
    source = path.read_text()
    if path.suffix == ".py":
        return python(source)
    if path.suffix == ".h":
        return lines(source, r"/\*(.*?)\*/")
    if path.name == "doc.go":
        return lines(re.sub("^// ?", "", source, flags=re.M), r"(\A.*?)^package ")
    return lines(re.sub(r"^\s*(?://|import|\t\").*$", "", source, flags=re.M), r"\"((?:[^\"\\\n]|\\.)*)\"")


def write(folder: Path) -> None:
    """Write the texts of all source files."""
    for path in sorted({path for pattern in SOURCES for path in ROOT.glob(pattern)}):
        if path.name.endswith("_test.go"):
            continue
        page: list[str] = []
        for line, text in sorted(texts(path)):
            if SENTENCE.search(text):
                page += [""] * (line - 1 - len(page)) + re.sub(r"^\s*\*? ?", "", text, flags=re.M).split("\n")
        at = folder / f"{path.relative_to(ROOT)}.txt"
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
