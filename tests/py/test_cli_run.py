"""``malt run``: what it starts, with which environment, and what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LONG, run, script


def lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def test_ranks_get_their_place_in_the_environment(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        names = ["RANK", "SIZE", "STORE", "TOKEN", "TIMEOUT"]
        print(*(os.environ.get("MALT_" + name) for name in names))
        """,
    )
    done = run("-n", "3", "--timeout", "12.5", path)
    assert done.process.returncode == 0, done.err
    found = [line.split() for line in lines(done.out)]
    assert [row[:3] for row in found] == [[f"[{r}]", str(r), "3"] for r in range(3)]
    assert all(row[5] == "12.5" for row in found)
    (store,), (token,) = {row[3] for row in found}, {row[4] for row in found}
    assert re.fullmatch("local:[0-9a-f]{32}", store)
    assert re.fullmatch("[0-9a-f]{32}", token)
    again = run("-n", "1", path)
    assert again.out.split()[4] != store, "two jobs must not meet"


def test_timeout_of_the_user_is_kept(tmp_path: Path) -> None:
    path = script(tmp_path, "print(os.environ.get('MALT_TIMEOUT'))")
    assert run("-n", "1", path, env={"MALT_TIMEOUT": "7"}).out == "[0] 7\n"
    assert run("-n", "1", path).out == "[0] None\n"


def test_script_arguments_are_the_scripts(tmp_path: Path) -> None:
    path = script(tmp_path, "print(sys.argv[1:])")
    for words in (["-n", "7", "--summary", "--", "-x"], ["--help"], ["-m"], []):
        assert run("-n", "1", path, *words).out == f"[0] {words}\n"
        assert run("-n1", "--", path, *words).out == f"[0] {words}\n"


def test_module(tmp_path: Path) -> None:
    script(tmp_path, "print(__name__, sys.argv[1:])", "some_module.py")
    done = run("-n", "2", "-m", "some_module", "-q", "x", env={"PYTHONPATH": _path(tmp_path)})
    assert lines(done.out) == [f"[{r}] __main__ ['-q', 'x']" for r in range(2)]


def _path(folder: Path) -> str:
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def test_folder_with_main(tmp_path: Path) -> None:
    script(tmp_path, "print('main of', n)", "__main__.py")
    assert run("-n", "1", str(tmp_path)).out == "[0] main of 1\n"


def test_any_program(tmp_path: Path) -> None:
    assert run("-n", "1", "--", "sh", "-c", "echo $MALT_RANK $0", "word").out == "[0] 0 word\n"
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho program $MALT_RANK\n")
    program.chmod(0o755)
    assert lines(run("-n", "2", str(program)).out) == ["[0] program 0", "[1] program 1"]


def test_script_is_run_by_the_same_python_though_it_is_executable(tmp_path: Path) -> None:
    path = Path(script(tmp_path, "print(sys.executable)"))
    path.write_text("#!/no/such/python\n" + path.read_text())
    path.chmod(0o755)
    assert run("-n", "1", str(path)).out == f"[0] {sys.executable}\n"


def test_streams_are_kept_apart(tmp_path: Path) -> None:
    path = script(tmp_path, "print('out'); print('err', file=sys.stderr)")
    done = run("-q", "-n", "2", path)
    assert (lines(done.out), lines(done.err)) == (["[0] out", "[1] out"], ["[0] err", "[1] err"])


def test_prefixes_are_aligned(tmp_path: Path) -> None:
    done = run("-n", "11", script(tmp_path, "print('x')"))
    assert {line.split("]")[0] for line in lines(done.out)} == {f"[{r:2}" for r in range(11)}


def test_output_is_shown_while_the_script_runs_and_not_at_its_end(tmp_path: Path) -> None:
    path = script(tmp_path, "print(os.environ['PYTHONUNBUFFERED'])")
    assert run("-n", "1", path).out == "[0] 1\n"
    assert run("-n", "1", path, env={"PYTHONUNBUFFERED": "x"}).out == "[0] x\n"


def test_whole_lines_under_load(tmp_path: Path) -> None:
    """Lines written in many pieces by many ranks come out whole, each under its rank."""
    path = script(
        tmp_path,
        """
        for i in range(300):
            line = f"{r} {i} " + "x" * (i * 37 % 9000)
            third = len(line) // 3
            for piece in (line[:third], line[third : 2 * third], line[2 * third :] + "\\n"):
                sys.stdout.write(piece)
                sys.stdout.flush()
        """,
    )
    done = run("-n", "4", path)
    found = [line.split() for line in done.out.splitlines()]
    for rank in range(4):
        mine = [(int(i), len(x[0]) if x else 0) for head, _, i, *x in found if head == f"[{rank}]"]
        assert mine == [(i, i * 37 % 9000) for i in range(300)]
    assert all(head == f"[{who}]" for head, who, *_ in found)


