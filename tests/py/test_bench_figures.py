"""The arithmetic behind `make bench`: ratios, verdicts, and what the table says of them."""

from __future__ import annotations

import math

import pytest

from bench import numbers, plots, rows, table
from bench.rows import Row, Target
from bench.turns import Result
from bench.verdict import MET, MISSED, NOISY, UNKNOWN, judge, too_noisy, totals

PROCESSES = ("start-import", "start-run", "put-seen-go")
"""Rows that are whole processes."""

GRAPHS = ["all", "ring", "chord", "halton", "halton-paper", "random:3", "hypercube", "star", "one-peer"]


def row(**target):
    return Row("an average", "sync", 4, 1 << 20, Target(**target))


def test_summary_and_quantiles():
    assert numbers.summary([5.0, 1.0, 2.0]) == (2.0, 1.0, pytest.approx(4.4))
    assert numbers.quantile([7.0], 0.9) == 7.0
    assert numbers.quantile([0.0, 10.0], 0.25) == 2.5


def test_ratios_are_taken_start_by_start():
    # Each start was disturbed as a whole, so nothing of that is in the ratios.
    assert numbers.ratio([2.0, 20.0, 200.0], [1.0, 10.0, 100.0]) == (2.0, 2.0, 2.0)
    with pytest.raises(ValueError, match="longer"):
        numbers.ratio([1.0], [1.0, 2.0])


@pytest.mark.parametrize("count", [1, 2, 5, 7, 8, 10, 11, 15, 20])
def test_the_median_is_within_the_span_in_nine_cases_of_ten(count):
    """Of all ways in which so many values can lie above and below the median, which are equally likely."""
    span = numbers.span([float(place) for place in range(count)])
    assert (span.low + span.high) / 2 == span.middle == (count - 1) / 2

    def beside(rank):
        return 2 * sum(math.comb(count, below) for below in range(rank + 1)) / 2**count

    assert beside(int(span.low)) <= 0.1 or span.low == 0
    assert beside(int(span.low) + 1) > 0.1


def test_time_after_the_last_arrival():
    first, late = [(0.0, 7.0), (10.0, 12.5), (20.0, 29.0)], [(5.0, 6.0), (10.0, 13.0), (27.0, 28.0)]
    assert numbers.after_last([first, late]) == 2.0
    assert numbers.after_last([late]) == 1.0


@pytest.mark.parametrize(
    ("again", "limit", "word"),
    [
        ([1.0, 1.0], 1.3, MET),
        ([1.25, 1.25], 1.3, MET),
        ([1.4, 1.4], 1.3, NOISY),  # the two differ more than the figure does from the bound
        ([0.7, 0.7], 1.3, NOISY),
        ([0.7, 0.7], 0.9, NOISY),
        ([0.7, 0.7], 0.5, MISSED),
        ([], 1.3, MET),
    ],
)
def test_a_difference_of_malt_from_itself_leaves_smaller_ones_undecided(again, limit, word):
    samples = {"malt": [1.0, 1.0], "limit": [1.0, 1.0], "malt again": again}
    verdict = judge(row(limit=limit), samples, {})
    assert verdict.word == word
    assert verdict.peer == ""
    assert (verdict.to_itself and verdict.to_itself.middle) == (again[0] if again else None)


def test_a_difference_of_malt_from_itself_counts_for_every_demand():
    samples = {"malt": [1.0], "malt again": [1.2], "limit": [0.5], "mpich": [1.1]}
    other = {row().key: {"malt": [1.0]}}
    asked = {"peer": 1, "limit": 2.1, "most": 1.1, "over": 0.6, "after": (row().key, 1.1, "that")}
    assert set(judge(row(**asked), samples, other).demands.values()) == {NOISY}
    assert set(judge(row(**asked), {**samples, "malt again": [1.01]}, other).demands.values()) == {MET}


def test_totals():
    met, missed = (judge(row(most=most), {"malt": [1.0]}, {}) for most in (2.0, 0.5))
    asked = [met, met, missed, judge(row(most=1.0), {}, {}), judge(row(), {"malt": [1.0]}, {})]
    assert totals(asked) == "4 rows with targets: 2 met, 1 missed, 0 undecided, 1 not measured"


