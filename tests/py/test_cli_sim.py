"""``malt sim``: its command line. What it does is tested in ``tests/net``."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import NoReturn

import pytest

from malt._cli import main, sim
from malt._sim import kernel, programs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--", "true"], ["the number of hosts is missing", "--hosts 4"]),
        (["--hosts", "0", "--", "true"], ["'0' is not a number of hosts", "1 to 250"]),
        (["--hosts", "2"], ["nothing to run", "malt sim --hosts 4 train.py"]),
        (["--hosts", "2", "--"], ["nothing to run"]),
        (
            ["--hosts", "2", "hostname", "-x"],
            ["put a program that does not use MALT after --", "`malt sim --hosts 4 -- hostname -x`"],
        ),
        (["--hosts", "2", "no-such.py"], ["there is no script 'no-such.py'"]),
        (["--hosts", "2", "-n", "0", "train.py"], ["'0' is not a number of ranks"]),
        (["--hosts", "2", "-n", "2", "--", "true"], ["-n is for a script\n"]),
        (["--hosts", "2", "--", "no such program"], ["there is no program 'no such program'\nit is neither in PATH"]),
        (["--hosts", "2", "--", "-x"], ["'-x' is not a program\noptions of malt sim come before --"]),
        (["--host", "2", "--", "true"], ["there is no option --host", "'--hosts'"]),
        (["--hosts", "2", "--rate", "1000", "--", "true"], ["--rate", "'1000' is not a rate", "100Mbit"]),
        (["--hosts", "2", "--rate", "1bit", "--", "true"], ["'1bit' is not a rate", "from 8kbit on"]),
        (["--hosts", "2", "--delay", "5", "--", "true"], ["--delay", "'5' is not a time", "5ms"]),
        (["--hosts", "2", "--delay", "61s", "--", "true"], ["'61s' is not a time", "up to 60s"]),
        (["--hosts", "2", "--loss", "0.01", "--", "true"], ["--loss", "'0.01' is not a part", "5%"]),
        (["--hosts", "2", "--loss", "101%", "--", "true"], ["'101%' is not a part"]),
    ],
)
def test_a_wrong_command_line_says_what_to_do(
    arguments: Sequence[str], said: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("malt sim: ")
    assert all(part in err for part in said), err


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("rate", "1Gbit", 1e9),
        ("rate", "2.5 mbit", 2.5e6),
        ("rate", "8kbit", 8e3),
        ("rate", "9600bit", 9600),
        ("delay", "5ms", 0.005),
        ("delay", "250us", 250e-6),
        ("delay", ".5s", 0.5),
        ("loss", "1%", 0.01),
        ("loss", "100%", 1),
    ],
)
def test_quantities(option: str, text: str, value: float) -> None:
    assert getattr(sim.parser().parse([f"--{option}", text]), option) == pytest.approx(value)


def test_help_shows_the_examples_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sim", "--help"])
    shown = capsys.readouterr().out
    assert "malt sim --hosts 2 --loss 1% -- python measure.py" in shown
    assert "such as 1%\n" in shown


@pytest.fixture
def nothing_found() -> None:
    """Forget what programs were found, before and after."""
    programs.found.cache_clear()


def test_a_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nothing_found: None
) -> None:
    monkeypatch.setattr(programs, "_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["sim", "--hosts", "2", "--", "/bin/true"]) == 2
    err = capsys.readouterr().err
    assert "needs the program ip" in err
    assert "apt install iproute2" in err


def test_a_machine_that_refuses_namespaces_says_what_helps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: int) -> NoReturn:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(kernel, "unshare", refuse)
    monkeypatch.setattr("malt._sim.isolation.found", lambda name: name)
    assert main(["sim", "--hosts", "2", "--", "true"]) == 2
    err = capsys.readouterr().err
    assert "Operation not permitted" in err
    assert "kernel.apparmor_restrict_unprivileged_userns" in err
    assert "--privileged" in err
