"""The example scripts as jobs of 2 and 4 ranks: what they print is what their texts promise."""

from __future__ import annotations

import functools
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from datasets import needed
from launching import LONG

EXAMPLES = Path(__file__).parents[2] / "examples"


@functools.cache  # several tests compare with the same serial run
def job(ranks: int, script: str, *args: str) -> str:
    """Run a script of the folder as so many ranks; return what they printed."""
    command = [sys.executable, "-m", "malt", "run", "-n", str(ranks), script, *args]
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    found = [float(number) for number in re.findall(pattern, text)]
    assert found, text
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_svm_learns_as_much_per_pass_as_alone(ranks: int) -> None:
    right = numbers(r"(0\.\d+) of 19100", job(ranks, "svm.py"))
    assert len(right) == ranks
    assert len(set(right)) == 1, "all ranks end with one model"
    assert right[0] > 0.946  # serial: 0.9505


@pytest.mark.parametrize("ranks", [2, 4])
def test_gradients_make_the_serial_steps(ranks: int) -> None:
    """The mean of the ranks' gradients is that of the serial batch: the same accuracy but for rounding and order."""
    right = numbers(r"(0\.\d+) of 19100", job(ranks, "gradients.py", "--passes=1"))
    alone = numbers(r"(0\.\d+) of 19100", job(1, "gradients.py", "--passes=1"))
    assert len(set(right)) == 1
    assert right[0] == pytest.approx(alone[0], abs=0.003)