def test_table_of_sizes_has_bandwidths_of_nccl_tests():
    """https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md: bus is algorithm times 2(n-1)/n."""
    result = Result(Row("an average", "write-sync", 4, 1 << 20))
    for turns in ([1e-3, 2e-3, 2e-3], [2e-3, 4e-3, 2e-3]):
        result.add("malt", turns)
    result.add("limit", [1e-3])
    assert result.samples == {"malt": [2e-3, 2e-3], "limit": [1e-3]}
    assert table.sizes([result]).splitlines()[-2:] == [
        "| 1 MB | 4 | limit | 1 ms | 1 ms | 1 ms | 1.05 | 1.57 |",
        "| 1 MB | 4 | malt | 1 ms | 2 ms | 4 ms | 0.524 | 0.786 |",
    ]


@pytest.mark.parametrize(
    ("own", "word"),
    [([1.0, 1.1, 1.2], MET), ([2.0, 2.1, 2.2], MISSED), ([1.0, 1.3, 9.0], NOISY), ([], MISSED)],
)
def test_limit(own, word):
    # What MALT alone does not end is missed.
    samples = {"malt": own, "limit": [1.0] * len(own)} if own else {"limit": [1.0]}
    assert judge(row(limit=1.3), samples, {}).word == word


def test_best_peer_is_the_one_with_the_least_median():
    samples = {"malt": [1.0, 1.0], "openmpi": [6.0, 6.0], "openmpi bound": [4.0, 4.0], "limit": [0.5, 0.5]}
    verdict = judge(row(peer=5), samples, {})
    assert (verdict.peer, verdict.to_peer, verdict.word) == ("openmpi bound", (4.0, 4.0, 4.0), MISSED)
    assert judge(row(peer=4), samples, {}).word == MET


def test_demands_in_the_rows_own_unit_and_after_another_row():
    first = {"malt": [1e-6, 1e-6]}
    key = row().key
    after = (key, 2.5, "one rank per core")
    own = {"malt": [2e-6, 2e-6], "limit": [1.5e-6, 1.5e-6]}
    assert judge(row(most=3e-6, over=1e-6, after=after), own, {key: first}).demands == {
        "<= 3 us": MET,
        "<= 1 us over": MET,
        "<= 2.5x one rank per core": MET,
    }
    assert judge(row(most=1e-6), own, {}).word == MISSED
    assert judge(row(over=0.1e-6), own, {}).word == MISSED
    assert judge(row(after=(key, 1.5, "one")), own, {key: first}).word == MISSED
    assert judge(row(after=(key, 1.5, "one")), own, {}).word == UNKNOWN


def test_noise():
    met = judge(row(most=2.0, limit=9.0), {"malt": [1.0] * 4, "limit": [1.0] * 4}, {})
    undecided = judge(row(most=2.0, limit=9.0), {"malt": [1.0, 1.0, 3.0, 3.0], "limit": [1.0] * 4}, {})
    nothing_asked = judge(row(), {"malt": [1.0, 1.0, 3.0, 3.0]}, {})
    assert [v.word for v in (met, undecided, nothing_asked)] == [MET, NOISY, ""]
    assert too_noisy([met, undecided], 0.1) == ""
    assert too_noisy([met] * 4 + [nothing_asked] * 4, 0.1) == ""
    assert "2 of 6 demands are undecided" in too_noisy([met, undecided, undecided], 0.1)
    assert "kept 3.0 cores busy, 0 of 8" in too_noisy([met] * 4, 3.0)


@pytest.mark.parametrize(
    ("slow", "best", "word"),
    [
        ([50.0, 2.0, 90.0, 800.0], [6.0, 6.1, 6.2, 6.0], MET),  # a slow peer may do what it likes
        ([50.0, 2.0, 90.0, 800.0], [3.0, 3.1, 3.2, 3.0], MISSED),
        ([50.0, 50.0, 50.0, 50.0], [6.0, 60.0, 6.0, 6.0], MET),  # on one side of the bound in all starts
        ([50.0, 50.0, 50.0, 50.0], [6.0, 4.0, 6.0, 4.0], NOISY),
    ],
)
def test_only_noise_of_what_is_compared_leaves_a_row_undecided(slow, best, word):
    samples = {"malt": [1.0] * 4, "gloo": slow, "openmpi": best}
    verdict = judge(row(peer=5), samples, {})
    assert (verdict.peer, verdict.word) == ("openmpi", word)


