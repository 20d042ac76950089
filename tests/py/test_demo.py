"""The demo: data and features against their definition, steps against slow twins, the table, and a short run."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launching import LONG

import splice
import svm
from demo import table
from demo.worker import Run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def train():
    return splice.read("train")


@pytest.fixture(scope="module")
def test():
    return splice.read("test")


def shuffled(part, count, k):
    letters, labels = part
    order = np.random.default_rng(5).permutation(len(labels))[:count]
    return splice.features(letters[order], k), labels[order]


# ---- the data


@pytest.mark.parametrize(("part", "count", "positive"), [("train", 173_612, 0.330), ("test", 19_100, 0.329)])
def test_data_is_whole(part, count, positive, request):
    letters, labels = request.getfixturevalue(part)
    assert letters.shape == (count, 102)
    assert set(np.unique(labels)) == {-1.0, 1.0}
    assert (labels > 0).mean() == pytest.approx(positive, abs=5e-4)
    assert (letters[:, 60:62] == [0, 2]).all()  # the AG of every window


def test_train_and_test_share_no_sequence(train, test):
    seen = {row.tobytes() for row in train[0]}
    assert not any(row.tobytes() in seen for row in test[0])


def test_broken_data_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(splice, "DATA", tmp_path)
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(b"+1 ACGT\n"))
    with pytest.raises(ValueError, match="not a whole number of lines"):
        splice.read("train")
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(b"+1 " + b"N" * 102 + b"\n"))
    with pytest.raises(ValueError, match="a letter other than ACGT"):
        splice.read("train")


# ---- the features


def slow_features(letters, k):
    """The definition in data/splice-site/README.md, letter by letter."""
    text = "".join("ACGT"[i] for i in letters)
    out, offset = [], 0
    for n in range(1, k + 1):
        places = len(text) - n + 1
        for position in range(places):
            code = 0
            for letter in text[position : position + n]:
                code = 4 * code + "ACGT".index(letter)
            out.append(offset + position * 4**n + code)
        offset += places * 4**n
    return out


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_features_are_positional_kmers(test, k):
    rows = splice.features(test[0][:20], k)
    assert rows.tolist() == [slow_features(letters, k) for letters in test[0][:20]]


@pytest.mark.parametrize(("k", "parameters", "per_window"), [(1, 408, 102), (3, 8_424, 303), (6, 531_432, 597)])
def test_sizes_are_those_of_the_readme(test, k, parameters, per_window):
    rows = splice.features(test[0][:50], k)
    assert splice.parameters(k) == parameters
    assert rows.shape[1] == per_window
    assert 0 <= rows.min() <= rows.max() < parameters
    assert all(len(set(row)) == per_window for row in rows.tolist())


# ---- the model


def dense(rows, size):
    """Rows as a matrix, each of unit length."""
    x = np.zeros((len(rows), size))
    np.put_along_axis(x, rows.astype(np.int64), 1.0, axis=1)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_step_is_the_textbook_step(train):
    rows, labels = shuffled(train, 600, 2)
    w = np.zeros(splice.parameters(2))
    svm.sgd(w, rows[:100], labels[:100], 0)  # blocks of any length give the same model
    svm.sgd(w, rows[100:], labels[100:], 100)

    slow = np.zeros_like(w)
    for t, (x, label) in enumerate(zip(dense(rows, len(w)), labels, strict=True)):
        step = 0.5 / (svm.LAMBDA * (t + 2500))
        hinge = label * (slow @ x) < 1
        slow -= step * svm.LAMBDA * slow
        if hinge:
            slow += step * label * x
    np.testing.assert_allclose(w, slow, rtol=1e-10, atol=1e-10)


def test_loss_is_the_objective(train):
    rows, labels = shuffled(train, 700, 3)
    w = np.random.default_rng(1).normal(size=splice.parameters(3))
    margins = labels * (dense(rows, len(w)) @ w)
    want = sum(max(0.0, 1 - m) for m in margins) / len(margins) + 1e-5 / 2 * sum(w**2)
    assert svm.loss(w, rows, labels) == pytest.approx(want, rel=1e-12)


def test_reaches_the_known_optimum_for_k_1(train, test):
    """liblinear's optimum for k = 1, λ = 1e-5 is f = 0.19829 with test accuracy 0.9239; none can be below it."""
    rows, labels = shuffled(train, None, 1)
    w, mean, count = np.zeros(splice.parameters(1)), np.zeros(splice.parameters(1)), 0
    for done in range(3):
        for i in range(0, len(rows), 1000):
            svm.sgd(w, rows[i : i + 1000], labels[i : i + 1000], done * len(rows) + i)
            if done > 0:
                mean += w
                count += 1
    mean /= count
    assert 0.19829 <= svm.loss(mean, rows, labels) < 1.006 * 0.19829
    right = np.sign(svm.scores(mean, splice.features(test[0], 1))) == test[1]
    assert right.mean() == pytest.approx(0.9239, abs=0.002)


