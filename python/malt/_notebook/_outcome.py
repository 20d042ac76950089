"""One exception in the notebook for the exceptions of all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._errors import Interrupted, RankError

STOPPED = "KeyboardInterrupt"


def raised(failed: Mapping[int, tuple[str, str, str, list[str]]], size: int) -> RankError:
    """Return the error for a cell that failed.

    Parameters
    ----------
    failed : mapping
        For each rank that failed, in the order of the failures: the exception's name,
        its text, its place in the cell, the traceback.
    size : int
        How many ranks there are.
    """
    causes = {rank: error for rank, error in failed.items() if error[0] != STOPPED} or dict(failed)
    first = min(causes) if len({error[:2] for error in causes.values()}) == 1 else next(iter(causes))
    name, text, _, trace = causes[first]
    same = [rank for rank, error in causes.items() if error[:2] == (name, text)]
    shown = [f"On {named(same, size)}:", *trace]
    for rank in sorted(set(causes) - set(same)):
        other = causes[rank]
        shown.append(f"On rank {rank}: {other[0]}: {other[1]}" + (f"  ({other[2]})" if other[2] else ""))
    stopped = {rank: error for rank, error in failed.items() if rank not in causes}
    shown += _places(stopped, "interrupted because of that")
    return RankError(f"{named(same, size)}: {name}: {text}", first, shown)


def interrupted(answers: Mapping[int, Any]) -> Interrupted:
    """Return the exception for a cell that the user stopped."""
    errors = {rank: answer["error"] for rank, answer in answers.items() if answer["error"]}
    ended = sorted(set(answers) - set(errors))
    lines = [f"rank {', '.join(map(str, ended))} had ended the cell"] if ended else []
    return Interrupted("\n".join(["the ranks can be used again", *_places(errors, "interrupted"), *lines]))


def _places(errors: Mapping[int, tuple[str, str, str, list[str]]], what: str) -> list[str]:
    """Return a line for each place at which ranks were."""
    places: dict[str, list[int]] = {}
    for rank in sorted(errors):
        name, text, place, _ = errors[rank]
        other = "" if name == STOPPED else f" with {name}: {text}"
        places.setdefault(f"{what}{other}" + (f" at {place}" if place else ""), []).append(rank)
    return [f"rank {', '.join(map(str, ranks))} {place}" for place, ranks in places.items()]


def named(ranks: list[int], size: int) -> str:
    """Return how ranks are called, such as ``ranks 0, 2``."""
    if len(ranks) == size and size > 1:
        return f"all {size} ranks"
    return f"rank{'s'[: len(ranks) != 1]} {', '.join(map(str, sorted(ranks)))}"
