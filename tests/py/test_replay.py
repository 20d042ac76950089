"""Recorded runs and their replays: the same bits, however fast each rank is."""

from __future__ import annotations

import re
from pathlib import Path

import jobs
import pytest

ROUNDS = 20

EXAMPLES = Path(__file__).parents[2] / "examples"

# A gather that finds something of every other rank; then the examples, on small data, many times in one
# job. In each another rank is slower in every sync, and in the replay another one again.
PROGRAM = f"""
import hashlib, types
v = malt.Vector(4, consistency="async")
v.scatter()
malt.barrier()
v.gather()
sys.path.insert(0, {str(EXAMPLES)!r})
random = np.random.default_rng(1)
def ratings(count):
    return random.integers(0, 40, count), random.integers(0, 30, count), random.integers(1, 6, count).astype(float)
sys.modules["movielens"] = types.SimpleNamespace(
    shuffled=lambda: ratings(3000), read=lambda part: ratings(500), Numbers=np.ndarray, Stars=np.ndarray)
import mf, splice, svm
whole = splice.shuffled()
splice.shuffled = lambda: tuple(part[:800] for part in whole)
splice.read = lambda part: tuple(part[-100:] for part in whole)
svm.EVERY, mf.BATCH = 10, 4
sync = malt.Vector.sync
def slower(v, **how):
    if r == (int(os.environ["SLOW"]) + again) % n:
        time.sleep(0.0005)
    return sync(v, **how)
malt.Vector.sync = slower
for again in range({ROUNDS + 5}):
    consistency = "async" if again < {ROUNDS} else "ssp:2"
    for name, model in (
        ("svm", svm.main(["--k", "1", "--passes", "1", "--consistency", consistency])),
        ("mf", mf.main(["--passes", "1"])),
    ):
        print(name, consistency, hashlib.sha256(model.tobytes()).hexdigest())
"""

TWO = """
v = malt.Vector(4, consistency="async", name="w")
for step in range({steps}):
    v.array += r + 1
    v.sync()
print(v.array[0])
"""


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_replay_has_the_same_bits(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    wanted = jobs.run(4, PROGRAM, env={"MALT_RECORD": str(first), "SLOW": "1"})
    got = jobs.run(4, PROGRAM, env={"MALT_REPLAY": str(first), "MALT_RECORD": str(second), "SLOW": "2"})
    assert got == wanted
    for example in "svm async", "mf async":
        models = [line for line in wanted[0].splitlines() if line.startswith(example)]
        assert len(models) >= ROUNDS
        assert len(set(models)) > 1, "no two recordings differ"
    assert files(first) == files(second)
    assert sorted(files(first)) == [f"rank-{r}-of-4" for r in range(4)]
    assert re.match(rb'".*"\n\[\d+,\d+,0,\d+,2,\d+,3,\d+\]\n', files(first)["rank-1-of-4"])


def test_a_run_that_is_longer_than_the_recorded_one(tmp_path: Path) -> None:
    jobs.run(2, TWO.format(steps=3), env={"MALT_RECORD": str(tmp_path)})
    with jobs.Job(2, TWO.format(steps=5), env={"MALT_REPLAY": str(tmp_path)}) as job:
        ranks = job.finish()
    assert [rank.process.returncode for rank in ranks] == [0, 0]
    for rank in ranks:
        assert rank.err.text.count("w: the recorded run ends here, and gathers fold what has come") == 1


def test_a_disk_that_is_full_ends_the_recording_and_not_the_job(tmp_path: Path) -> None:
    (tmp_path / "rank-1-of-2").symlink_to("/dev/full")
    with jobs.Job(2, TWO.format(steps=3), env={"MALT_RECORD": str(tmp_path)}) as job:
        ranks = job.finish()
    assert [rank.process.returncode for rank in ranks] == [0, 0]
    assert ranks[1].err.text.count("w: rank 1 records no more\nwrite ") == 1
    assert "no space left on device" in ranks[1].err.text
    assert len((tmp_path / "rank-0-of-2").read_text().splitlines()) == 1 + 3


def test_a_vector_of_another_size_is_refused(tmp_path: Path) -> None:
    jobs.run(2, TWO.format(steps=3), env={"MALT_RECORD": str(tmp_path)})
    with jobs.Job(2, TWO.format(steps=3).replace("(4, ", "(5, "), env={"MALT_REPLAY": str(tmp_path)}) as job:
        ranks = job.finish()
    assert [rank.process.returncode for rank in ranks] == [1, 1]
    for rank in ranks:
        assert "MismatchError: malt: malt.Vector does not make what it made in the recorded run" in rank.err.text
        assert re.search(r"^this run: .*float64\[5\].*\nrecorded: .*float64\[4\]", rank.err.text, re.M), rank.err.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("v.gather()", "rank 0 is at clock 0, and was at 1"),
        ("if r == 1: sys.exit()\nv.scatter(); v.gather()", "or left, without its clock 1"),
    ],
)
def test_another_program_is_refused(tmp_path: Path, change: str, words: str) -> None:
    record = "v = malt.Vector(4, consistency='async')\nv.scatter(); malt.barrier(); v.gather()"
    jobs.run(2, record, env={"MALT_RECORD": str(tmp_path)})
    with jobs.Job(2, "v = malt.Vector(4, consistency='async')\n" + change, env={"MALT_REPLAY": str(tmp_path)}) as job:
        err = job.finish()[0].err.text
    assert "MismatchError: malt: v.gather does not do what it did in the recorded run" in err
    assert words in err


@pytest.mark.parametrize(
    ("env", "script", "words"),
    [
        ({"MALT_REPLAY": "{}/none"}, "", "MALT_REPLAY: there is no recording of rank 0 of 2"),
        ({"MALT_REPLAY": "{}/bad"}, "", "MALT_REPLAY: line 2 of "),
        ({"MALT_RECORD": "{}/bad/rank-0-of-2"}, "", "MALT_RECORD: this run cannot be recorded"),
        ({"MALT_RECORD": "{}", "MALT_REPLAY": "{}"}, "", "MALT_RECORD and MALT_REPLAY name the same folder"),
        ({"MALT_RECORD": "{}", "MALT_ON_DEATH": "continue"}, "", "do not go with on_death=continue"),
        ({"MALT_RECORD": "{}", "MALT_TRANSPORT": "tcp"}, "", "are for ranks that share memory"),
        (
            {"MALT_RECORD": "{}"},
            "malt.Vector(4, graph='butterfly', consistency='async', fold='sum-changes')",
            "fold=sum-changes on graph=butterfly:2 can be neither recorded nor replayed",
        ),
    ],
)
def test_what_cannot_be_recorded(tmp_path: Path, env: dict[str, str], script: str, words: str) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    for r in range(2):
        (bad / f"rank-{r}-of-2").write_text("[1,1,1,1]\n[1,2,7,1]\n[1,3,1")
    env = {key: value.replace("{}", str(tmp_path)) for key, value in env.items()}
    with jobs.Job(2, script, env=jobs.by_tcp() | env if "MALT_TRANSPORT" in env else env) as job:
        ranks = job.finish()
    assert [rank.process.returncode for rank in ranks] == [1, 1]
    said = [rank.err.text for rank in ranks]
    assert any(words in text for text in said), said  # of the other one it may be that this one has left