# ---- the table


def run(seconds, examples, loss):
    return Run(seconds, examples, loss, accuracy=0.9, step=2.0, waiting=0.1, exchange=0.05, sent=1.5, folded=4, age=0.5)


def test_table_counts_time_to_the_serial_loss():
    serial = table.Entry(1, "", "", [run([1.0, 2.0, 3.0, 4.0], [10, 20, 30, 40], [0.5, 0.4, 0.201, 0.2])])
    quick = table.Entry(4, "all", "bsp", [run([0.2, 0.5, 0.9, 1.0], [10, 20, 30, 40], [0.5, 0.3, 0.2, 0.19])])
    goal = table.target(serial.runs[0], 40)
    assert goal == pytest.approx(0.202)
    assert table.reached(serial.runs[0], goal) == (3.0, 30)
    row = table.row(quick, serial, [goal], cores=4)
    assert row["ranks"] == "4"
    assert row["time to target"] == "0.900 s"
    assert row["speed-up"] == "3.33"
    assert row["in examples"] == "4.00"  # four ranks shared the 30 examples


def test_table_takes_medians_and_never_arriving_is_slowest():
    serial = table.Entry(1, "", "", [run([1.0], [10], [0.2])] * 3)
    runs = [run([0.1], [10], [0.2]), run([0.5], [10], [0.2]), run([0.1], [10], [0.9])]
    row = table.row(table.Entry(2, "halton", "async", runs), serial, [0.2] * 3, cores=2)
    assert row["time to target"] == "0.500 s"
    lost = [runs[0], runs[2], runs[2]]
    row = table.row(table.Entry(2, "halton", "async", lost), serial, [0.2] * 3, cores=2)
    assert row["time to target"] == "not reached"
    assert "speed-up" not in row


def test_table_marks_more_ranks_than_cores():
    serial = table.Entry(1, "", "", [run([1.0], [10], [0.2])])
    entry = table.Entry(4, "all", "bsp", serial.runs)
    assert table.row(entry, serial, [0.2], cores=4)["ranks"] == "4"
    row = table.row(entry, serial, [0.2], cores=2)
    assert row["ranks"] == "4*"
    assert "4*" in table.text([row])


def test_the_speed_up_is_said_in_words_also_where_there_is_none():
    def row(ranks, speed_up):
        who = {"program": "scikit-learn", "ranks": ranks, "graph": "all", "consistency": "bsp"}
        return {**who, **({"speed-up": speed_up} if speed_up else {})}

    rows = [{"program": "scikit-learn", "ranks": "serial"}, row("2", "1.80"), row("4", "2.71")]
    alone = "scikit-learn in one process."
    assert table.verdict(rows) == f"The fastest, 4 ranks (all, bsp), reached the loss 2.7 times as fast as {alone}"
    slower = f"No speed-up: the fastest, 2 ranks (all, bsp), took 1.2 times as long as {alone}"
    assert table.verdict([rows[0], row("2", "0.80")]) == slower
    assert table.verdict([row("2*", "0.80")]) == f"{slower} More ranks than cores take turns."
    assert table.verdict([row("2", "1.04")]) == f"No speed-up: the fastest, 2 ranks (all, bsp), took as long as {alone}"
    assert table.verdict([row("2", None)]) == f"No speed-up: no run with several ranks reached the loss of {alone}"


