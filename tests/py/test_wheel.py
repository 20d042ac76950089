"""The wheel: one for all, small, and in need of nothing but libc and Python."""

from __future__ import annotations

import glob
import importlib.machinery
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import malt
from malt._cli import explain

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(malt.__file__).parent
EXTENSION = PACKAGE / "_malt.abi3.so"
LIBRARY = PACKAGE / "libmalt.so.0"


@pytest.fixture(name="wheel", scope="module")
def _wheel() -> Path:
    found = glob.glob(str(ROOT / "dist" / "malt-*.whl"))
    if not found:
        pytest.skip("no wheel in dist/: make wheel builds it")
    return Path(found[0])


def test_one_wheel_for_every_python(wheel: Path) -> None:
    machine = platform.machine()
    platform_tag = "manylinux_2_17_x86_64" if machine == "x86_64" else f"linux_{machine}"
    assert wheel.name == f"malt-{malt.__version__}-cp310-abi3-{platform_tag}.whl"
    assert len(list(wheel.parent.glob("malt-*.whl"))) == 1


def test_the_wheel_is_small_and_has_no_more_than_it_needs(wheel: Path) -> None:
    assert wheel.stat().st_size < 4.5e6
    names = zipfile.ZipFile(wheel).namelist()
    kinds = {Path(name).suffix for name in names if not re.match(r"malt-[^/]*\.dist-info/", name)}
    assert kinds == {".h", ".json", ".py", ".pyi", ".so", ".0", ".typed"}
    assert {"malt/py.typed", "malt/_malt.abi3.so", "malt/libmalt.so.0"} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    package = ROOT / "python"
    modules = {path.relative_to(package).as_posix() for path in (package / "malt").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules


@pytest.fixture(name="metadata", scope="module")
def _metadata(wheel: Path) -> str:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    return archive.read(name).decode()


def test_it_depends_on_numpy_and_cffi_alone(metadata: str) -> None:
    needs = re.findall(r"^Requires-Dist: ([a-z]+)((?:.*; extra)?)", metadata, re.MULTILINE)
    assert {name for name, extra in needs if not extra} == {"numpy", "cffi"}
    assert f"Version: {(ROOT / 'VERSION').read_text().strip()}\n" in metadata
    assert "Requires-Python: >=3.10\n" in metadata


def test_the_guide_names_each_extra(metadata: str) -> None:
    extras = set(re.findall(r"^Provides-Extra: (\w+)$", metadata, re.MULTILINE))
    assert extras == {"torch", "sklearn", "notebook", "data", "ray", "dask"}
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/guide/install.md").read_text(), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == extras


def test_links_of_the_readme_need_no_checkout(metadata: str) -> None:
    """It is shown where the wheel is, and what it points to is in the wheel."""
    assert [target for target in re.findall(r"\]\(([^)]+)\)", metadata) if "://" not in target] == []
    topics = re.findall(r"`malt explain ([a-z-]+)`", metadata)
    assert {"choosing", "several-machines", "performance"} <= set(topics) <= set(explain.topics())


def test_a_c_program_needs_nothing_but_the_package(tmp_path: Path) -> None:
    """The program and the commands of the guide; tests/envs does the same in fresh environments."""
    assert (Path(malt.get_include()) / "malt.h").read_bytes() == (ROOT / "capi" / "malt.h").read_bytes()
    assert Path(malt.get_library()) == LIBRARY
    page = (ROOT / "docs/guide/c.md").read_text()
    program, commands = (re.search(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)[1] for kind in ("c", "sh"))  # type: ignore[index]
    (tmp_path / "mean.c").write_text(program)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = subprocess.run(
        ["sh", "-ec", commands],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(re.findall(r"rank .*", said.stdout)) == ["rank 0 of 2: mean 0.5", "rank 1 of 2: mean 0.5"]


def readelf(*arguments: str) -> str:
    tool = shutil.which("readelf")
    if tool is None:
        pytest.skip("readelf (binutils) is not installed")
    return subprocess.run([tool, "--wide", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("path", "libraries"),
    [(EXTENSION, {"libmalt.so.0", "libc"}), (LIBRARY, {"libc", "libpthread", "libdl", "the loader"})],
)
def test_needs(path: Path, libraries: set[str]) -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path.as_posix())))
    short = {name if "malt" in name else name.split(".")[0] for name in needed}
    assert {"the loader" if name.startswith("ld-linux-") else name for name in short} <= libraries


@pytest.mark.parametrize("path", [EXTENSION, LIBRARY])
def test_no_symbol_newer_than_glibc_2_17(path: Path) -> None:
    versions = {
        tuple(map(int, v.split(".")))
        for v in re.findall(r"GLIBC_([0-9.]+)", readelf("--version-info", path.as_posix()))
    }
    assert versions
    assert max(versions) <= (2, 17)


def test_the_extension_finds_the_library_beside_it() -> None:
    dynamic = readelf("--dynamic", EXTENSION.as_posix())
    assert re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic) == ["$ORIGIN"]
    assert re.findall(r"\(SONAME\).*\[(.*)\]", readelf("--dynamic", LIBRARY.as_posix())) == ["libmalt.so.0"]


def test_the_library_exports_malt_alone() -> None:
    table = readelf("--dyn-syms", LIBRARY.as_posix())
    names = [line.split()[7] for line in table.splitlines() if " GLOBAL " in line and " UND " not in line]
    assert len(names) > 30
    assert [name for name in names if not name.startswith("malt_")] == []


def test_the_extension_keeps_to_the_stable_abi() -> None:
    assert importlib.machinery.EXTENSION_SUFFIXES[-2:] == [".abi3.so", ".so"]
    table = readelf("--dyn-syms", EXTENSION.as_posix())
    assert "_PyLong_" not in table
    assert sys.version_info >= (3, 10)


def test_the_declarations_are_those_of_the_header() -> None:
    """Every function of malt.h can be called from Python, and else only what the extension itself adds."""
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "capi" / "malt.h").read_text(), flags=re.DOTALL)
    functions = set(re.findall(r"\b(malt_\w+)\(", header))
    from malt import _malt

    declared = {name for name in dir(_malt.lib) if name.startswith("malt_")}
    assert {name for name in declared if not name.startswith("malt_python_")} == functions
