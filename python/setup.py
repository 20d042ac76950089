"""Builds the wheel: libmalt.so.0, the extension that calls it, and the package.

``pip wheel ./python`` in a checkout gives one ``cp310-abi3`` wheel that serves
every CPython from 3.10 on and installs without Go or a compiler. Building it
needs both: ``capi/build.sh`` makes the library, cffi the extension.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

try:
    import deflate
except ImportError:  # it makes the wheel smaller, and is not there for each machine
    deflate = None

sys.path.insert(0, str(Path(__file__).resolve().parent))
from topics import outside, topics

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


class BuildWithLibrary(build_ext):
    """Makes libmalt.so.0, links the extension with it, and puts it beside the extension."""

    def run(self) -> None:
        """Build the library first: the extension is linked with it."""
        subprocess.run([ROOT / "capi" / "build.sh", BUILD], check=True)
        super().run()
        extension = Path(self.get_ext_fullpath("malt._malt"))
        shutil.copy2(BUILD / "libmalt.so.0", extension.parent / "libmalt.so.0")

    def build_extensions(self) -> None:
        """Leave out the folders of the Python that builds: they mean nothing where the wheel is installed."""
        self.compiler.linker_so = [word for word in self.compiler.linker_so if not word.startswith("-Wl,-rpath")]
        super().build_extensions()


class BuildWithMore(build_py):
    """Adds what ``malt explain`` prints, from the guide, and the header for C."""

    def run(self) -> None:
        """Write them beside the modules."""
        super().run()
        include = Path(self.build_lib, "malt", "include")
        include.mkdir(exist_ok=True)
        shutil.copy2(ROOT / "capi" / "malt.h", include)
        text = json.dumps(topics(ROOT / "docs"), ensure_ascii=False, separators=(",", ":"))
        Path(self.build_lib, "malt", "_topics.json").write_text(text, encoding="utf-8")


def options() -> dict[str, dict[str, str]]:
    """Where clutter goes, and what the wheel says it runs on."""
    scratch = BUILD / "python"
    scratch.mkdir(parents=True, exist_ok=True)
    for old in scratch.glob("lib*"):
        shutil.rmtree(old)  # setuptools would put modules into the wheel that are no longer there
    wheel = {"py_limited_api": "cp310"}
    if platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc":
        # The default would be linux_x86_64, which says nothing about the glibc
        # that is needed. capi/build.sh keeps to the symbols of 2.17.
        wheel["plat_name"] = "manylinux_2_17_x86_64"
    return {
        "build": {"build_base": str(scratch)},
        "build_ext": {"force": "1"},  # what is there may come from an older ffi_build.py or setup.py
        "egg_info": {"egg_base": str(scratch)},
        "bdist_wheel": wheel,
    }


class Deflated:
    """Compresses what zipfile has for it, by libdeflate: to 4 % less than zlib at its best."""

    def __init__(self) -> None:
        """Begin a file of the wheel."""
        self._data = bytearray()

    def compress(self, data: bytes) -> bytes:
        """Take some of it."""
        self._data += data
        return b""

    def flush(self) -> bytes:
        """Return all of it, compressed."""
        return bytes(deflate.deflate_compress(self._data, 12))


# The wheel is deflated by zipfile, which is not asked how: this is what it takes then.
if deflate:
    zlib.compressobj = lambda *_: Deflated()
else:
    zlib.Z_DEFAULT_COMPRESSION = zlib.Z_BEST_COMPRESSION

# Relative paths in this file and in ffi_build.py are meant from here.
os.chdir(Path(__file__).resolve().parent)
setup(
    long_description=outside((ROOT / "README.md").read_text(), ROOT),
    long_description_content_type="text/markdown",
    version=(ROOT / "VERSION").read_text().strip(),
    cmdclass={"build_ext": BuildWithLibrary, "build_py": BuildWithMore},
    cffi_modules=["ffi_build.py:ffibuilder"],
    options=options(),
)