def test_where_the_time_goes_adds_up():
    serial = run([1.0, 2.0, 3.0], [1_000_000, 2_000_000, 3_000_000], [0.5, 0.2, 0.1])  # 2 µs for an example, less 1 s
    two = run([1.0, 1.8, 2.8], [1_000_000, 2_400_000, 3_000_000], [0.4, 0.2, 0.1])
    two.waiting, two.exchange = 0.25, 0.125
    parts = table.spent(two, 2, serial, 0.2)
    expected = {"serial / ranks": 1.0, "statistics": 0.4, "waiting": 0.45, "exchange": 0.225, "slower steps": -0.275}
    assert parts == pytest.approx(expected)
    assert sum(parts.values()) == pytest.approx(1.8)
    assert table.spent(two, 2, serial, 0.05) is None

    entries = [table.Entry(2, "all", "bsp", [two], "Python"), table.Entry(2, "ring", "bsp", [run([1.0], [10], [0.9])])]
    lines = table.breakdown(entries, table.Entry(1, "", "", [serial]), [0.2]).splitlines()
    assert lines[0].split()[-1] == "together"
    assert lines[1:] == [line for line in lines if line.startswith("Python, 2 ranks, all, bsp")]
    assert lines[1].endswith("1.800 s")


# ---- a short run of it all


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The demo on few windows: its output folder and what it printed."""
    out = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "demo", "-n", "1", "2", "--rows=4000", "--k=2", "--repeats=1", f"--out={out}"],
        cwd=ROOT / "examples",
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done.stdout


def test_demo_prints_a_table_and_draws(short):
    out, printed = short
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    told = (out / "table.txt").read_text()
    verdicts = re.findall(r"^(?:The fastest, |No speed-up: ).*$", told, re.MULTILINE)
    assert [line.split()[-4] for line in verdicts] == ["scikit-learn", "Python"]
    modes = [("all", "bsp"), ("halton", "ssp:2"), ("halton", "async")]
    rows = [["scikit-learn", str(n), *mode] for n in (1, 2) for mode in modes]
    rows += [["Python", str(n), *modes[0]] for n in (1, 2)]
    lines = [line.split()[:4] for line in told.splitlines()]
    assert [line for line in lines if line in rows] == rows
    assert told.partition("\n\n")[2].strip() in printed


def test_demo_as_one_rank_is_the_serial_program(short):
    """G1, on the demo: the same losses bit for bit, whatever program, graph and consistency."""
    out, _ = short
    assert len(list(out.glob("*-1-*.json"))) == 6
    for path in out.glob("*-1-*.json"):
        serial = json.loads((out / f"{path.name.partition('-1-')[0]}-1-serial-.json").read_text())[0]
        alone = json.loads(path.read_text())[0]
        assert alone["loss"] == serial["loss"]
        assert alone["examples"] == serial["examples"]


def test_demo_learns_with_two_ranks(short):
    out, _ = short
    assert len(list(out.glob("*-2-*.json"))) == 4
    for path in out.glob("*-2-*.json"):
        both = json.loads(path.read_text())[0]
        assert both["examples"][-1] == 10_000  # 2.5 passes over 4,000
        in_step = path.stem.endswith("bsp")  # else they may drift apart; log(2) has learned nothing
        assert both["loss"][-1] < (0.45 if in_step else 0.65)
        assert both["seconds"] == sorted(both["seconds"])
        numbers = splice.parameters(2) + path.name.startswith("scikit-learn")  # which has an intercept
        assert both["sent"] == pytest.approx(5 * 8 * numbers / 1e6)  # 5 syncs to one neighbour


def test_demo_refuses_too_few_passes():
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--passes=1"], cwd=ROOT / "examples", capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "at least 2" in done.stderr
