"""Reads what the tests wrote: failures as they come, then the slowest tests and the transports and kernels that ran."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple


class Test(NamedTuple):
    seconds: float
    name: str
    outcome: str  # pass, fail or skip


def follow_go(record: Path) -> int:
    """Pass on `go test -json` from stdin: one line per package, the output of what failed or did not end; keep all."""
    output: dict[tuple[str, str], list[str]] = defaultdict(list)
    skipped: dict[tuple[str, str], int] = defaultdict(int)
    failed = False
    with record.open("w") as keep:
        for line in sys.stdin:
            keep.write(line)
            try:
                event = json.loads(line)
            except ValueError:  # the compiler speaks plainly
                print(line, end="", flush=True)
                continue
            action = event["Action"]
            key = (event.get("Package", event.get("ImportPath", "")), event.get("Test", ""))
            if action in ("output", "build-output"):
                output[key].append(event["Output"])
            elif action in ("fail", "build-fail"):
                failed = True
                unended = [k for k in output if k[0] == key[0]] if not key[1] else [key]
                for k in sorted(unended, reverse=True):  # the package's own verdict last
                    print("".join(output.pop(k, [])), end="", flush=True)
            elif action in ("pass", "skip"):
                lines = output.pop(key, [])
                if not key[1]:
                    print("".join(t for t in lines if re.match(r"(ok|\?|---)\s", t)), end="", flush=True)
                elif action == "skip":
                    reason = " ".join(t.strip() for t in lines if "---" not in t and "===" not in t)
                    skipped[key[0], reason] += 1
    for (package, reason), times in skipped.items():
        print(f"skipped {times}x in {package}: {reason}")
    return int(failed)


def go_tests(record: Path) -> list[Test]:
    """Return the Go tests in `record`; a test that began and did not end counts as failed."""
    tests = []
    begun = set()
    for line in record.read_text().splitlines() if record.exists() else ():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if "Test" not in event:
            continue
        name, action = f"{event['Package']}.{event['Test']}", event["Action"]
        if action == "run":
            begun.add(name)
        elif action in ("pass", "fail", "skip"):
            begun.discard(name)
            tests.append(Test(event.get("Elapsed", 0.0), name, action))
    return tests + [Test(0.0, name, "fail") for name in begun]


def py_tests(record: Path) -> list[Test]:
    """Tests in a junit file of pytest; none if it did not get that far."""
    tests = []
    for case in ET.parse(record).iter("testcase") if record.exists() else ():
        kinds = {child.tag for child in case}
        outcome = "fail" if kinds & {"failure", "error"} else "skip" if "skipped" in kinds else "pass"
        tests.append(Test(float(case.get("time", 0)), f"{case.get('classname')}.{case.get('name')}", outcome))
    return tests


def transports(tests: list[Test]) -> list[str]:
    """Names of the transports whose conformance suite passed."""
    found = (re.fullmatch(r"malt/rdma/(\w+)\.TestConformance", t.name) for t in tests if t.outcome == "pass")
    return sorted(m[1] for m in found if m)


def kernels(tests: list[Test]) -> list[str]:
    """Names of the kernels that this machine has, which all give the bits of the reference."""
    found = (
        re.fullmatch(r"malt/libmalt/reduce\.TestMeanIsSumOverCount/(\w+)", t.name) for t in tests if t.outcome == "pass"
    )
    return [m[1] for m in found if m]


def summary(go: Path, py: Path) -> None:
    """Print counts, transports, kernels, the slowest ten tests, and what failed."""
    tests = go_tests(go) + py_tests(py)
    count = {kind: sum(t.outcome == kind for t in tests) for kind in ("pass", "fail", "skip")}
    print(f"\n{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    print("transports that ran the conformance suite:", ", ".join(transports(tests)) or "none")
    print("kernels that were held against the reference:", ", ".join(kernels(tests)) or "none")
    print("slowest tests:")
    top_level = [t for t in tests if "/" not in t.name.rpartition(".")[2]]
    for t in sorted(top_level, reverse=True)[:10]:
        print(f"  {t.seconds:7.2f} s  {t.name}")
    failures = sorted(t.name for t in tests if t.outcome == "fail")
    if failures:
        print("failed, or did not end:", *failures, sep="\n  ")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["go", record]:
            sys.exit(follow_go(Path(record)))
        case ["summary", go, py]:
            summary(Path(go), Path(py))
        case _:
            sys.exit(f"usage: {sys.argv[0]} go RECORD < events, or summary GO PY")
