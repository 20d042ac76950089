"""Importing the package: light, lazy, complete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG

import malt
from malt._need import need


def python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG)
    return result.stdout


def test_import_loads_neither_the_library_nor_numpy() -> None:
    loaded = python(
        "import sys, malt; print('numpy' in sys.modules, 'malt._malt' in sys.modules, 'malt._lib' in sys.modules)"
    )
    assert loaded.split() == ["False", "False", "False"]
    assert "libmalt" not in python("import malt, numpy; print(open('/proc/self/maps').read())")


def test_import_costs_next_to_nothing_beside_numpy() -> None:
    # A count instead of a time: what is imported beyond what numpy imports anyway.
    more = json.loads(
        python(
            "import sys, json, numpy; before = set(sys.modules); import malt; "
            "print(json.dumps(sorted(set(sys.modules) - before)))"
        )
    )
    assert set(more) <= {"malt", "malt._frames", "malt._job", "malt._job.identity", "__future__"}


def test_a_plain_loop_loads_neither_openssl_nor_sockets() -> None:
    """They take megabytes of each rank; `Vector.distance` and some launchers need them."""
    loaded = python("import sys, malt; malt.Vector(3).sync(); print(*{'hashlib', 'socket', 'ssl'} & set(sys.modules))")
    assert not loaded.split()


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(malt.__all__) == malt.__all__
    for name in malt.__all__:
        assert getattr(malt, name).__doc__, name
    assert set(malt.__all__) < set(dir(malt))


def test_exceptions_are_errors_and_the_builtin_of_their_meaning() -> None:
    pairs = [
        (malt.TimeoutError, TimeoutError),
        (malt.PeerError, ConnectionError),
        (malt.StaleError, RuntimeError),
        (malt.UnsupportedError, NotImplementedError),
        (malt.StateError, RuntimeError),
        (malt.MismatchError, ValueError),
        (malt.OutOfMemoryError, MemoryError),
        (malt.HostError, OSError),
        (malt.PackageError, ImportError),
    ]
    for ours, builtin in pairs:
        assert issubclass(ours, malt.Error)
        assert issubclass(ours, builtin)


def test_a_peer_error_keeps_its_rank_when_pickled() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(malt.PeerError("rank 3 is dead", 3, "ended", "so")))
    assert (error.rank, error.kind, error.why, str(error)) == (3, "ended", "so", "rank 3 is dead")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Vectr'"):
        _ = malt.Vectr


def test_the_version_is_that_of_the_library() -> None:
    from malt import _lib

    assert malt.__version__ == _lib.version()


def test_a_missing_package_is_named_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        malt.PackageError, match=r"(?s)^malt: reading this needs no_such_one, which is not.*pip install no_such"
    ):
        need("no_such_one.part", "reading this")
    (tmp_path / "broken_one.py").write_text("import no_such_other")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        malt.PackageError, match=r"installed but does not load.*no_such_other(?s:.*)pip install broken-one"
    ):
        need("broken_one", "reading this", package="broken-one")
