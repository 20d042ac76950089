"""``malt stack``: where in its program each rank is."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from malt._cli import looks, top
from malt._cli.options import Parser
from malt._cli.supervise import name
from malt._cli.wrap import columns, folded
from malt._ranks import seen
from malt._ranks.stacks import Answer

DESCRIPTION = """\
Prints where in its program each rank of your jobs is, on this machine or on others (-H): the Python
stack of its main thread, also of a rank that is in a call of MALT or of numpy. Ranks at the same place are
shown together, so that you see which one differs. The ranks continue; but they are asked by a signal, which ends
a sleep() or poll() of C early."""

EXAMPLES = """\
  malt stack                 all ranks of this machine
  malt stack 8b7a3bed        those of a job; malt top shows its number
  malt stack -H node1,node2  those of other machines, by ssh
"""


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("stack", "malt stack [options] [JOB]", DESCRIPTION, EXAMPLES)
    looks.add_options(made)
    made.add_argument("--json", action="store_const", const=True, help="print JSON")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    with looks.at("malt stack", options, parse.error) as look:
        jobs = look.chosen()
        answers = look.stacks([rank for ranks in jobs.values() for rank in ranks])
    if options.json:
        print(json.dumps([_facts(rank, answers[rank.key]) for ranks in jobs.values() for rank in ranks]))
        return 0
    width = columns(1, top.NARROW)
    for job, ranks in jobs.items():
        print("\n".join([top.title(job, ranks, width), *_shown(ranks, answers)]))
        print("".join(f"{folded(cause, width)}\n" for cause in top.causes(ranks, {})))
    return 0


def _facts(rank: seen.Rank, answer: Answer) -> dict[str, object]:
    facts = {key: getattr(rank, key) for key in ("job", "rank", "host", "pid", "state")}
    return {**facts, "stack": [frame._asdict() for frame in answer.stack], "why": answer.why}


def _shown(ranks: Sequence[seen.Rank], answers: Mapping[seen.Key, Answer]) -> Iterator[str]:
    """Yield the stacks, equal ones together."""
    groups: dict[Answer, list[seen.Rank]] = defaultdict(list)
    for rank in ranks:
        groups[answers[rank.key]].append(rank)
    for answer, same in groups.items():
        states = defaultdict(list)
        for rank in same:
            states[rank.state].append(rank.rank)
        several = len(states) > 1  # they were looked at before they answered, or there is more than one in a call
        words = (f"{name(numbers)} {state}" if several else state for state, numbers in states.items())
        yield f"{name(rank.rank for rank in same)}: {answer.why or ', '.join(words)}"
        for file, line, function, text in answer.stack:
            yield f"  {file}:{line} in {function}" + (f": {text}" if text else "")
