"""``malt doctor`` and ``malt --version``."""

from __future__ import annotations

import glob
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import malt
from malt._cli import doctor, main
from malt._cli.doctor import OK, PROBLEM, WARNING, Finding

GIB = 1 << 30


def test_this_machine() -> None:
    done = subprocess.run([sys.executable, "-m", "malt", "doctor"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    *lines, _ = done.stdout.splitlines()
    found = [line.split(None, 1) for line in lines if not line.startswith(" ")]
    assert {level for level, _ in found} <= {OK, WARNING}
    about = done.stdout
    parts = ("memory", "kernels", "cores", "binding", "open files", "mappings")
    for words in ("python", f"library      {malt.__version__}", *parts):
        assert words in about
    assert "shm          works" in about
    assert "two ranks    met, exchanged and left" in about


def test_problems_give_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for levels, code in (([OK], 0), ([OK, WARNING, OK], 0), ([PROBLEM, OK, WARNING], 1)):
        monkeypatch.setattr(doctor, "findings", lambda levels=levels: [Finding(x, "a", "b", "c") for x in levels])
        assert main(["doctor"]) == code
        assert capsys.readouterr().out.count("do: c") == len(levels)


def test_library_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise ImportError("libmalt.so.0: cannot open shared object file")

    monkeypatch.setattr(doctor, "inspect", broken)
    found = list(doctor.findings())
    assert [f.about for f in found if f.level == PROBLEM] == ["library"]
    assert "cannot open" in found[1].found
    assert "cores" in [f.about for f in found], "the rest is still checked"


def memory(free: float) -> dict[str, Any]:
    return {"free": int(free * GIB), "total": 8 * GIB, "limit": "the control group"}


@pytest.mark.parametrize(
    ("check", "level", "says"),
    [
        (lambda: doctor._memory(memory(4)), OK, "4.0 GiB can be used of 8.0 GiB (limit: the control group)"),
        (lambda: doctor._memory(memory(0.5)), WARNING, "0.5 GiB"),
        (lambda: doctor._memory(memory(0.1)), PROBLEM, "0.1 GiB"),
        (lambda: doctor._kernels("avx512"), OK, "avx512"),
        (lambda: doctor._kernels("go"), WARNING, "go"),
        (lambda: doctor._library({"version": "0.0.1", "abi": 1, "system": "x"}), PROBLEM, "0.0.1"),
        (lambda: doctor._transport("shm", True, ""), OK, "works"),
        (lambda: doctor._transport("shm", False, "memfd_create: EPERM"), PROBLEM, "memfd_create: EPERM"),
    ],
)
def test_judgements(check: Callable[[], Finding], level: str, says: str) -> None:
    found = check()
    assert found.level == level
    assert says in found.found
    assert (found.level == OK) == (not found.remedy)


def fabric(state: str, *, why: str = "", hardware: bool = True) -> dict[str, Any]:
    about = {"provider": "verbs;ofi_rxm", "device": "mlx5_0", "library": "1.17"}
    return {"state": state, "wanted": "", "why": why, "hardware": hardware, **about}


@pytest.mark.parametrize(
    ("found", "lockable", "level", "says"),
    [
        (fabric("off"), 0, OK, "(MALT_FABRIC)"),
        (fabric("no device"), 0, OK, "no device"),
        (fabric("no library", why="x.so: cannot open"), 0, WARNING, "x.so: cannot open"),
        (fabric("failed", why="fi_endpoint: no"), 0, WARNING, "fi_endpoint: no"),
        (fabric("memlock", why="it needs 22528 KiB"), 64, WARNING, "it needs 22528 KiB"),
        (fabric("works"), 8 << 20, WARNING, "a write to itself arrived; it can lock 8 MiB"),
        (fabric("works"), resource.RLIM_INFINITY, OK, "verbs;ofi_rxm on mlx5_0, libfabric 1.17: a write to itself"),
        (fabric("works"), resource.RLIM_INFINITY, OK, "arrived; jobs use it with MALT_FABRIC=auto"),
        (fabric("works", hardware=False), 8 << 20, OK, "a write to itself arrived"),
    ],
)
def test_fabric(found: dict[str, Any], lockable: int, level: str, says: str) -> None:
    judged = doctor._fabric(found, lockable)
    assert judged.level == level
    assert says in judged.found
    assert (level == OK) == (not judged.remedy)


@pytest.mark.parametrize(
    ("setting", "library", "state"),
    [
        ("off", "", "off"),
        ("verbs", "/none/libfabric.so.1", "no library"),
        ("tcp;ofi_rxm", "", "works"),
        ("nonesuch", "", "failed"),
    ],
)
def test_fabric_of_this_machine(monkeypatch: pytest.MonkeyPatch, setting: str, library: str, state: str) -> None:
    monkeypatch.setenv("MALT_FABRIC", setting)
    monkeypatch.setenv("MALT_LIBFABRIC", library)
    found = doctor.inspect()["fabric"]
    if found["state"] == "no library" and not library and os.environ.get("MALT_NEED") != "libfabric":
        pytest.skip(f"apt install libfabric1: {found['why']}")
    assert (found["state"], found["wanted"]) == (state, setting)
    assert (found["provider"], found["hardware"]) == ("tcp;ofi_rxm" if state == "works" else "", False)


@pytest.mark.parametrize(("setting", "state"), [("off", "off"), ("auto", "no device"), ("tcp;ofi_rxm", "works")])
def test_libfabric_is_mapped_only_where_it_is_used(setting: str, state: str) -> None:
    if state == "no device" and glob.glob("/sys/class/infiniband/*"):
        pytest.skip("there is a device")
    program = (
        "from malt._cli import doctor\n"
        "print(doctor.inspect()['fabric']['state'], 'libfabric' in open('/proc/self/maps').read(), sep=',')"
    )
    env = os.environ | {"MALT_FABRIC": setting}
    done = subprocess.run([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True, check=True)
    if done.stdout == "no library,False\n" and os.environ.get("MALT_NEED") != "libfabric":
        pytest.skip("apt install libfabric1")
    assert done.stdout == f"{state},{state == 'works'}\n"


def test_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(affinity: int, usable: int, machine: int) -> tuple[str, str]:
        monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda _: set(range(affinity)))
        monkeypatch.setattr(doctor.os, "cpu_count", lambda: machine)
        monkeypatch.setattr("malt._ranks.machine.cores", lambda: usable)
        found = doctor._cores()
        return found.level, found.found

    assert judge(8, 8, 8) == (OK, "8: use at most 8 ranks")
    assert judge(4, 4, 8)[0] == OK
    assert judge(8, 2, 8)[0] == WARNING
    assert judge(1, 1, 1)[0] == WARNING


def test_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALT_BIND", raising=False)
    assert "malt run --bind" in doctor._binding().found
    monkeypatch.setenv("MALT_BIND", "1")
    assert "(MALT_BIND)" in doctor._binding().found


def test_limits() -> None:
    none = list(doctor._limits(lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
    assert [f.level for f in none] == [OK, OK]
    some = list(doctor._limits(lambda _: (GIB, GIB)))
    assert [f.level for f in some] == [WARNING, WARNING]
    assert [f.remedy for f in some] == ["ulimit -f unlimited", "ulimit -v unlimited"]


def test_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, level in ((resource.RLIM_INFINITY, OK), (4096, OK), (256, WARNING)):
        monkeypatch.setattr(doctor.resource, "getrlimit", lambda _, soft=soft: (soft, 4096))
        assert doctor._files().level == level


def test_settings_of_the_kernel() -> None:
    def levels(maps: int | None, overcommit: int | None) -> list[str]:
        values = {"/proc/sys/vm/max_map_count": maps, "/proc/sys/vm/overcommit_memory": overcommit}
        return [f.level for f in doctor._settings(values.get)]

    assert levels(65530, 0) == [OK]
    assert levels(1000, 1) == [WARNING]
    assert levels(65530, 2) == [OK, WARNING]
    assert levels(None, None) == []


@pytest.mark.parametrize(
    ("result", "says"),
    [([1.5, 1.0], "got the means"), (malt.PeerError("rank 1 was killed by SIGSYS", 1), "rank 1 was killed by SIGSYS")],
)
def test_ranks_that_cannot_work_together(monkeypatch: pytest.MonkeyPatch, result: Any, says: str) -> None:
    def run(*_: object, **__: object) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(malt, "run", run)
    found = doctor._exchange()
    assert (found.level, says in found.found) == (PROBLEM, True)


def test_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "x"]) == 2
    assert "'x' was not expected here" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"malt {malt.__version__}\n"
