"""List the claims, or show some of them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from . import __doc__ as about
from . import cables, counted, filters, flow, learnt, slack, sparse
from .shown import NotShownError, Program, Shown, claims, keep, kept

PROGRAMS: dict[str, Program] = {
    id: program
    for part in (counted, cables, sparse, filters, flow, slack, learnt)
    for id, program in part.PROGRAMS.items()
}


PAPERS = {
    "M": "MALT", "N": "MALT-2", "P": "Parameter Flow", "S": "SSP allreduce", "A": "Sparse Allreduce",
}  # fmt: skip


def listed() -> str:
    """Return all claims, each with the last verdict, or what it lacks."""
    found = kept()
    lines = []
    for id, claim in claims().items():
        state = "not shown" if claim.lacks else found[id].verdict if id in found else "not run"
        needs = f": it needs {claim.lacks}" if claim.lacks else ""
        lines.append(f"{id:4} {state:14} {claim.claim} ({claim.where}){needs}")
    return "\n".join(lines)


def markdown() -> str:
    """Return how many hold, what has been kept as a table for each paper, and what the other claims lack."""
    found, every = kept(), claims()
    counts = Counter(shown.verdict for shown in found.values())
    lines = [
        f"Of {len(every)} claims {len(found)} have a figure: {counts['holds']} hold, {counts['in part']} hold in part, "
        f"{counts['does not hold']} do not hold."
    ]
    for letter, paper in PAPERS.items():
        lines += ["", f"**{paper}**", "", "| | the paper | here | how | |", "| --- | --- | --- | --- | --- |"]
        for id, shown in found.items():
            if id[0] == letter:
                theirs = f"{every[id].claim} ({every[id].where}). {shown.paper}".strip()
                lines.append(f"| {id} | {theirs} | {shown.ours} | {shown.how} | {judged(id, shown)} |")
    lines += ["", "**Not shown**", "", "| | claim | it needs |", "| --- | --- | --- |"]
    lines += [f"| {c.id} | {c.claim} ({c.where}) | {c.lacks} |" for c in every.values() if c.lacks]
    return "\n".join(lines)


def judged(id: str, shown: Shown) -> str:
    """Return the verdict, with the reason where the claim does not hold as it stands."""
    return shown.verdict if shown.verdict == "holds" else f"{shown.verdict}: {claims()[id].why}"


def printed(id: str, shown: Shown) -> str:
    """Return a figure as text."""
    claim, before = claims()[id], kept().get(id)
    # The reason is that of the figure that is kept: one of other data, or with another verdict, may have another.
    same = before is not None and (before.how, before.verdict) == (shown.how, shown.verdict)
    rows = {
        id: f"{claim.claim} ({claim.where})",
        "paper": shown.paper,
        "ours": shown.ours,
        "how": shown.how,
        "": judged(id, shown) if same else shown.verdict,
    }
    return "\n".join(f"{name:6} {text}" for name, text in rows.items() if text)


def main() -> None:
    """Do what the arguments ask for."""
    ask = argparse.ArgumentParser(
        prog="python -m examples.evidence", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("rows", nargs="*", metavar="ROW", help="claims to show, such as A2; all that can be: all")
    ask.add_argument("--keep", action="store_true", help="keep the figures for the documentation")
    ask.add_argument("--markdown", action="store_true", help="print what has been kept, as the documentation has it")
    opt = ask.parse_args()
    if opt.markdown or not opt.rows:
        print(markdown() if opt.markdown else listed())
        return
    for id in PROGRAMS if opt.rows == ["all"] else opt.rows:
        if id not in claims():
            ask.error(f"no claim is called {id}: python -m examples.evidence lists them")
        if id not in PROGRAMS:
            sys.exit(f"{id}: not shown: it needs {claims()[id].lacks}")
        try:
            shown = PROGRAMS[id]()
        except NotShownError as error:
            sys.exit(f"{id}: not shown: {error}")
        print(printed(id, shown), flush=True)
        if opt.keep:
            keep(id, shown)


if __name__ == "__main__":
    main()
