"""Runs the notebooks of this folder: ``make notebooks`` writes what comes out into them.

    python run.py --write                 run all, keep their outputs
    python run.py --set ranks=2 01_*.ipynb    run one with other parameters, keep nothing

The cell tagged ``parameters`` holds assignments that ``--set`` replaces. The
notebook's metadata hold a digest of its text and code at its last run, so that a
later change is found (``signed``).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
SECONDS = 300  # that a cell may take


def signature(notebook: Any) -> str:
    """Return a digest of all text and code, without outputs."""
    cells = [f"{cell.cell_type}\n{cell.source}" for cell in notebook.cells]
    return hashlib.sha256("\0".join(cells).encode()).hexdigest()[:16]


def signed(notebook: Any) -> bool:
    """Tell whether the outputs came from this text and code."""
    return bool(notebook.metadata.get("malt", {}).get("ran") == signature(notebook))


def replaced(source: str, values: Mapping[str, object]) -> str:
    """Return a cell of assignments with other values; each name must be assigned there."""
    lines = source.splitlines()
    left = dict(values)
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in left:
            name = node.targets[0].id
            lines[node.lineno - 1 : node.end_lineno] = [f"{name} = {left.pop(name)!r}"] + [""] * (
                (node.end_lineno or node.lineno) - node.lineno
            )
    if left:
        raise ValueError(f"no parameter {', '.join(left)} in:\n{source}")
    return "\n".join(lines)


def run(path: Path, values: Mapping[str, object] | None = None, checks: str = "") -> Any:
    """Run a notebook in a kernel of its own and return it with its outputs.

    Parameters
    ----------
    path : Path
    values : mapping, optional
        Other values for names of its cell ``parameters``.
    checks : str, optional
        Code to run behind the last cell; an exception there is one of the run.
    """
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if values and "parameters" in cell.metadata.get("tags", []):
            cell.source = replaced(cell.source, values)
    if checks:
        notebook.cells.append(nbformat.v4.new_code_cell(checks))  # type: ignore[no-untyped-call]
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # a debugger's warning that is about nothing here
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        startup_timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": path.parent}},
    )
    client.execute()
    return notebook


def write(path: Path) -> None:
    """Run a notebook and keep what came out."""
    notebook = run(path)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        "malt": {"ran": signature(notebook)},
    }
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the notebooks that are named, or all."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("notebooks", nargs="*", type=Path, help="files [all of this folder]")
    ask.add_argument("--write", action="store_true", help="keep what comes out")
    ask.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another value of a parameter")
    opt = ask.parse_args(argv)
    values = {name: ast.literal_eval(value) for name, _, value in (pair.partition("=") for pair in opt.set)}
    if opt.write and values:
        ask.error("--write keeps what came out with the parameters of the notebook: leave --set away")
    paths = opt.notebooks or sorted(HERE.glob("*.ipynb"))
    for number, path in enumerate(paths, 1):
        print(f"[{number}/{len(paths)}] {path.name}", file=sys.stderr, flush=True)
        if opt.write:
            write(path)
        else:
            run(path, values)


if __name__ == "__main__":
    main()
