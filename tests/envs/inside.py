"""Run in an environment: what its packages make possible works, and what is missing is named with the way to get it.

The arguments are packages that have to be there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import malt


def svmlight() -> None:
    Path("rows.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    x, y = malt.load("rows.svm")
    assert x.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0]]
    assert y.tolist() == [1, -1]


def parquet() -> None:
    Path("rows.parquet").write_bytes(b"PAR1")
    malt.load("rows.parquet")


def pandas() -> None:
    malt.load("rows.csv", frame="pandas")


def url() -> None:
    if installed("fsspec"):
        import fsspec

        fsspec.filesystem("memory").pipe("/rows.csv", b"1,2\n3,4\n")
    assert malt.load("memory://rows.csv").tolist() == [[1, 2], [3, 4]]


def torch() -> None:
    v = malt.torch.Vector(__import__("torch").nn.Linear(3, 1))
    v.sync()
    v.allreduce()


def sklearn() -> None:
    if not installed("scikit-learn"):
        malt.sklearn.Vector(None)
        raise AssertionError("malt.sklearn.Vector without scikit-learn was accepted")
    from sklearn.naive_bayes import MultinomialNB

    v = malt.sklearn.Vector(MultinomialNB().partial_fit([[1, 0], [0, 1]], [0, 1], classes=[0, 1]))
    v.sync()
    v.allreduce()
    assert v.estimator.predict([[2, 1]]).tolist() == [0]


def ray() -> None:
    malt.ray.run(sorted, 1)


def dask() -> None:
    malt.dask.run(sorted, 1)


def function() -> None:
    assert malt.run(lambda: malt.size(), 2) == [2, 2]


def notebook() -> None:
    if not installed("ipykernel"):
        malt.load_ipython_extension(None)
        raise AssertionError("%load_ext malt without IPython was accepted")
    from jupyter_client.manager import start_new_kernel

    said: list[Any] = []
    manager, client = start_new_kernel()
    try:
        for cell in ["%load_ext malt", "%%malt -n 2 -o ranks\nimport malt\nranks = malt.rank()", "print(ranks)"]:
            reply = client.execute_interactive(cell, timeout=60, output_hook=said.append)
            assert reply["content"]["status"] == "ok", [m["content"] for m in said]
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    assert said[-2]["content"]["text"] == "[0, 1]\n", [m["content"] for m in said]


class Use(NamedTuple):
    package: str
    """As pip calls it."""
    run: Callable[[], None]
    advice: str
    """What the error has to say where the package is missing."""
    error: type[Exception] = malt.PackageError


def needs(package: str) -> str:
    return rf"^malt: .* needs {package}, which is not installed\nInstall it: pip install {package}\.$"


USES = [
    Use("scipy", svmlight, needs("scipy")),
    Use("pyarrow", parquet, needs("pyarrow")),
    Use("pandas", pandas, needs("pandas")),
    Use("fsspec", url, needs("fsspec")),
    Use("torch", torch, needs("torch")),
    Use("scikit-learn", sklearn, needs("scikit-learn")),
    Use("ipykernel", notebook, needs("IPython")),
    Use("ray", ray, needs("ray")),
    Use("dask", dask, needs(r"dask\[distributed\]")),
    Use("cloudpickle", function, r"\nDefine it in a module, or pip install cloudpickle\.$", TypeError),
]


def installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def base() -> None:
    """Use what needs nothing but numpy."""
    Path("rows.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    assert malt.load("rows.csv").tolist() == [[1, 2, 3], [4, 5, 6]]
    v = malt.Vector(np.arange(4, dtype=np.float32), graph="halton", consistency="ssp:2")
    v.array += 1
    v.sync()
    v.allreduce()
    assert v.array.tolist() == [1, 2, 3, 4]
    assert malt.run(sorted, 2, args=([2, 1],)) == [[1, 2], [1, 2]]


def refusal(use: Use) -> str:
    """Return what is said where the package is missing."""
    try:
        use.run()
    except use.error as e:
        return str(e)
    raise AssertionError(f"{use.run.__name__} worked without {use.package}")


def main() -> None:
    base()
    lost = [package for package in sys.argv[1:] if not installed(package)]
    assert not lost, f"not in this environment: {lost}"
    works, missing = [], []
    for use in USES:
        if installed(use.package):
            use.run()
            works.append(use.package)
        else:
            said = refusal(use)
            assert re.search(use.advice, said), said
            missing.append(use.package)
    print(f"used with {', '.join(works) or 'nothing more'}, asked for {', '.join(missing)}")


if __name__ == "__main__":
    main()
