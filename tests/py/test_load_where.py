"""Where ``malt.load`` finds files: folders, globs, URLs, other machines, and what it says when it does not."""

from __future__ import annotations

import functools
import gzip
import http.server
import importlib
import io
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import LONG
from loads import Loads, checked, mine

import malt

ORDERS = ("block", "stride", "shuffle")
CSV = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(50))


def npy(array: np.ndarray) -> bytes:
    f = io.BytesIO()
    np.save(f, array)
    return f.getvalue()


FILES = {
    "x.csv": CSV,
    "x.csv.gz": gzip.compress(CSV),
    "x.npy": npy(np.array([[i, i * i] for i in range(50)], float)),
    "f.npy": npy(np.asfortranarray([[i, i * i] for i in range(50)], float)),
    "x.npz": b"",
    "x.parquet": b"",
}


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    whole = np.load(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", x=whole)
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.table({"a": whole[:, 0], "b": whole[:, 1]}), tmp_path / "x.parquet", row_group_size=7
    )
    return tmp_path


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, by ranges if asked to."""

    ranges = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not (self.ranges and asked):
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        low = int(asked[1])
        part = data[low : int(asked[2]) + 1 if asked[2] else None]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {low}-{low + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def end_headers(self) -> None:
        if self.ranges:
            self.send_header("Accept-Ranges", "bytes")
        super().end_headers()


@pytest.fixture(name="served", params=[True, False], ids=["ranges", "whole"])
def _served(folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    pytest.importorskip("aiohttp", reason="aiohttp, by which fsspec reads http URLs, is not installed")
    handler = type("Handler", (Server,), {"ranges": request.param})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def check(loads: Loads, url: str) -> None:
    for order in ORDERS:
        for rank, part in enumerate(checked(loads(3, url, order=order))):
            x = part["x"] if isinstance(part, dict) else part
            assert x[:, 0].tolist() == mine(50, rank, 3, order).tolist()
            assert x[:, 1].tolist() == (x[:, 0] ** 2).tolist()


@pytest.mark.parametrize("name", FILES)
def test_http(loads: Loads, served: str, name: str) -> None:
    check(loads, f"{served}/{name}")


@pytest.fixture(name="memory")
def _memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, bytes], None]]:
    """Put files into the file system in memory of fsspec.

    Whoever opens a file there gets the same object, with one position: ranks that
    are threads would move each other's. Here everybody gets a file of their own.
    """
    fs = pytest.importorskip("fsspec").filesystem("memory")
    files: dict[str, bytes] = {}
    monkeypatch.setattr(type(fs), "_open", lambda _, path, **more: io.BytesIO(files[path]))

    def put(path: str, data: bytes) -> None:
        files[path] = data
        fs.store[path] = importlib.import_module("fsspec.implementations.memory").MemoryFile(fs, path, data)

    yield put
    for path in files:
        del fs.store[path]


@pytest.mark.parametrize("name", FILES)
def test_a_file_system_of_fsspec(loads: Loads, folder: Path, memory: Callable[[str, bytes], None], name: str) -> None:
    memory(f"/there/{name}", (folder / name).read_bytes())
    check(loads, f"memory://there/{name}")


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_here_by_their_url(loads: Loads, folder: Path, name: str) -> None:
    pytest.importorskip("fsspec")
    check(loads, f"file://{folder}/{name}")


def test_a_file_system_with_one_position_for_all_who_open_a_file() -> None:
    fs = pytest.importorskip("fsspec").filesystem("memory")
    for i in range(3):
        fs.pipe(f"/shared/{i}.csv", b"\xef\xbb\xbf%d,%d\n" % (i, i))
    assert malt.load("memory://shared/*.csv").tolist() == [[0, 0], [1, 1], [2, 2]]
    fs.rm("/shared", recursive=True)


def test_a_glob_elsewhere(loads: Loads, memory: Callable[[str, bytes], None]) -> None:
    for i in range(5):
        memory(f"/there/{i}.txt.gz", gzip.compress(f"{i}\n".encode() * 3))
    parts = checked(loads(4, "memory://there/*.txt.gz"))
    assert [int(x) for part in parts for x in part] == sorted([0, 1, 2, 3, 4] * 3)
    with pytest.raises(FileNotFoundError, match=r"no file matches 'memory://there/\*.csv'"):
        malt.load("memory://there/*.csv")
    with pytest.raises(IsADirectoryError, match="there is a folder\nPass its files, such as 'memory://there/"):
        malt.load("memory://there", format="csv")


def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.csv").write_bytes(CSV)
    monkeypatch.chdir(tmp_path)
    mistakes: list[tuple[Any, type[Exception], str]] = [
        (
            "trian.csv",
            FileNotFoundError,
            r"no file 'trian.csv'\nthe working directory is /.*\nDid you mean 'train.csv'\?",
        ),
        ("data/x.csv", FileNotFoundError, r"there is no folder 'data'"),
        ("*.svm", FileNotFoundError, r"no file matches '\*.svm'\nthe working directory"),
        (".", IsADirectoryError, r"\. is a folder\nPass its files, such as '\./\*'"),
        ([], ValueError, "an empty list"),
        (3, TypeError, "load of 3\nexpected a path, a URL, or a list"),
        ("memory://none.csv", FileNotFoundError, "no file 'memory://none.csv'"),
        ("nosuch://x.csv", ValueError, "nosuch://x.csv\n.*nosuch"),
    ]
    for path, error, says in mistakes:
        if "://" in str(path):
            pytest.importorskip("fsspec")
        with pytest.raises(error, match=says):
            malt.load(path)
    with pytest.raises(TypeError, match=r"Pass a file, such as malt.load"):
        malt.load()


def test_ranks_that_do_not_see_the_same_files_say_so(loads: Loads, tmp_path: Path) -> None:
    for rank, text in enumerate(["a,b\n1,2\n", "a,b\n1,2\n", "a,b\n1,22\n", "a,b\n1,3\n"]):
        (tmp_path / str(rank)).mkdir()
        (tmp_path / str(rank) / "x.csv").write_text(text)
    (tmp_path / "2" / "y.csv").write_text("")

    def differ(ranks: list[int], path: str = "x.csv") -> str:
        results = loads(len(ranks), lambda rank: tmp_path / str(ranks[rank]) / path)
        assert {type(e) for e in results} == {malt.MismatchError}
        assert len({str(e) for e in results}) == 1
        return str(results[0])

    assert len(checked(loads(2, lambda rank: tmp_path / str(rank) / "x.csv"))) == 2
    assert "do not see the same files\nx.csv has 8 bytes on rank 0, 9 on rank 2" in differ([0, 1, 2])
    assert "x.csv has 8 bytes on ranks 0 and 1, but begins differently" in differ([0, 3])
    assert "1 files on rank 0, 2 on rank 1 (not on both: y.csv)" in differ([0, 2], "*.csv")


def test_ranks_that_want_different_things_say_so(loads: Loads, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(CSV)
    for e in loads(2, tmp_path / "x.csv", order=lambda rank: ["block", "stride"][rank]):
        assert isinstance(e, malt.MismatchError)
        assert "order=block on rank 0 and stride on rank 1\nPass the same on all ranks." in str(e)


def test_a_file_that_one_rank_has_not_is_an_error_on_all(loads: Loads, tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "x.csv").write_bytes(CSV)
    here, missing = loads(2, lambda rank: tmp_path / str(rank) / "x.csv")
    assert isinstance(missing, FileNotFoundError)
    assert isinstance(here, malt.MismatchError)
    assert "load failed on rank 1: there is no file" in str(here)


@pytest.mark.parametrize(
    ("package", "path", "options", "what"),
    [
        ("scipy", "x.svm", "", "load of SVMlight files, which become a csr_matrix, needs scipy"),
        ("pyarrow", "x.parquet", "", "load of Parquet files needs pyarrow"),
        ("fsspec", "s3://bucket/x.csv", "", "load of the URL s3://bucket/x.csv needs fsspec"),
        ("pandas", "x.csv", ", frame='pandas'", "load with frame='pandas' needs pandas"),
        ("polars", "x.csv", ", frame='polars'", "load with frame='polars' needs polars"),
    ],
)
def test_a_missing_package_is_named(tmp_path: Path, package: str, path: str, options: str, what: str) -> None:
    (tmp_path / "x.svm").write_text("1 1:1\n")
    (tmp_path / "x.csv").write_bytes(CSV)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    code = f"""
import sys
sys.modules[{package!r}] = None  # as if it were not installed
import malt
try:
    malt.load({path!r}{options})
except malt.PackageError as e:
    print(e)
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=LONG)
    assert result.stdout.startswith(f"malt: {what}, which is not installed\nInstall it: pip install {package}."), (
        result.stderr
    )


def test_what_a_url_needs_besides_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    if shutil.which("hdfs"):
        pytest.skip("this machine has Hadoop")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(malt.PackageError, match=r"s3://bucket/x.csv\nInstall s3fs"):
        malt.load("s3://bucket/x.csv")
