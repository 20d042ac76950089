"""What the pages of the documentation show is executed here.

The blocks marked ``python`` of a page are one program, which runs alone and as two ranks. A
block marked ``output`` is what the block before it prints when it runs alone. Code that is there
to be looked at, such as another library's, is a ``{code-block} python``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^(`{3,})(python|output|\{code-block\} python)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
PAGES = sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md") if re.search(r"^```python$", p.read_text(), re.M))


def program(page: str) -> tuple[str, list[str | None]]:
    """Return a page's code, which prints a form feed after each block, and what the blocks are to print."""
    code, outputs = "", []
    for _, kind, text in BLOCK.findall((DOCS / page).read_text()):
        if kind == "python":
            code += f"{text}\nprint('\\f', end='')\n"
            outputs.append(None)
        elif kind == "output":
            assert outputs, f"{page}: output without a block before it"
            outputs[-1] = text
    return code, outputs


def execute(tmp_path: Path, page: str, *launcher: str) -> tuple[str, list[str | None]]:
    code, outputs = program(page)
    if "import torch" in code:
        pytest.importorskip("torch")
    (tmp_path / "page.py").write_text(code)
    done = subprocess.run(
        [sys.executable, *launcher, "page.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "error::RuntimeWarning", "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, f"{page}\n{done.stdout}{done.stderr}"
    return done.stdout, outputs


def test_there_are_pages() -> None:
    assert {"index.md", "guide/first-loop.md", "guide/uneven-data.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_alone(page: str, tmp_path: Path) -> None:
    stdout, outputs = execute(tmp_path, page)
    *said, rest = stdout.split("\f")
    assert not rest
    for i, (text, expected) in enumerate(zip(said, outputs, strict=True)):
        if expected is not None:
            assert text.strip() == expected.strip(), f"{page}, block {i + 1}"


@pytest.mark.parametrize("page", PAGES)
def test_as_two_ranks(page: str, tmp_path: Path) -> None:
    execute(tmp_path, page, "-m", "malt", "run", "-q", "-n", "2")


@pytest.mark.parametrize("page", sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")))
def test_code_to_look_at_is_python(page: str) -> None:
    for _, kind, text in BLOCK.findall((DOCS / page).read_text()):
        if kind == "{code-block} python":
            compile(text.replace("...", "pass"), page, "exec")
