"""``malt run -H``: hosts, their agents, and what is said where one cannot be used.

The hosts here are this machine, by no ssh or by one that is a script. Real ones are in ``tests/net``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from launching import LONG, launched, run, script

import malt
from malt._cli import main
from malt._cli import run as command
from malt._cli.agent import Hosts
from malt._cli.diagnosis import diagnosis
from malt._cli.failures import Failures
from malt._cli.hosts import Host, from_file, from_words
from malt._cli.remote import AT_ONCE, ERR, OUT, PREAMBLE, Frames, frame
from malt._ranks.output import Display

HERE = "localhost:2,127.0.0.1:1"


def fake(folder: Path, text: str, name: str = "fakessh") -> str:
    """Write a program that is called as ssh is, with host and command at the end, and return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_ranks_get_their_place(tmp_path: Path) -> None:
    text = """
        names = ["RANK", "SIZE", "TIMEOUT"]
        print(*(os.environ.get("MALT_" + name) for name in names), os.getcwd(), os.environ.get("ONE"), sys.argv[1:])
        print(os.environ["MALT_STORE"], os.environ["MALT_TOKEN"], file=sys.stderr)
        """
    script(tmp_path, text)
    more = ["-q", "--chdir", str(tmp_path), "-x", "ONE=1"]
    done = run("-H", HERE, *more, "--timeout", "12", "script.py", "a b", "$HOME")
    assert sorted(done.out.splitlines()) == [f"[{rank}] {rank} 3 12 {tmp_path} 1 ['a b', '$HOME']" for rank in range(3)]
    (met,) = {line.partition(" ")[2] for line in done.err.splitlines()}
    store, token = met.split()
    assert len(token) == 32
    assert int(store.rpartition(":")[2]) > 0


