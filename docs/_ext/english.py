"""The texts of source files that a person reads, for a linter: ``python english.py FOLDER``.

Writes two files for each source file: FOLDER/PATH.txt has docstrings, the documentation of Go's packages, and the
comments of malt.h and of the examples in C; FOLDER/PATH.messages.txt has all strings. The prose of a notebook is
FOLDER/PATH.md, and the comments of its cells are with its strings. A text begins on the line
that it has in its source; a sentence that goes on is on one line, so that the linter sees its phrases whole.
"""

from __future__ import annotations

import ast
import io
import itertools
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (
    "python/*.py",
    "python/malt/**/*.py*",
    "examples/**/*.py",
    "examples/**/*.c",
    "examples/**/*.ipynb",
    "docs/guide/*.py",
    *(f"{d}/**/*.go" for d in ("graphs", "rdma", "libmalt", "capi", "internal")),
    "capi/*.[ch]",
    "Makefile",
)
SENTENCE = re.compile(r"\w\W* \w.* \w")  # three words, so that names and formats stay out
GOES_ON = re.compile(r"(?<=[\w,;`])\n[ *]*(?=[a-z`(])")
# Comments and characters, then strings of C and Go, which may follow each other.
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)+'|("(?:[^"\\\n]|\\.)*"(?:\s*\+?\s*"(?:[^"\\\n]|\\.)*")*|`[^`]*`)""", re.S
)

Text = tuple[int, str, bool]  # its line, and whether it is a message


def python(source: str) -> Iterator[Text]:
    """Yield the strings; an f-string is one, with … for its values."""
    inside, docs = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr):  # a docstring, of an attribute too
            docs.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)} - {id(node)}
            text = "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
            yield node.lineno, text, True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value, id(node) not in docs


def comments(source: str) -> Iterator[Text]:
    """Yield the comments, which readers of a notebook see."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! "), True


def notebook(source: str) -> Iterator[Text]:
    """Yield the prose and the strings of the cells, one after the other."""
    line = 1
    for cell in json.loads(source)["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield line, re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), False
        else:
            plain = re.sub(r"^[%!].*$", "", text, flags=re.M)
            yield from ((line + at - 1, said, message) for at, said, message in (*python(plain), *comments(plain)))
        line += text.count("\n") + 2


def found(source: str, pattern: str, message: bool) -> Iterator[Text]:
    """Yield what a pattern finds."""
    for match in re.finditer(pattern, source, re.DOTALL | re.MULTILINE):
        yield source.count("\n", 0, match.start(1)) + 1, match[1], message


def strings(source: str) -> Iterator[Text]:
    """Yield the strings of C and Go, those that are put together as one."""
    for match in TOKENS.finditer(source):
        if text := match[1]:
            whole = re.sub(r'"\s*\+?\s*"', "", text).strip('"`').replace("\\n", "\n")
            yield source.count("\n", 0, match.start()) + 1, whole, True


def texts(path: Path) -> Iterator[Text]:
    """Yield what is read of a file."""
    source = path.read_text()
    if path.suffix in (".py", ".pyi"):
        return python(source)
    if path.suffix == ".ipynb":
        return notebook(source)
    if path.suffix == ".h":
        return found(source, r"/\*(.*?)\*/", message=False)
    if path.suffix == ".c" and "examples" in path.parts:
        return itertools.chain(strings(source), found(source, r"/\*(.*?)\*/", message=False))
    if path.name == "Makefile":
        return found(source, r"## (.*?)$", message=True)
    if path.name == "doc.go":
        return found(re.sub("^// ?", "", source, flags=re.M), r"(\A.*?)^package ", message=False)
    return strings(source)


def write(folder: Path) -> None:
    """Write the texts of all source files."""
    for path in sorted({path for pattern in SOURCES for path in ROOT.glob(pattern)}):
        if path.name.endswith("_test.go"):
            continue
        said = sorted(texts(path))
        for message, end in ((False, ".md" if path.suffix == ".ipynb" else ".txt"), (True, ".messages.txt")):
            page: list[str] = []
            for line, text, kind in said:
                if kind == message and SENTENCE.search(text):
                    whole = GOES_ON.sub(" ", re.sub(r"^\s*\*? ?", "", text, flags=re.M))
                    page += [""] * (line - 1 - len(page)) + whole.split("\n")
            at = folder / f"{path.relative_to(ROOT)}{end}"
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
