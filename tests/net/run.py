"""``make test-net``: runs the tests of this folder in namespaces of their own, or says why that cannot be.

Arguments are pytest's; ``--required`` makes it a failure that it cannot be.
"""

from __future__ import annotations

import os
import subprocess
import sys

import environments

from malt._sim import SimError, isolate


def main() -> int:
    arguments = sys.argv[1:]
    required = "--required" in arguments
    environments.make()
    try:
        isolate()
    except SimError as error:
        print(f"test-net: {'failed' if required else 'skipped'}: {error}")
        return int(required)
    tests = [sys.executable, "-m", "pytest", os.path.relpath(os.path.dirname(__file__)), "--quiet"]
    return subprocess.call([*tests, *(word for word in arguments if word != "--required")])


if __name__ == "__main__":
    sys.exit(main())