def test_rank_0_inherits_the_socket_at_which_all_meet_and_the_others_do_not(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import socket
        fd = os.environ.get("MALT_STORE_FD")
        port = fd and socket.socket(fileno=int(fd.split(",")[0])).getsockname()[1]
        print(r, fd and port == int(os.environ["MALT_STORE"].split(":")[-1]))
        """,
    )
    assert sorted(run("-q", "-H", HERE, path).out.splitlines()) == ["[0] 0 True", "[1] 1 None", "[2] 2 None"]


@pytest.mark.parametrize(
    ("public", "encrypt", "said"),
    [
        ([], None, "is not encrypted, since all addresses are private (--encrypt changes that)"),
        (
            ["192.0.2.1", "2001:db8::1"],
            None,
            "is encrypted where an address is not private: b (192.0.2.1, 2001:db8::1)",
        ),
        ([], "1", "is encrypted (MALT_ENCRYPT=1)"),
        (["192.0.2.1"], "0", "is not encrypted (MALT_ENCRYPT=0)"),
    ],
)
def test_what_is_encrypted_is_said(public: Sequence[str], encrypt: str | None, said: str) -> None:
    env = {} if encrypt is None else {"MALT_ENCRYPT": encrypt}
    notes: list[str] = []
    options = command.parser().parse([])
    places, failures = [Host("a", 1), Host("b", 1)], Failures(Display(2, lambda *_: None))
    hosts = Hosts(places, options, {"env": env}, failures, notes.append)
    for program, addresses in zip(hosts.programs, ([], public), strict=True):
        assert notes == []
        hosts.heard(
            program,
            {"clock": time.monotonic(), "ahead": None, "ready": True, "store": "h:1", "notes": [], "public": addresses},
        )
    assert notes == [f"traffic between hosts {said}"]


def test_a_job_of_malt(tmp_path: Path) -> None:
    path = script(tmp_path, "import malt\nprint(malt.allgather((malt.rank(), malt.local_rank())))")
    # A program of another job may start this one.
    done = run("-q", "-H", HERE, path, env={"MALT_TOGETHER": "4-7"})
    assert sorted(done.out.splitlines()) == [f"[{rank}] [(0, 0), (1, 1), (2, 2)]" for rank in range(3)], done.err


def test_the_secret_is_on_no_command_line(tmp_path: Path) -> None:
    ssh = fake(tmp_path, f'tr "\\0" " " < /proc/$$/cmdline >> {tmp_path}/seen\nexec sh -c "$2"')
    lines = "' '.join(open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit())"
    read = f"def read():\n    try: return {lines}\n    except OSError: return read()\n"
    text = read + "print(os.environ['MALT_TOKEN'] in read())"
    assert run("-q", "-H", "a:1", "--ssh", ssh, script(tmp_path, text)).out == "[0] False\n"
    assert "malt._cli.agent" in (tmp_path / "seen").read_text()


def test_the_first_failure_ends_all(tmp_path: Path) -> None:
    path = script(tmp_path, "print('up')\nif r == 2: raise ValueError('why')\ntime.sleep(1000)")
    start = time.monotonic()
    with launched("-q", "-H", HERE, "--log-dir", str(tmp_path / "logs"), "--summary", path) as job:
        assert job.finish() == 1
    assert time.monotonic() - start < LONG / 2
    assert "malt run: rank 2 on host 127.0.0.1 ended with exit code 1; the other 2 were stopped" in job.err
    assert "[2] ValueError: why" in job.err
    assert "where the time of the ranks went" in job.err
    assert sorted(os.listdir(tmp_path / "logs")) == ["rank-0.log", "rank-1.log", "rank-2.log"]


def test_reports_reach_the_table(tmp_path: Path) -> None:
    path = script(tmp_path, "import malt\nmalt.barrier()")
    err = run("-q", "-H", HERE, "--summary", path).err
    assert len([line for line in err.splitlines() if line.split()[:1] in (["0"], ["1"], ["2"]) and "%" in line]) == 3


def test_signals_reach_the_ranks(tmp_path: Path) -> None:
    text = """
        signal.signal(signal.SIGUSR1, lambda *_: print("usr1", flush=True))
        def end(*_):
            print("asked", flush=True)
            sys.exit(0)
        signal.signal(signal.SIGINT, end)
        print("up", flush=True)
        while True: signal.pause()
        """
    with launched("-q", "-H", HERE, script(tmp_path, text)) as job:
        job.wait_for("up", 3)
        job.signal(signal.SIGUSR1)
        job.wait_for("usr1", 3)
        job.signal(signal.SIGINT)
        assert job.finish() == 0
    assert job.out.count("asked") == 3


def test_a_second_signal_kills(tmp_path: Path) -> None:
    text = "signal.signal(signal.SIGINT, lambda *_: print('asked', flush=True))\nprint('up', flush=True)\n"
    with launched("-H", HERE, script(tmp_path, text + "while True: signal.pause()")) as job:
        job.wait_for("up", 3)
        job.signal(signal.SIGINT)
        job.wait_for("asked", 3)
        job.signal_again(signal.SIGINT)
        assert job.finish() == 130


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_on_the_hosts(tmp_path: Path, number: int) -> None:
    """Of ranks that would stay, whatever becomes of the launcher; `launched` looks."""
    text = "signal.signal(signal.SIGTERM, signal.SIG_IGN) if r else None\nprint('up', flush=True)\ntime.sleep(1000)"
    with launched("-H", HERE, script(tmp_path, text)) as job:
        job.wait_for("up", 3)
        job.signal(number)
        if number == signal.SIGTERM:
            job.signal_again(number)
        assert job.finish() in (-number, 128 + number)


def test_a_host_that_is_lost_ends_the_job(tmp_path: Path) -> None:
    path = script(tmp_path, "print('parent', os.getppid(), flush=True)\ntime.sleep(1000)")
    with launched("-q", "-H", HERE, path) as job:
        agents = job.wait_for(r"\[2\] parent (\d+)")
        job.wait_for("parent", 3)
        os.kill(int(agents[0]), signal.SIGKILL)
        assert job.finish() == 255
    assert "rank 2 is lost: the connection to host 127.0.0.1 has ended; the other 2 were stopped" in job.err


def test_ssh_asks_nothing_and_sees_to_it_that_the_host_is_there(tmp_path: Path) -> None:
    """What the user says comes first, and so counts."""
    ssh = fake(tmp_path, 'printf "%s\\n" "$@" > "$0.words"; exit 255', "ssh")
    run("-q", "--ssh", f"{ssh} -o ServerAliveInterval=2", "-H", "b:1", script(tmp_path, ""))
    words = Path(f"{ssh}.words").read_text().splitlines()
    said = [value for option, value in pairwise(words) if option == "-o"]
    own = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"]
    assert said == ["ServerAliveInterval=2", *own]


def test_much_output_and_a_shell_that_talks(tmp_path: Path) -> None:
    ssh = fake(tmp_path, 'echo "Welcome to $1"; head -c 100000 /dev/zero; exec sh -c "$2"')
    path = script(tmp_path, "for i in range(40000): print(i, 'x' * 50)\nos.write(1, b'no end')")
    done = run("-q", "-H", "a:2", "--ssh", ssh, path)
    assert done.process.returncode == 0, done.err
    for rank in range(2):
        lines = [line for line in done.out.splitlines() if line.startswith(f"[{rank}]")]
        assert lines == [*(f"[{rank}] {i} {'x' * 50}" for i in range(40000)), f"[{rank}] no end"]
    assert "Welcome" not in done.out + done.err


def test_a_few_hosts_at_a_time(tmp_path: Path) -> None:
    """More than `AT_ONCE` are not connected to before one of them has answered."""
    go = tmp_path / "go"
    go.mkdir()
    ssh = fake(
        tmp_path,
        f'echo $1 $(ls {go} | wc -l) >> {tmp_path}/begun; while [ ! -e {go}/$1 ]; do sleep 0.02; done; exec sh -c "$2"',
    )
    names = [f"h{i}" for i in range(AT_ONCE + 2)]
    with launched("-q", "-H", ",".join(f"{n}:1" for n in names), "--ssh", ssh, script(tmp_path, "print('up')")) as job:
        for name in names:
            (go / name).touch()
            time.sleep(0.1)  # whoever begins too early has all the time for it
        assert job.finish() == 0, job.err
    begun = dict(line.split() for line in (tmp_path / "begun").read_text().splitlines())
    assert sorted(begun) == sorted(names)
    assert int(begun[names[AT_ONCE]]) >= 1
    assert int(begun[names[AT_ONCE + 1]]) >= 2


# ------------------------------------------------------------------ hosts that cannot be used


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert done.process.returncode == 2
    return done.err


def test_what_a_host_refuses(tmp_path: Path) -> None:
    path = script(tmp_path, "print('must not run')")
    bad = ["-H", HERE, "--chdir", str(tmp_path), "no.py"]
    assert f"there is no script 'no.py'\nthe working directory is {tmp_path}" in refused(*bad)
    assert "its folder '/no/where' cannot be entered" in refused("-H", HERE, "--chdir", "/no/where", path)
    assert "there is no program 'no-such'\nit is neither in PATH" in refused("-H", HERE, "--", "no-such")
    done = run("-H", "localhost:1,a:1", "--ssh", "/no/ssh", path)
    assert "there is no program '/no/ssh'" in done.err
    assert "must not run" not in done.out


def test_another_version(tmp_path: Path) -> None:
    code = "import malt; malt.__version__ = '9.9'; from malt._cli import agent; agent.main()"
    python = fake(tmp_path, f'exec {sys.executable} -c "{code}"', "python")
    err = refused("-H", "localhost:1", "--python", python, script(tmp_path, ""))
    assert f"host localhost has MALT 9.9\nthis machine has {malt.__version__}\nInstall the same version" in err


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ("me@b: Permission denied (publickey,password).", ["asks for a password", "ssh-copy-id b", "`ssh -q b true`"]),
        ("Host key verification failed.", ["does not know its key", "Connect once by hand: `ssh -q b true`"]),
        ("ssh: Could not resolve hostname b: Name or service not known", ["no host of that name"]),
        ("ssh: connect to host b port 22: Connection refused", ["cannot be reached", "firewall"]),
        ("ssh: connect to host b port 22: Connection timed out", ["cannot be reached"]),
        ("sh: 1: exec: /x/python: not found", ["no such Python", "--python python3"]),
        ("bash: line 1: /x/python: No such file or directory", ["no such Python"]),
        ("/usr/bin/python3: No module named malt", ["has no MALT", "--python"]),
        ("python: Error while ... (ModuleNotFoundError: No module named 'malt')", ["has no MALT"]),
        ("/usr/bin/python3: No module named malt._cli.agent", ["older than this one"]),
        ("what?", ["its agent has not begun", "  what?"]),
        ("", ["nothing came from ssh -q b 'exec python'"]),
    ],
)
def test_what_to_do_about_a_host(errors: str, said: Sequence[str]) -> None:
    text = diagnosis("b", ["ssh", "-q", "b", "exec python"], errors, "")
    assert text.startswith("host b cannot be used: ")
    assert all(part in text for part in said), text
    assert errors in text


# ------------------------------------------------------------------ names of hosts


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-H", "a"], ["the number of ranks of a is missing", "a:4"]),
        (["-H", "a:0"], ["no machine has a rank"]),
        (["-H", "a:2,b:0"], ["a machine with 0 ranks only votes", "Pass --on-death continue"]),
        (["-H", "a:4,,b:4"], ["'' is not a host"]),
        (["--hosts=-oProxyCommand=x:4"], ["'-oProxyCommand=x:4' is not a host"]),
        (["-H", "a:4", "-n", "4,2"], ["Write the numbers with the hosts"]),
        (["-H", "a:4", "--hostfile", "x"], ["-H and --hostfile both name hosts"]),
        (["-H", "a:4", "--store", "h:1"], ["--store is for jobs without ssh"]),
        (["-H", "a:4", "-x", "NO_SUCH_VARIABLE"], ["it is not set here", "Set one: -x NO_SUCH_VARIABLE=VALUE."]),
        (["-H", "a:4", "-x", "=1"], ["names no variable"]),
        (["-n", "4", "--python", "x"], ["--python goes with -H or --hostfile"]),
        (["--hostfile", "/no/where"], ["--hostfile '/no/where' cannot be read"]),
    ],
)
def test_a_wrong_command_line_says_what_to_do(
    arguments: Sequence[str], said: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments, "--", "true"]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert all(part in err for part in said), err


def refuse(what: str, where: str = "", do: str = "") -> None:
    raise ValueError(what)


def test_hostfiles(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# ours\nnode1 slots=4 max_slots=8\n\nme@node2:2  # the old one\n[fd00::1]\n")
    assert from_file(str(path), 3, refuse) == [("node1", 4), ("me@node2", 2), ("fd00::1", 3)]  # type: ignore[arg-type]
    assert from_words("a,b:2", 1, refuse) == [("a", 1), ("b", 2)]  # type: ignore[arg-type]
    for text, why in [
        ("a cpu=3", "'cpu=3' is not understood"),
        ("# none", "names no host"),
        ("a", "the number of ranks of a"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=why):
            from_file(str(path), None, refuse)  # type: ignore[arg-type]


def test_frames_may_be_cut_anywhere() -> None:
    sent = [(OUT, 3, b"abc"), (ERR, 0, b""), (OUT, 70000, bytes(range(256)))]
    stream = b"hello\n" + PREAMBLE + b"".join(frame(*piece) for piece in sent)
    for step in (1, 2, 7, len(stream)):
        frames = Frames()
        got = [piece for at in range(0, len(stream), step) for piece in frames.feed(stream[at : at + step])]
        assert got == sent
        assert frames.noise == b"hello\n"
