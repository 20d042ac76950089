"""``malt graph``: prints, draws and compares dataflow graphs."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from malt._cli.options import Parser, nearest, unfit, whole
from malt._cli.wrap import columns, folded
from malt.typing import GraphName

if TYPE_CHECKING:
    from malt import Graph

NAMES = tuple(
    name for name in get_args(GraphName) if name == "random:2" or not ("/" in name or name.startswith("random"))
)

FORMATS = ("text", "dot", "json", "svg", "png", "pdf")

SUFFIXES = {".gv": "dot", ".txt": "text", **{f".{name}": name for name in FORMATS[1:]}}
"""What the end of a file's name says. A name without one is for text."""

USAGE = "malt graph GRAPH -n RANKS [options]  |  malt graph --compare [GRAPH ...] -n RANKS [options]"

DESCRIPTION = """\
Shows which ranks send to which in a graph, and its measures: receivers per rank,
hops between the farthest two, the second-largest eigenvalue modulus of the averaging
matrix (the smaller, the faster ranks agree), and its smallest real part (below 0:
average models over this graph, not gradients)."""

EXAMPLES = """\
  malt graph halton -n 16                  as text
  malt graph halton -n 16 -o halton.svg    as a picture; .png and .pdf, too
  malt graph chord -n 8 --format dot       for Graphviz
  malt graph lists:1/2/0                   your own: the receivers of rank 0 / 1 / 2
  malt graph --compare -n 16               the measures of all of them
  malt graph --compare halton ring -n 16   or of some
"""


def parser() -> Parser:
    """Return the parser of the sub-command."""
    made = Parser("graph", USAGE, DESCRIPTION, EXAMPLES)
    names = (*NAMES, "shards:K/D", "butterfly:4x2", "random:K:SEED", "lists:1,2/0/0")
    made.add_argument("graph", nargs="*", metavar="GRAPH", help="one of " + ", ".join(names))
    made.add_argument("-n", "--ranks", type=_size, metavar="RANKS", help="number of ranks")
    made.add_argument("--compare", action="store_true", help="one line of measures per graph")
    made.add_argument(
        "--format",
        type=_format,
        metavar="|".join(FORMATS),
        help="default: text, or as the ending of FILE says; png and pdf need matplotlib",
    )
    made.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of the terminal")
    made.add_argument(
        "--allow-disconnected", action="store_true", help="accept a graph that splits the ranks into groups"
    )
    return made


def _size(text: str) -> int:
    return whole(text, 1, 32768, "number of ranks", "-n 16")


def _format(text: str) -> str:
    if text not in FORMATS:
        raise unfit(f"{text!r} is not a format", nearest(text, FORMATS))
    return text


def main(arguments: Sequence[str]) -> int:
    """Run the sub-command and return its exit code."""
    parse = parser()
    options = parse.parse(arguments)
    if not options.graph and not options.compare:
        parse.error(
            "no graph is named", do="Write `malt graph halton -n 16`, or compare them: `malt graph --compare -n 16`."
        )
    form = _wanted(parse, options)
    if options.compare:
        if form != "text":
            parse.error(f"{form} is for one graph", "--compare gives a table", "Leave --format and -o out.")
        data = _compared(parse, options).encode()
    else:
        if len(options.graph) > 1:
            parse.error(f"{len(options.graph)} graphs are named; expected one", do="Compare several with --compare.")
        data = _drawn(parse, options, form)
    _write(parse, options.output, data, form if not options.compare else "")
    return 0


def _wanted(parse: Parser, options: argparse.Namespace) -> str:
    """Return the format that is asked for, by name or by what the file's name ends in."""
    suffix = os.path.splitext(options.output or "")[1].lower()
    named = SUFFIXES.get(suffix)
    if suffix and named is None and options.format is None:
        parse.error(
            f"-o {options.output!r}: {suffix!r} is not a format",
            f"it is one of {' '.join(SUFFIXES)}",
            "Write one of these, or pass --format.",
        )
    form: str = options.format or named or "text"
    if form in ("png", "pdf") and options.output is None:
        parse.error(f"{form} is not text", do=f"Write it to a file, such as -o graph.{form}.")
    return form


