"""Which folder of the package may use which: imports inside functions count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import malt

ROOT = Path(malt.__file__).parent

BASE = {"_errors", "_frames", "_guide", "_lib", "_need", "_options", "typing"}
"""What everything else may use."""

USES: dict[str, set[str]] = {
    "_frames": set(),
    "_errors": set(),
    "typing": set(),
    "_c": set(),
    "_guide": {"_frames"},
    "_need": {"_errors", "_guide"},
    "_lib": {"_errors", "_frames", "_guide", "_malt"},
    "_options": {"_errors", "_guide", "_lib"},
    "_ranks": BASE,
    "_launchers": BASE | {"_ranks"},
    "_sim": BASE | {"_ranks"},
    "_engines": BASE | {"_ranks"},
    "dask": BASE | {"_engines"},
    "ray": BASE | {"_engines"},
    "_job": BASE | {"_launchers", "_ranks"},
    "_data": BASE | {"_job", "_ranks", "_vectors"},
    "_vectors": BASE | {"_job"},
    "torch": BASE | {"_data", "_job", "_vectors"},
    "sklearn": BASE | {"_job", "_vectors"},
    "_cli": BASE | {"_job", "_ranks", "_sim", "malt"},
    "_notebook": BASE | {"_cli", "_job", "_ranks", "malt"},
    "__init__": BASE | {"_c", "_data", "_job", "_ranks", "_vectors", "dask", "ray", "sklearn", "torch"},
    "__main__": {"_cli"},
}
"""What each folder, and each module beside the folders, may use; "malt" is what users see."""

BESIDE = 12  # modules that may lie beside the folders


def unit(path: Path) -> str:
    """Return the folder of the package that a file lies in, or the name of a module beside the folders."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def used(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what a file imports of the package, with the lines."""
    package = ("malt", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            names = [module] if len(module) > 1 else [(*module, one.name) for one in node.names]
        elif isinstance(node, ast.Import):
            names = [tuple(one.name.split(".")) for one in node.names]
        for name in names:
            if name[0] == "malt":
                is_part = len(name) > 1 and ((ROOT / name[1]).is_dir() or any(ROOT.glob(f"{name[1]}.*")))
                yield node.lineno, name[1] if is_part else "malt"


FILES = [ROOT / "__init__.pyi", *(path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "__pycache__")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_folders_use_only_what_the_table_allows(path: Path) -> None:
    own = unit(path)
    for line, other in used(path):
        assert other == own or other in USES[own], f"{path}:{line}: {own} may not use {other}"


def test_the_table_has_no_circle_and_nothing_that_is_gone() -> None:
    assert set(USES) == {unit(path) for path in FILES}
    left = {name: set(uses) - {"malt"} for name, uses in USES.items()}
    while left:
        free = {name for name, uses in left.items() if not uses & left.keys()}
        assert free, f"a circle: {left}"
        left = {name: uses for name, uses in left.items() if name not in free}


def test_what_the_table_allows_is_used() -> None:
    found = {(unit(path), other) for path in FILES for _, other in used(path)}
    assert [(own, other) for own, uses in USES.items() for other in uses - BASE if (own, other) not in found] == []


def test_a_dozen_modules_lie_beside_the_folders() -> None:
    assert len(list(ROOT.glob("*.py"))) <= BESIDE
