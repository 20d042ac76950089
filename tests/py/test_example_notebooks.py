"""The notebooks of ``examples/notebooks`` as 2 and 4 ranks, and that what is committed is what was run."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
import nbformat

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def load_runner() -> Any:
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load_runner()


def checks(name: str) -> dict[str, Any]:
    """Return what ``notebook_checks/<name>.py`` says: QUICK parameters, NEEDS packages, and CHECKS, the code itself."""
    path = Path(__file__).with_name("notebook_checks") / f"{name}.py"
    code = path.read_text()
    found: dict[str, Any] = {"QUICK": {}, "NEEDS": [], "DATA": False}
    head, _, body = code.partition("# ---- checks")
    exec(compile(head, path, "exec"), found)
    return {**found, "CHECKS": body}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebook_is_what_was_run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert runner.signed(notebook), f"{path.name} was changed after it was run: make notebooks"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.execution_count, f"{path.name}: a cell was not run: {cell.source}"
            assert not any(output.output_type == "error" for output in cell.outputs)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_its_numbers_hold(path: Path, ranks: int) -> None:
    check = checks(path.stem)
    for package in check["NEEDS"]:
        pytest.importorskip(package)
    if check["DATA"] and not os.environ.get("MALT_DATA"):
        pytest.skip("MALT_DATA is not set: the notebook's data are not part of the repository")
    runner.run(path, {"ranks": ranks, **check["QUICK"]}, check["CHECKS"])


def test_every_notebook_has_checks_and_every_check_a_notebook() -> None:
    there = {path.stem for path in Path(__file__).with_name("notebook_checks").glob("*.py")}
    assert there == {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_plot_has_its_own_alternative_text(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    plots = [c for c in cells if any("image/png" in o.get("data", {}) for o in c.get("outputs", []))]
    texts = [c.metadata.get("mystnb", {}).get("image", {}).get("alt", "") for c in plots]
    assert all(len(text) > 60 for text in texts), f"{path.name}: a plot's cell needs mystnb.image.alt"
    assert len(set(texts)) == len(texts)


def test_a_change_behind_the_run_is_found() -> None:
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    notebook.cells[0].source += " "
    assert not runner.signed(notebook)


def test_parameters_are_replaced_where_they_are_assigned() -> None:
    source = "ranks = 4  # processes\nsizes = (\n    1,\n    2,\n)"
    assert runner.replaced(source, {"ranks": 2}).startswith("ranks = 2\nsizes = (")
    replaced: dict[str, Any] = {}
    exec(runner.replaced(source, {"sizes": (8,), "ranks": 3}), replaced)
    assert (replaced["sizes"], replaced["ranks"]) == ((8,), 3)
    with pytest.raises(ValueError, match="no parameter rank in"):
        runner.replaced(source, {"rank": 2})