@pytest.mark.parametrize(("ranks", "graph"), [(1, "all"), (4, "all"), (4, "butterfly")])
@pytest.mark.parametrize("data", [None, "cnr-2000"])
def test_pagerank_is_that_of_one_process(
    ranks: int, graph: str, data: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To 1e-6 of each score; of what MALT_DATA has, and of the made-up graph."""
    if data is not None:
        needed(data)
    else:
        monkeypatch.delenv("MALT_DATA", raising=False)
    monkeypatch.syspath_prepend(EXAMPLES)
    links = __import__("pagerank").read(os.environ.get("MALT_DATA"))
    pages = int(links.max()) + 1
    out = np.bincount(links[:, 0], minlength=pages)
    scores = np.full(pages, 1 / pages)
    for _ in range(10):
        share = np.divide(scores, out, out=np.zeros(pages), where=out > 0)
        come = np.bincount(links[:, 1], share[links[:, 0]], pages)
        scores = 0.15 / pages + 0.85 * (come + scores[out == 0].sum() / pages)
    done = subprocess.run(
        [sys.executable, "-m", "malt", "run", "-n", str(ranks), "pagerank.py", f"--graph={graph}"],
        cwd=EXAMPLES, capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {int(page): float(score) for page, score in re.findall(r"(\d+) (0\.\d+)$", done.stdout, re.MULTILINE)}
    best = np.argsort(-scores, kind="stable")[:5]
    assert list(found.values()) == pytest.approx(scores[best], abs=1e-6)
    assert list(found.values()) == pytest.approx(scores[list(found)], abs=1e-6)  # equal ones come in any order


@pytest.mark.parametrize("data", [None, "rcv1-ccat"])
def test_logistic_has_the_serial_weights(data: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank has the weights of its own words alone, and they are those of one process but for rounding."""
    if data is not None:
        needed(data)
    else:
        monkeypatch.delenv("MALT_DATA", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    script = tmp_path / "keep.py"
    script.write_text(
        "import malt, logistic, numpy as np\n"
        "words, w = logistic.main(['--iterations=20'])\n"
        f"np.savez(f'{tmp_path}/{{malt.rank()}}.npz', words=words, w=w)\n"
    )
    assert len(set(numbers(r"(0\.\d+) of", job(4, str(script))))) == 1
    all_words, alone = importlib.import_module("serial.logistic").main(["--iterations=20"])
    for rank in range(4):
        kept = np.load(tmp_path / f"{rank}.npz")
        at = np.searchsorted(all_words, kept["words"])
        assert len(at) < len(all_words)
        assert (all_words[at] == kept["words"]).all()
        assert np.abs(kept["w"] - alone[at]).max() < 1e-12 * np.abs(alone).max()


@pytest.mark.parametrize("ranks", [2, 4])
def test_scikit_learn_keeps_up(ranks: int) -> None:
    pytest.importorskip("sklearn")
    right = numbers(r"(0\.\d+) of 19100", job(ranks, "sgd_sklearn.py"))
    alone = numbers(r"(0\.\d+) of 19100", job(1, "sgd_sklearn.py"))
    assert len(set(right)) == 1
    assert right[0] > alone[0] - 0.005


@pytest.mark.parametrize("ranks", [2, 4])
def test_kmeans_finds_centres_as_good(ranks: int) -> None:
    pytest.importorskip("sklearn")
    far = numbers(r"centres: (\d+\.\d+)", job(ranks, "kmeans_sklearn.py", "--rows=20000"))
    alone = numbers(r"centres: (\d+\.\d+)", job(1, "kmeans_sklearn.py", "--rows=20000"))
    assert len(set(far)) == 1
    assert far[0] < 1.05 * alone[0]


@pytest.mark.parametrize("ranks", [2, 4])
def test_one_average_per_epoch_lags_behind(ranks: int) -> None:
    losses = numbers(r"loss (\d\.\d+)", job(ranks, "one_average_per_epoch.py", "--passes=2"))
    often = numbers(r"loss (\d\.\d+)", job(ranks, "local_sgd.py", "--passes=2", "--every=1000", "--momentum=0"))
    assert losses[1] < losses[0] < 0.18
    assert often[-1] < losses[-1]


@pytest.mark.parametrize("ranks", [2, 4])
def test_outer_momentum_is_no_worse(ranks: int) -> None:
    text = job(ranks, "local_sgd.py", "--passes=2")
    plain = job(ranks, "local_sgd.py", "--passes=2", "--momentum=0")
    with_it, without = (numbers(r"loss (\d\.\d+)", out)[-1] for out in (text, plain))
    assert with_it == pytest.approx(without, rel=0.03)


@pytest.mark.parametrize("ranks", [2, 5])
def test_parameter_server_carries_all_bytes(ranks: int) -> None:
    text = job(ranks, "parameter_server.py", "--passes=1", "--k=2")
    assert min(numbers(r"(0\.\d+) of 19100", text)) > 0.92  # of four workers .937 to .943
    server, *workers = sorted(numbers(r"sent (\d+\.\d) MB", text), reverse=True)
    assert len(workers) == ranks - 1
    assert server > max(workers) or ranks == 2


def test_network_of_scikit_learn_is_as_good_as_alone() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    needed("mnist")
    right = numbers(r"(0\.\d+) of 10000", job(4, "mlp_sklearn.py", "--rate=0.08", "--passes=1"))
    assert len(set(right)) == 1
    assert right[0] > 0.9535 - 0.005  # serial, --rate=0.02: 0.9535


@pytest.mark.skipif(
    not os.environ.get("MALT_DATA"), reason="MALT_DATA is not set: the ratings are not in the repository"
)
@pytest.mark.parametrize("ranks", [2, 4])
def test_factorisation_loses_nothing(ranks: int) -> None:
    """The sum of row changes keeps up with the serial program within 1 %."""
    alone = numbers(r"RMSE (\d\.\d+)", job(1, "mf.py", "--passes=4"))
    errors = numbers(r"RMSE (\d\.\d+)", job(ranks, "mf.py", "--passes=4"))
    assert len(set(errors)) == 1
    assert errors[0] == pytest.approx(alone[0], rel=0.01)


@pytest.mark.skipif(bool(os.environ.get("MALT_DATA")), reason="MALT_DATA is set")
def test_factorisation_says_what_it_needs() -> None:
    done = subprocess.run([sys.executable, "mf.py"], cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MALT_DATA is not set" in done.stderr
