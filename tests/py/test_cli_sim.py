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
        (["--hosts", "2", "-n", "2,0", __file__], ["a machine with 0 ranks only votes"]),
        (["--hosts", "3", "-n", "2,2", __file__], ["-n 2,2 is for 2 hosts\n", "--hosts says 3"]),
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
        (["--hosts", "2", "--at", "2:off:h1", "--", "true"], ["--at: '2' is not a time", "such as 2s:off:h1"]),
        (["--hosts", "2", "--at", "off:h1", "--", "true"], ["--at: 'off' is not a time"]),
        (["--hosts", "2", "--at", "2s", "--", "true"], ["--at: '2s' is not an event"]),
        (["--hosts", "2", "--at", "2s:kill:h1", "--", "true"], ["--at: 'kill:h1' is not an event", "such as off:h1"]),
        (
            ["--hosts", "2", "--at", "2s:off:h2", "--", "true"],
            ["2s:off:h2: there is no host h2\nthe hosts are h0"],
        ),
        (
            ["--hosts", "2", "--at", "3s:heal:h0-h1", "--at", "4s:cut:h0", "--", "true"],
            ["--at 3s:heal:h0-h1: that changes nothing", "nothing left to heal"],
        ),
        (
            ["--hosts", "2", "--at", "3s:cut:h0->h1", "--at", "2s:cut:h0-h1", "--", "true"],
            ["--at 3s:cut:h0->h1: that changes nothing", "nothing left to cut"],
        ),
        (
            ["--hosts", "3", "--at", "3s:heal:h0-h1", "--at", "2000ms:off:h1", "--", "true"],
            ["--at 3s:heal:h0-h1: host h1 is off at that time"],
        ),
    ],
)
def test_a_wrong_command_line_says_what_to_do(
    arguments: Sequence[str], said: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("malt sim: ")
    assert all(part in err for part in said), err


def test_a_variable_is_refused_once_for_all_hosts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALT_ON_DEATH", "continu")
    assert main(["sim", "--hosts", "2", __file__]) == 2
    assert "malt sim: MALT_ON_DEATH: 'continu' is not known\nDid you mean 'continue'?" in capsys.readouterr().err


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


def test_events_come_in_the_order_of_their_times() -> None:
    given = ["--at", "1s:heal:h0", "--at", "2ms:cut:h0", "--at", "1s:off:h0"]
    plan = sim._plan(sim.parser().parse(given).at, 2, pytest.fail)
    assert [moment.text for moment in plan] == ["2ms:cut:h0", "1s:heal:h0", "1s:off:h0"]


def test_help_shows_the_examples_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sim", "--help"])
    shown = capsys.readouterr().out
    assert "malt sim --hosts 2 --loss 1% -- python measure.py" in shown
    assert "such as 1%\n" in shown
    assert "--at '2s:cut:h0->h2'" in shown


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


def test_a_firewall_is_asked_for_only_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def found(name: str) -> str:
        asked.append(name)
        raise programs.SimError(f"a simulated network needs the program {name}")

    monkeypatch.setattr(programs, "found", found)
    monkeypatch.setattr("malt._sim.isolation.found", found)
    for event in ("1s:cut:h1", "1s:cut=reject:h1"):
        assert main(["sim", "--hosts", "2", "--at", event, "--", "true"]) == 2
    assert asked == ["ip", "nft"]
    assert "needs the program nft" in capsys.readouterr().err


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