@pytest.mark.parametrize(
    ("first", "own", "word"),
    [
        ([1.0, 1.0, 1.0], [2.9, 2.9, 2.9], MET),
        ([1.0, 1.2, 1.4], [2.9, 2.9, 2.9], MET),
        ([0.8, 1.0, 1.2], [2.9, 2.9, 2.9], NOISY),  # the row of one rank per core is as noisy as this one
        ([1.0, 1.0, 1.0], [2.6, 2.9, 3.4], NOISY),
        ([0.8, 1.0, 1.2], [3.9, 3.9, 3.9], MISSED),
    ],
)
def test_after_another_row_the_noise_of_both_counts(first, own, word):
    assert judge(row(after=(row().key, 3, "one")), {"malt": own}, {row().key: {"malt": first}}).word == word


def test_table_marks_what_misses_and_says_why_something_is_missing():
    left_out = {"gloo": "a rank\nhas ended", "nccl": "a rank has ended", "by hand": "no answer"}
    result = Result(row(peer=5), {"malt": [1e-3] * 3, "mpich": [2e-3] * 3}, left_out)
    text = table.line(result, judge(result.row, result.samples, {}))
    assert "1 MB" in text
    assert "mpich 2 ms" in text
    assert "<<< >= 5x peer: MISSED" in text
    assert text.endswith("\n    without gloo, nccl: a rank has ended\n    without by hand: no answer")
    assert "mpich" in table.detail([result])
    nothing = Result(row(limit=1.3), {}, {"malt": "would need too much"})
    assert "not measured" in table.line(nothing, judge(nothing.row, {}, {}))


def test_table_for_a_page():
    result = Result(row(peer=5), {"malt": [1e-3] * 3, "mpich": [2e-3] * 3}, {"gloo": "a rank has ended"})
    nothing = Result(row(limit=1.3), {}, {"malt": "would need too much"})
    text = table.markdown([result, nothing], [judge(each.row, each.samples, {}) for each in (result, nothing)])
    first, _, head, _, full, empty = text.splitlines()
    assert first == "2 rows with targets: 0 met, 1 missed, 0 undecided, 1 not measured."
    assert {line.count("|") for line in (head, full, empty)} == {12}
    assert "| 1 MB | 1 ms |  |  | mpich 2 ms; without gloo | 2.00 |  | >= 5x peer | missed |" in full
    assert "|  |  |  |  |  |  | <= 1.3x limit | not measured |" in empty


def test_curves_need_two_points():
    small, large, other = (Result(Row("", "sync", n, size), {"malt": [1.0]}) for n, size in ((4, 8), (4, 16), (2, 8)))
    by_size = plots.curves([large, small, other], lambda r: r.row.size, lambda r: f"{r.row.ranks} ranks")
    assert by_size == {("sync", "4 ranks"): {"malt": [(8, 1.0), (16, 1.0)]}}


@pytest.mark.parametrize("cores", [1, 2, 4, 8, 16, 64])
def test_rows(cores):
    made = rows.rows(cores)
    keys = {r.key for r in made}
    asked_of = [r for r in made if r.target != Target()]
    assert len(asked_of) + len(PROCESSES) <= 25
    assert not {"sync", "allreduce", "sync-graph"} & {r.op for r in asked_of}  # of arrays that nobody writes
    assert {r.options["consistency"] for r in asked_of if r.op == "write-graph"} == {"ssp:3", "async"}
    assert {r.target.after[0] for r in made if r.target.after} <= keys
    asked = {(r.op, r.ranks, r.size) for r in made}
    assert {("scatter", k + 1, 64 << 20) for k in (1, 3, 7, 15)} <= asked
    assert {("gather", k + 1, 64 << 10) for k in (1, 3, 7)} <= asked
    assert {("write-sync", n, 1 << 20) for n in (cores, 2 * cores)} <= asked
    assert {r.options["late"] for r in made if r.op == "skew"} == {0, 50e-6, 500e-6, 3000e-6}
    graphs = {
        name: {r.ranks for r in made if r.options.get("graph") == name and r.op == "sync-graph"} for name in GRAPHS
    }
    assert all(ranks == {cores, 16, 32} for ranks in graphs.values()), graphs
    assert {r.op for r in rows.tiny(made, cores)} == {r.op for r in made}
    assert [r.size for r in rows.sizes(cores)] == [4**power for power in range(1, 15)]
