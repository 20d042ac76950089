"""The cells that the guide's page on notebooks shows are run in a notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launching import LONG

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "notebooks.md"


def test_cells_run(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = re.findall(r"^```\{code-block\} ipython\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=LONG, resources={"metadata": {"path": tmp_path}}).execute()
    *_, on_ranks, last = ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]
    assert sorted(re.findall(r"\[(\d)\] clock 10", re.sub(r"\x1b\[[0-9;]*m", "", on_ranks))) == ["0", "1"]
    assert 0 <= float(last) < 0.5