def test_binary_huge_and_unfinished_output(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        r"""
        out = sys.stdout.buffer
        out.write(bytes(range(14, 256)) + b"\x00\n" + b"y" * 1_000_000 + b"\n" + b"no line end")
        """,
    )
    done = run("-n", "1", path)
    first, *huge, last = done.text[1].split(b"\n")[:-1]
    assert first == b"[0] " + bytes(range(14, 256)) + b"\x00"
    assert last == b"[0] no line end"
    assert b"".join(piece.removeprefix(b"[0] ") for piece in huge) == b"y" * 1_000_000


def test_log_dir_has_what_was_shown_less_the_prefix(tmp_path: Path) -> None:
    logs = tmp_path / "some" / "logs"
    path = script(tmp_path, "print('out', r); print('err', r, file=sys.stderr); sys.stdout.write('end')")
    for _ in range(2):  # a second run replaces the first one's
        done = run("-n", "11", "--log-dir", str(logs), path)
        assert done.process.returncode == 0, done.err
    assert sorted(file.name for file in logs.iterdir()) == [f"rank-{r:02}.log" for r in range(11)]
    for rank in range(11):
        assert lines((logs / f"rank-{rank:02}.log").read_text()) == sorted([f"out {rank}", f"err {rank}", "end"])


def test_exit_code_zero_when_all_are_zero() -> None:
    assert run("-n", "5", "true").process.returncode == 0


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert run("-n", "2", script(tmp_path, "print(repr(sys.stdin.read()))")).process.returncode == 0


THREADS = "print(*(os.environ.get(x) for x in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')))"


def test_threads_are_shared_out(tmp_path: Path) -> None:
    path = script(tmp_path, THREADS)
    cores = len(os.sched_getaffinity(0))
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-m", "malt", "run", "-n", "2", path],
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    )
    shares = {line.split()[1] for line in done.stdout.splitlines()}
    assert len(shares) == 1
    share = int(shares.pop())
    assert 1 <= share <= max(1, cores // 2)
    assert done.stderr.count("\n") == 1
    assert "OMP_NUM_THREADS" in done.stderr
    assert f"{share} thread" in done.stderr


@pytest.mark.parametrize("hosts", [("-n", "{}"), ("-H", "localhost:{}")])
def test_bound_ranks_have_cores_of_their_own(tmp_path: Path, hosts: tuple[str, str]) -> None:
    size, path = len(os.sched_getaffinity(0)), script(tmp_path, "print(*sorted(os.sched_getaffinity(0)))")
    option, count = hosts
    done = run("-q", option, count.format(size), "--bind", path)
    assert sorted(line.split()[-1] for line in lines(done.out)) == sorted(map(str, os.sched_getaffinity(0)))
    assert all(len(line.split("]")[1].split()) == 1 for line in lines(done.out))


def test_threads_of_the_user_are_kept(tmp_path: Path) -> None:
    done = run("-n", "1", script(tmp_path, THREADS), env={"OMP_NUM_THREADS": "3"})
    # The others are unset or the user's: they follow OMP_NUM_THREADS.
    assert done.out.split()[1] == "3"
    assert done.out.split()[2] == str(os.environ.get("OPENBLAS_NUM_THREADS"))
    assert done.err == ""


def test_more_ranks_than_cores_is_said_unless_quiet() -> None:
    many = str(len(os.sched_getaffinity(0)) + 1)
    assert "take turns" in run("-n", many, "true").err
    assert run("-q", "-n", many, "true").err == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], ["nothing to run", "train.py"]),
        (["-n", "0", "true"], ["-n", "'0'", "1 to 1024"]),
        (["-n", "-3", "true"], ["-n", "'-3'", "1 to 1024"]),
        (["-n", "abc", "true"], ["-n", "'abc'", "-n 4"]),
        (["-n"], ["-n", "expected one argument"]),
        (["true"], ["the number of ranks is missing", "-n"]),
        (["-n", "2"], ["nothing to run"]),
        (["-n", "2", "--"], ["nothing to run"]),
        (["-n", "2", "-m"], ["-m needs the name of a module"]),
        (["-n", "2", "--logdir", "x", "true"], ["--logdir", "Did you mean '--log-dir'"]),
        (["-n", "2", "--timeot=3", "true"], ["--timeot", "Did you mean '--timeout'"]),
        (["-n", "2", "--timeout", "0", "true"], ["--timeout", "'0'", "seconds above 0"]),
        (["-n", "2", "--timeout", "nan", "true"], ["--timeout", "'nan'"]),
        (["-n", "2", "--on-death", "go-on", "true"], ["--on-death", "'go-on'", "stop"]),
        (["-n", "2", "--on-death", "contine", "true"], ["'contine'", "continue"]),
        (["-n", "2", "missing.py"], ["no script 'missing.py'"]),
        (["-n", "2", "missing"], ["no program 'missing'\nit is neither in PATH"]),
        (["-n", "2", "./missing"], ["no program './missing'"]),
        (["-n", "2", "/"], ["'/'", "__main__.py"]),
        (["-n", "2", "--log-dir", "/proc/x", "true"], ["--log-dir '/proc/x'", "cannot be used"]),
    ],
)
def test_mistakes_are_explained_with_exit_code_2(arguments: list[str], says: list[str]) -> None:
    done = run(*arguments)
    assert done.process.returncode == 2
    assert done.out == ""
    assert done.err.startswith("malt run: ")
    assert done.err.endswith("\nMore: malt run --help\n")
    for words in says:
        assert words in done.err