def _graph(parse: Parser, spec: str, options: argparse.Namespace, allow: bool) -> Graph:
    import malt

    size = options.ranks
    if size is None:
        if not spec.startswith("lists:"):
            parse.error("the number of ranks is missing", do=f"Write `malt graph {spec} -n 16`.")
        size = spec.count("/") + 1
    return malt.Graph(spec, size, allow_disconnected=allow)


def _drawn(parse: Parser, options: argparse.Namespace, form: str) -> bytes:
    try:
        graph = _graph(parse, options.graph[0], options, options.allow_disconnected)
        if form in ("png", "pdf"):
            return graph._picture(form)
        if form == "json":
            return json.dumps({"graph": graph.spec, "ranks": graph.size, "receivers": graph.lists()}).encode()
        return {"text": graph.__str__, "dot": graph.to_dot, "svg": graph.to_svg}[form]().encode()
    except ValueError as error:
        parse.error(_sentence(error))
    except ImportError as error:
        parse.error(_sentence(error), do="svg, dot and json need no package.")


def _sentence(error: Exception) -> str:
    """Return the library's sentence, with the option as it is called here."""
    text = str(error).removeprefix("malt: ")
    return text.replace("allow_disconnected", "--allow-disconnected")


def _compared(parse: Parser, options: argparse.Namespace) -> str:
    """Return a table. A graph that does not exist for this number of ranks gets a line that says so."""
    head = ("graph", "edges", "receivers", "hops", "eigenvalue", "real part", "")
    rows: list[tuple[str, ...]] = [head]
    rows += [_row(parse, spec, options) for spec in options.graph or NAMES]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    width = columns(1, sys.maxsize)
    lines = []
    for name, *numbers, note in rows:
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True))]
        row = "  ".join([*cells, note]).rstrip()
        if len(row) > width:
            lines += ["  ".join(cells), *textwrap.wrap(note, width, initial_indent="    ", subsequent_indent="    ")]
        else:
            lines.append(row)
    return "\n".join(lines) + "\n"


def _row(parse: Parser, spec: str, options: argparse.Namespace) -> tuple[str, ...]:
    try:
        return _measures(spec, _graph(parse, spec, options, allow=True))
    except ValueError as error:
        if options.graph:
            parse.error(_sentence(error))
        return (spec, *["-"] * 5, _sentence(error).partition("\n")[0])


def _measures(spec: str, graph: Graph) -> tuple[str, ...]:
    low, high = graph.degree_min, graph.degree_max
    notes = []
    if not graph.connected:
        notes.append("splits the ranks into groups that never mix")
    elif graph.smallest_real_part < -1e-9:
        notes.append("models, not gradients")
    return (
        spec,
        str(graph.edges),
        str(low) if low == high else f"{low}-{high}",
        str(graph.diameter) if graph.connected else "-",
        f"{graph.second_eigenvalue:.3f}",
        f"{graph.smallest_real_part:.3f}",
        *(notes or [""]),
    )


def _fitted(text: str, width: int) -> str:
    """Return a graph as text for a terminal; without the drawing where that is wider."""
    head, _, drawing = text.partition("\n\n")
    needed = max(map(len, drawing.splitlines()), default=0)
    if needed > width:
        drawing = f"The drawing needs {needed} columns, and this terminal has {width}: write it to a file with -o."
        drawing = "\n".join(textwrap.wrap(drawing, width))
    return "\n\n".join(filter(None, (folded(head, width), drawing)))


def _write(parse: Parser, path: str | None, data: bytes, form: str) -> None:
    if path is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        text, width = data.decode().removesuffix("\n"), columns(1, sys.maxsize)
        print(_fitted(text, width) if form == "text" else text)
        return
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        if error.errno == errno.ENOSPC and os.path.isfile(path):
            os.remove(path)  # a part is of no use
        parse.error(f"-o {path!r} cannot be written", error.strerror or "")
