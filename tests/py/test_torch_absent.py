"""Without PyTorch: what says so, and what works all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest
from launching import LONG

# None stands for a module that is not there.
ABSENT = "import sys; sys.modules['torch'] = None; import malt\n"


@pytest.mark.parametrize("use", ["malt.torch.Vector", "import malt.torch", "from malt import torch"])
def test_the_error_says_what_to_install(use: str) -> None:
    code = f"""{ABSENT}
try:
    {use}
except malt.Error as e:
    assert isinstance(e, ImportError)
    print(e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG)
    assert done.stdout == "malt: malt.torch needs torch, which is not installed\nInstall it: pip install torch.\n"


def test_the_rest_works() -> None:
    code = ABSENT + "v = malt.Vector(3); v.array += 1; v.sync(); print(malt.shard([1, 2]), 'torch' in dir(malt))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG)
    assert done.stdout == "[1, 2] True\n"


def test_importing_malt_does_not_import_torch() -> None:
    code = "import sys, malt; malt.Vector(3).sync(); print('torch' in sys.modules, 'malt.torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG)
    assert done.stdout == "False False\n"
