"""What MALT changes in real loops: ``python -m serial`` in ``examples``.

Compares every program of this folder with the one of the same name above it, by
``git diff``, which counts a changed line as one added and one removed.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def pairs() -> list[tuple[Path, Path]]:
    """Return the serial programs, each with its data-parallel twin."""
    return [(path, HERE.parent / path.name) for path in sorted(HERE.glob("[!_]*.py"))]


def diff(serial: Path, parallel: Path, *options: str) -> str:
    """Return what ``git diff`` says, with paths relative to the folder above this one."""
    paths = [str(path.relative_to(HERE.parent)) for path in (serial, parallel)]
    command = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", *options, "--", *paths]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: they differ
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def counted(serial: Path, parallel: Path) -> tuple[int, int]:
    """Return how many lines were changed or added, and how many changed or removed."""
    added, removed, _ = diff(serial, parallel, "--numstat").split("\t", 2)
    return int(added), int(removed)


def changes(serial: Path, parallel: Path) -> str:
    """Return the changed lines with one line of context, without the names of the files."""
    lines = diff(serial, parallel, "--unified=1").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("@@"))
    return "\n".join("@@" if line.startswith("@@") else line for line in lines[start:])


def table() -> str:
    """Return the counts as a table for the documentation."""
    lines = ["| | lines changed or added | of the serial program, changed or removed |", "| --- | ---: | ---: |"]
    for serial, parallel in pairs():
        added, removed = counted(serial, parallel)
        lines.append(f"| [{parallel.name}](#changed-{parallel.stem}) | {added} | {removed} |")
    return "\n".join(lines)


def sections() -> str:
    """Return the changes as sections for the documentation."""
    return "\n\n".join(
        f"(changed-{parallel.stem})=\n\n## {parallel.name}\n\n```diff\n{changes(serial, parallel)}\n```"
        for serial, parallel in pairs()
    )


def main() -> None:
    """Print the counts, then the changes."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--markdown", choices=["table", "sections"], help="what the documentation shows")
    wanted = ask.parse_args().markdown
    if wanted:
        print(table() if wanted == "table" else sections())
        return
    for serial, parallel in pairs():
        print(*counted(serial, parallel), f"examples/{parallel.name}", sep="\t")
    for serial, parallel in pairs():
        print(f"\n{diff(serial, parallel)}", end="")


if __name__ == "__main__":
    main()
