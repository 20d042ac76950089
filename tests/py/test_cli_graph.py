"""``malt graph``."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import malt
from malt._cli import graph, main


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["graph", *arguments])
    return code, *capsys.readouterr()


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "halton", "-n", "16")
    assert (code, err) == (0, "")
    assert out.rstrip("\n") == str(malt.Graph("halton", 16)).rstrip("\n")


@pytest.mark.parametrize("spec", ["ring", "random:2", "random:2:7", "one-peer"])
def test_formats(capsys: pytest.CaptureFixture[str], spec: str) -> None:
    g = malt.Graph(spec, 5)
    assert call(capsys, spec, "-n", "5", "--format", "dot")[1].rstrip() == g.to_dot().rstrip()
    assert call(capsys, spec, "-n", "5", "--format", "svg")[1].rstrip() == g.to_svg().rstrip()


@pytest.mark.parametrize(
    ("name", "begin"),
    [("x.svg", "<svg"), ("x.dot", "digraph"), ("x.gv", "digraph"), ("x.txt", "chord"), ("x", "chord")],
)
def test_output_file_has_the_format_of_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, begin: str
) -> None:
    assert call(capsys, "chord", "-n", "8", "-o", str(tmp_path / name)) == (0, "", "")
    assert (tmp_path / name).read_text().startswith(begin)
    if name == "x.svg":
        ElementTree.fromstring((tmp_path / name).read_text())


def test_format_goes_before_the_name_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "chord", "-n", "8", "-o", str(tmp_path / "x.svg"), "--format", "dot")
    assert (tmp_path / "x.svg").read_text().startswith("digraph")


def test_lists_know_their_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 ranks" in call(capsys, "lists:1/2/0")[1]


def test_disconnected_graphs_are_refused_unless_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "halton-paper", "-n", "8")
    assert (code, out) == (2, "")
    assert "not strongly connected" in err
    assert "--allow-disconnected" in err
    assert "allow_disconnected" not in err
    assert call(capsys, "halton-paper", "-n", "8", "--allow-disconnected")[0] == 0


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("g.png", b"\x89PNG\r\n"),
        ("g.PDF", b"%PDF-"),
        ("g.svg", b"<svg "),
        ("g.dot", b"digraph "),
        ("g.json", b'{"graph": "ring", "ranks": 3, "receivers": [[1], [2], [0]]}'),
        ("g.txt", b"ring, 3 ranks\n"),
        ("g", b"ring, 3 ranks\n"),
    ],
)
def test_a_file_is_what_its_name_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, begins: bytes
) -> None:
    if name.endswith(("png", "PDF")):
        pytest.importorskip("matplotlib", reason="needs matplotlib: pip install matplotlib")
    assert call(capsys, "ring", "-n", "3", "-o", str(tmp_path / name)) == (0, "", "")
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_picture_without_matplotlib(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = call(capsys, "ring", "-n", "3", "-o", str(tmp_path / "g.png"))
    assert code == 2
    assert "pip install matplotlib.\nsvg, dot and json need no package." in err
    assert not (tmp_path / "g.png").exists()


def test_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--compare", "-n", "16")
    assert (code, err) == (0, "")
    head, *rows = out.splitlines()
    assert head.split() == ["graph", "edges", "receivers", "hops", "eigenvalue", "real", "part"]
    assert [row.split()[0] for row in rows] == list(graph.NAMES)
    table = {row.split()[0]: row.split()[1:] for row in rows}
    # DESIGN section 4.
    assert table["halton"][3] == "0.825"
    assert table["chord"][3] == "0.600"
    assert table["halton"][4] == "-0.600"
    assert "never mix" in out.splitlines()[1 + graph.NAMES.index("halton-paper")]


def test_comparison_of_what_there_is_for_so_many_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--compare", "-n", "6")
    assert code == 0
    assert "hypercube needs a power of two" in out
    # What was asked for by name has to be there.
    code, _, err = call(capsys, "--compare", "ring", "hypercube", "-n", "6")
    assert (code, "power of two" in err) == (2, True)


def test_comparison_of_some(capsys: pytest.CaptureFixture[str]) -> None:
    out = call(capsys, "--compare", "ring", "random:3", "-n", "5")[1]
    assert [row.split()[0] for row in out.splitlines()] == ["graph", "ring", "random:3"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_ranks(capsys: pytest.CaptureFixture[str], size: int) -> None:
    assert call(capsys, "--compare", "-n", str(size))[0] == 0
    assert call(capsys, "halton", "-n", str(size))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no graph is named"),
        (["halton"], "the number of ranks is missing"),
        (["--compare"], "the number of ranks is missing"),
        (["halton", "-n", "0"], "1 to 32768"),
        (["halton", "ring", "-n", "4"], "--compare"),
        (["haltn", "-n", "4"], 'Did you mean "halton"'),
        (["halton", "-n", "4", "--format", "jpg"], "Did you mean 'png'?"),
        (["halton", "-n", "4", "--format", "png"], "png is not text\nWrite it to a file, such as -o graph.png"),
        (
            ["halton", "-n", "4", "-o", "x.jpg"],
            "'.jpg' is not a format\nit is one of .gv .txt .dot .json .svg .png .pdf",
        ),
        (["--compare", "-n", "4", "-o", "x.png"], "png is for one graph"),
        (["halton", "-n", "4", "--fromat", "dot"], "Did you mean '--format'"),
        (["--compare", "-n", "4", "--format", "svg"], "for one graph"),
        (["halton", "-n", "4", "-o", "/no/such/x.svg"], "cannot be written"),
        (["lists:1/5/0"], "5"),
    ],
)
def test_mistakes_are_explained(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("malt graph: ")
    assert says in err


def test_reader_that_goes_away(tmp_path: Path) -> None:
    command = 'exec "$0" -m malt graph all -n 300 | head -n 1'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)
    assert done.stdout == "all, 300 ranks\n"
    assert done.stderr == ""