def test_program_that_cannot_be_executed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    done = run("-n", "2", str(file))
    assert (done.process.returncode, "Make it executable" in done.err) == (2, True)
    file.chmod(0o755)
    done = run("-n", "2", str(file))
    assert (done.process.returncode, "not a program" in done.err) == (2, True)
    file.write_text("#!/no/such/interpreter\n")
    done = run("-n", "2", str(file))
    assert (done.process.returncode, "Does the interpreter" in done.err) == (2, True)


def test_program_in_this_folder_needs_its_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program_here").write_text("#!/bin/sh\n")
    Path("program_here").chmod(0o755)
    done = run("-n", "1", "program_here")
    assert (done.process.returncode, "./program_here" in done.err) == (2, True)


@pytest.mark.parametrize("options", ["-n 2", "-H localhost:2"])
@pytest.mark.parametrize("limit", ["true; exec 1>/dev/full", "ulimit -f 8; exec 1>$2"])
def test_output_that_cannot_be_written(tmp_path: Path, options: str, limit: str) -> None:
    path = script(tmp_path, "for i in range(2000): print('a line of output')")
    command = f'{limit}; exec "$0" -m malt run -q {options} "$1"'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, path, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(
        "malt run: could not be written to the end: standard output: (No space left on device|File too large)\n",
        done.stderr,
    )


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "rank-0.log").symlink_to("/dev/full")
    done = run("-q", "-n", "1", "--log-dir", str(tmp_path), script(tmp_path, "print('a line')"))
    assert (done.process.returncode, done.out) == (1, "[0] a line\n")
    assert "the logs in" in done.err


def test_output_of_the_other_commands_that_cannot_be_written() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -m malt graph ring -n 4 >/dev/full', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "malt graph: standard output: No space left on device\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_do_no_harm(tmp_path: Path, closed: str) -> None:
    path = script(tmp_path, f"print('out'); open({str(tmp_path / 'done')!r} + str(r), 'w').close()")
    command = f'exec "$0" -m malt run -q -n 2 "$1" {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, path], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert done.returncode == 0
    assert {file.name for file in tmp_path.glob("done*")} == {"done0", "done1"}
    assert lines(done.stdout) == ([] if ">&- " in closed or closed == ">&-" else ["[0] out", "[1] out"])


def test_nothing_heavy_is_imported() -> None:
    """The launcher must start at once, and must not load the library's threads."""
    code = "import sys, malt._cli.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "malt._ranks.launch" in loaded
    assert not loaded & {"numpy", "cffi", "_cffi_backend", "malt._lib", "malt._malt"}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["-h"], []])
def test_help(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "malt", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: malt ")
    assert "examples:\n  malt run -n 4 train.py" in done.stdout
    assert done.stderr == ""


def test_ctrl_c_while_a_command_is_loaded() -> None:
    code = """
import sys
class Pressed:
    def find_spec(self, name, *_):
        if name == "malt._cli.options":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Pressed())
from malt._cli import main
sys.exit(main(["top"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_unknown_command_names_the_nearest() -> None:
    done = subprocess.run([sys.executable, "-m", "malt", "doctr"], capture_output=True, text=True, check=False)
    assert (done.returncode, "Did you mean 'doctor'" in done.stderr) == (2, True)
