"""Dataflow graphs, which need no job, and what the library knows about this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .convert import check, encoded, fields, rank_list, string, text
from .loading import ffi, lib

T = TypeVar("T")


def _graph(spec: str, size: int, allow_disconnected: bool, use: Callable[[int], T]) -> T:
    out = ffi.new("malt_handle *")
    check(lib.malt_graph_new(encoded(spec), size, allow_disconnected, out))
    try:
        return use(int(out[0]))
    finally:
        lib.malt_graph_close(out[0])


def graph_receivers(
    spec: str, size: int, allow_disconnected: bool, clock: int, ranks: Iterable[int]
) -> list[list[int]]:
    """Return whom each of ranks sends to at its clock-th scatter."""
    return _graph(
        spec,
        size,
        allow_disconnected,
        lambda g: [
            rank_list(lambda *out: lib.malt_graph_receivers(g, rank, clock, *out))  # noqa: B023 (called at once)
            for rank in ranks
        ],
    )


def graph_measures(spec: str, size: int, allow_disconnected: bool) -> dict[str, Any]:
    """Return malt_graph_measures by field name."""

    def measure(g: int) -> dict[str, Any]:
        m = ffi.new("malt_graph_measures *")
        check(lib.malt_graph_measure(g, m))
        return fields(m[0])

    return _graph(spec, size, allow_disconnected, measure)


def graph_text(spec: str, size: int, allow_disconnected: bool, form: str) -> str:
    """Return the graph as "spec", "text", "dot" or "svg"."""
    return _graph(
        spec,
        size,
        allow_disconnected,
        lambda g: text(lambda *out: lib.malt_graph_render(g, form.encode(), *out)),
    )


def inspect(what: str) -> str:
    """Return malt_inspect's text."""
    return text(lambda *out: lib.malt_inspect(what.encode(), *out))


def version() -> str:
    """Return the version of the library."""
    return string(lib.malt_version())
