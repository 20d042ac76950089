"""What `make test` says about the tests is what they did."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPORT = Path(__file__).parents[1] / "report.py"


def event(action, package="malt/rdma/shm", test=None, **more):
    return json.dumps({"Action": action, "Package": package, **({"Test": test} if test else {}), **more})


EVENTS = [
    event("output", test="TestConformance", Output="=== RUN   TestConformance\n"),
    event("output", test="TestConformance/n=2/share", Output="    rank.go:1: shm: not supported\n"),
    event("skip", test="TestConformance/n=2/share", Elapsed=0),
    event("output", test="TestConformance/n=3/share", Output="    rank.go:1: shm: not supported\n"),
    event("skip", test="TestConformance/n=3/share", Elapsed=0),
    event("pass", test="TestConformance", Elapsed=2.5),
    event("output", Output="ok  \tmalt/rdma/shm\t2.500s\n"),
    event("pass", Elapsed=2.5),
]

FAILURE = [
    event("output", "malt/graphs", "TestRing", Output="    ring_test.go:7: rank 3 is missing\n"),
    event("fail", "malt/graphs", "TestRing", Elapsed=0.25),
    event("output", "malt/graphs", Output="FAIL\tmalt/graphs\t0.3s\n"),
    event("fail", "malt/graphs", Elapsed=0.3),
]

HANGS = [
    event("run", "malt/graphs", "TestHalton"),
    event("run", "malt/graphs", "TestHalton/n=3"),
    event("output", "malt/graphs", "TestHalton/n=3", Output="panic: test timed out after 20m0s\n"),
    event("output", "malt/graphs", Output="FAIL\tmalt/graphs\t1200.0s\n"),
    event("fail", "malt/graphs", Elapsed=1200.0),
]

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.py.test_a" name="test_slow" time="9.75"/>
<testcase classname="tests.py.test_a" name="test_bad" time="0.1"><failure/></testcase>
<testcase classname="tests.py.test_a" name="test_left" time="0"><skipped/></testcase>
</testsuite></testsuites>"""


def report(*args, stdin=""):
    return subprocess.run([sys.executable, REPORT, *args], input=stdin, capture_output=True, text=True, check=False)


def follow(path, events):
    return report("go", str(path), stdin="\n".join(events) + "\n")


def test_passing_packages_take_a_line_and_skips_are_counted(tmp_path):
    done = follow(tmp_path / "go.json", EVENTS)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "ok  \tmalt/rdma/shm\t2.500s",
        "skipped 2x in malt/rdma/shm: rank.go:1: shm: not supported",
    ]


def test_failures_show_their_output_and_count(tmp_path):
    done = follow(tmp_path / "go.json", EVENTS + FAILURE)
    assert done.returncode == 1
    assert "ring_test.go:7: rank 3 is missing" in done.stdout


def test_what_did_not_end_shows_its_output_and_has_failed(tmp_path):
    done = follow(tmp_path / "go.json", EVENTS + HANGS)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:3] == ["panic: test timed out after 20m0s", "FAIL\tmalt/graphs\t1200.0s"]
    lines = report("summary", str(tmp_path / "go.json"), str(tmp_path / "py.xml")).stdout.splitlines()
    assert "1 passed, 2 failed, 2 skipped" in lines
    failed = lines.index("failed, or did not end:")
    assert lines[failed + 1 :] == ["  malt/graphs.TestHalton", "  malt/graphs.TestHalton/n=3"]


@pytest.mark.parametrize("action", ["build-fail", "fail"])
def test_what_does_not_compile_fails(tmp_path, action):
    lines = [
        json.dumps({"ImportPath": "malt/graphs", "Action": "build-output", "Output": "graph.go:1: syntax error\n"}),
        json.dumps({"ImportPath": "malt/graphs", "Action": action}),
    ]
    done = follow(tmp_path / "go.json", lines)
    assert done.returncode == 1
    assert "syntax error" in done.stdout


def test_words_besides_events_are_passed_on(tmp_path):
    done = follow(tmp_path / "go.json", ["go: downloading something", *EVENTS])
    assert done.returncode == 0
    assert "go: downloading something" in done.stdout


def test_summary_counts_ranks_and_names_transports(tmp_path):
    of_kernel = {"Action": "pass", "Package": "malt/libmalt/reduce", "Test": "TestMeanIsSumOverCount/avx2"}
    follow(tmp_path / "go.json", [*EVENTS, *FAILURE, json.dumps(of_kernel)])
    (tmp_path / "py.xml").write_text(JUNIT)
    lines = report("summary", str(tmp_path / "go.json"), str(tmp_path / "py.xml")).stdout.splitlines()
    assert "3 passed, 2 failed, 3 skipped" in lines
    assert "transports that ran the conformance suite: shm" in lines
    assert "kernels that were held against the reference: avx2" in lines
    slowest = lines[lines.index("slowest tests:") + 1 :]
    assert slowest[0].split() == ["9.75", "s", "tests.py.test_a.test_slow"]
    assert slowest[1].split() == ["2.50", "s", "malt/rdma/shm.TestConformance"]
    assert slowest.index("failed, or did not end:") <= 10


def test_summary_without_records_says_so(tmp_path):
    done = report("summary", str(tmp_path / "go.json"), str(tmp_path / "py.xml"))
    assert done.returncode == 0
    assert "0 passed, 0 failed, 0 skipped" in done.stdout
    assert "none" in done.stdout
