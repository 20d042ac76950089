"""``malt stack``: where in its program each rank is."""

from __future__ import annotations

import contextlib
import fcntl
import json
import linecache
import os
import re
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import malt
from malt._cli import top
from malt._cli.options import Parser
from malt._cli.wrap import columns, folded
from malt._ranks import seen

DESCRIPTION = """\
Prints where in its program each rank of your jobs on this machine is: the Python stack of its
main thread, also of a rank that is in a call of MALT or of numpy. Ranks at the same place are
shown together, so that you see which one differs. The ranks continue as if nothing had happened."""

EXAMPLES = """\
  malt stack                 all ranks of this machine
  malt stack 8b7a3bed        those of a job; malt top shows its number
  ssh node1 malt stack       all ranks of another machine
"""

PATIENCE = 5.0
"""Seconds within which a rank has to answer."""

MEMORY = "/memfd:malt-stack-"
OWN = os.path.dirname(malt.__file__) + os.sep
FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


class Frame(NamedTuple):
    """A line of a stack."""

    file: str
    line: int
    function: str
    text: str


class Answer(NamedTuple):
    """What a rank answers: the stack of its main thread, the innermost frame last, or why there is none."""

    stack: tuple[Frame, ...]
    why: str = ""


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("stack", "malt stack [options] [JOB]", DESCRIPTION, EXAMPLES)
    top.add_job(made)
    made.add_argument("--json", action="store_const", const=True, help="print JSON")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    jobs = top.chosen(options.job, parse.error)
    answers = ask([rank for ranks in jobs.values() for rank in ranks])
    if options.json:
        print(json.dumps([_facts(rank, answers[rank.pid]) for ranks in jobs.values() for rank in ranks]))
        return 0
    width = columns(1, top.NARROW)
    for job, ranks in jobs.items():
        print("\n".join([top.title(job, ranks, width), *_shown(ranks, answers)]))
        print("".join(f"{folded(cause, width)}\n" for cause in top.causes(ranks, {})))
    return 0


def _facts(rank: seen.Rank, answer: Answer) -> dict[str, object]:
    stack = [frame._asdict() for frame in answer.stack]
    return {"job": rank.job, "rank": rank.rank, "pid": rank.pid, "state": rank.state, "stack": stack, "why": answer.why}


def _shown(ranks: Sequence[seen.Rank], answers: Mapping[int, Answer]) -> Iterator[str]:
    """Yield the stacks, equal ones together."""
    groups: dict[Answer, list[seen.Rank]] = defaultdict(list)
    for rank in ranks:
        groups[answers[rank.pid]].append(rank)
    for answer, same in groups.items():
        states = sorted({rank.state for rank in same})
        yield f"{top.name([rank.rank for rank in same])}: {answer.why or ', '.join(states)}"
        for file, line, function, text in answer.stack:
            yield f"  {file}:{line} in {function}" + (f": {text}" if text else "")


def ask(ranks: Sequence[seen.Rank]) -> dict[int, Answer]:
    """Return the answers of ranks, by process, all of the same moment as far as that goes."""
    answers: dict[int, Answer] = {}
    with contextlib.ExitStack() as opened:
        asked = []
        for rank in ranks:
            try:
                answer = _send(rank, opened)
            except PermissionError:
                answer = Answer((), "the system does not let us look into its process")
            except (ProcessLookupError, FileNotFoundError):
                answer = Answer((), "it has just ended")
            except BlockingIOError:
                answer = Answer((), "another `malt stack` is asking it")
            if isinstance(answer, int):
                asked.append((rank, answer))
            else:
                answers[rank.pid] = answer
        until = time.monotonic() + PATIENCE
        for rank, fd in asked:
            answers[rank.pid] = _hear(rank, fd, until)
    return answers


def _send(rank: seen.Rank, opened: contextlib.ExitStack) -> int | Answer:
    """Ask a rank, and return the descriptor from which its answer can be read."""
    if rank.state == "stopped":
        return Answer((), "stopped, by SIGSTOP or a debugger")
    process = os.pidfd_open(rank.pid)  # that process, even if its number is used again
    opened.callback(os.close, process)
    path, name = seen.descriptor(rank.pid, MEMORY)
    if not path:
        return Answer((), f"{rank.state}; its program is not Python")
    number = int(name.removeprefix(MEMORY))
    if not rank.signals >> (number - 1) & 1:
        return Answer((), f"{rank.state}; its program uses signal {number} itself, or ends")
    fd = os.open(path, os.O_RDWR)
    opened.callback(os.close, fd)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.ftruncate(fd, 0)
    signal.pidfd_send_signal(process, number)
    return fd


def _hear(rank: seen.Rank, fd: int, until: float) -> Answer:
    while not (text := os.pread(fd, os.fstat(fd).st_size, 0)).endswith(b"\nend\n"):
        if time.monotonic() > until:
            return Answer(
                (), f"{rank.state}; it does not answer: it blocks signals, gets no processor time, or has ended"
            )
        time.sleep(0.002)
    os.ftruncate(fd, 0)
    frames = [_frame(rank.cwd, *found) for found in FRAME.findall(text.decode(errors="replace"))]
    while frames and (frames[0].file.startswith(OWN) or "/site-packages/malt/" in frames[0].file):
        del frames[0]  # of MALT, inside the last call
    return Answer(tuple(reversed(frames)))


def _frame(cwd: str, file: str, line: str, function: str) -> Frame:
    path = os.path.join(cwd, file)
    shown = os.path.relpath(path, cwd) if path.startswith(cwd + os.sep) else file
    return Frame(shown, int(line), function, linecache.getline(path, int(line)).strip())
