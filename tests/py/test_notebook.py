"""``%%malt`` in a real kernel: what cells do, and what is shown under them."""

from __future__ import annotations

import html
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import LONG

pytest.importorskip("ipykernel", reason="needs ipykernel: pip install ipykernel")
pytest.importorskip("jupyter_client", reason="needs jupyter_client: pip install jupyter_client")

from notebooks import PATIENT, Kernel

N = 3


@pytest.fixture(name="kernel", scope="module")
def _kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        kernel.ok("%load_ext malt")
        kernel.ok(f"%%malt -n {N}\nimport os, sys, threading, time\nimport numpy as np\nr = malt.rank()")
        kernel.ok(PATIENT)
        kernel.ok(f"import malt._notebook._cell as own\nown.PATIENCE = {LONG}")
        yield kernel


@pytest.fixture(name="slow")
def _slow(kernel: Kernel) -> Iterator[Kernel]:
    """Return the kernel, with all the time that each rank needs to fail in its own words."""
    kernel.ok(f"before, own.GRACE = own.GRACE, {LONG}")
    yield kernel
    kernel.ok("own.GRACE = before")


def lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def test_variables_stay_and_ranks_are_one_job(kernel: Kernel) -> None:
    kernel.ok("%%malt\nmine = r + 1")
    cell = kernel.ok("%%malt\nprint(malt.allreduce(mine, 'sum'), malt.size())")
    assert lines(cell.out) == [f"[{r}] 6 {N}" for r in range(N)]


def test_values_go_in_and_come_out_by_rank(kernel: Kernel) -> None:
    kernel.ok("rate, names = 0.5, {'a': [1, 2]}\nimport numpy as np\nlarge = np.arange(3_000_000)")
    kernel.ok("%%malt -i rate names,large -o made -o large r\nmade = (rate * r, names['a'][r % 2])\nlarge += r")
    cell = kernel.ok("made, r, [(len(a), int(a[0])) for a in large]")
    expected = ([(0.5 * r, 1 + r % 2) for r in range(N)], list(range(N)), [(3_000_000, r) for r in range(N)])
    assert (cell.result or "").replace("\n", "") == str(expected)


def test_what_is_defined_in_the_notebook_can_be_sent_and_is_the_same_when_it_comes_back(kernel: Kernel) -> None:
    pytest.importorskip("cloudpickle")
    kernel.ok("class Point:\n    def __init__(self, x): self.x = x\ndouble = lambda p: Point(2 * p.x)\nhere = Point(5)")
    kernel.ok("%%malt -i here double -o there\nthere = double(here)")
    assert kernel.ok("[type(p) is Point for p in there], [p.x for p in there]").result == str(([True] * N, [10] * N))
    kernel.ok("%%malt -o made\nclass Own:\n    x = 3\nmade = Own()")
    assert kernel.ok("[m.x for m in made]").result == str([3] * N)


def test_output_comes_while_the_cell_runs(kernel: Kernel) -> None:
    wait = kernel.start("%%malt\nprint('begun')\nwhile not os.path.exists('go-on'): time.sleep(0.01)\nprint('ended')")
    for r in range(N):
        kernel.wait_for(rf"^\[{r}\] begun$")
    (kernel.folder / "go-on").touch()
    assert lines(wait().out) == [f"[{r}] {word}" for r in range(N) for word in ("begun", "ended")]


def test_every_kind_of_output_is_caught(kernel: Kernel) -> None:
    cell = kernel.ok(
        "%%malt\nimport ctypes\nprint('a\\nb', end='')\nprint('error', file=sys.stderr)\nos.write(1, b'fd\\n')\n"
        "if r == 1:\n    ctypes.CDLL(None).puts(b'from C')\n    os.system('echo child')"
    )
    assert {"[0] a", "[0] bfd", "[1] from C", "[1] child"} <= set(cell.out.splitlines())
    assert lines(cell.err) == [f"[{r}] error" for r in range(N)]


def test_the_result_of_rank_0_is_shown(kernel: Kernel) -> None:
    cell = kernel.ok("%%malt\nnp.arange(4).reshape(2, 2) + r")
    assert cell.texts == ["[0] array([[0, 1],\n[0]        [2, 3]])"]
    assert kernel.ok("%%malt\nr;").texts == []
    assert sorted(kernel.ok("%%malt --show all\nr").texts) == [f"[{r}] {r}" for r in range(N)]
    assert sorted(kernel.ok("%%malt --show 1,2\nr").texts) == ["[1] 1", "[2] 2"]


def test_rich_displays_keep_their_place_among_what_is_printed(kernel: Kernel) -> None:
    cell = kernel.ok(
        "%%malt\nfrom IPython.display import HTML\n"
        "for i in range(20):\n    if r == 0: print(i); display(i)\n    elif i == 0: display(HTML('no'))\n"
        "HTML('<b>x</b>')"
    )
    assert cell.out == "".join(f"[0] {i}\n" for i in range(20))
    *texts, html = cell.displays
    assert [t["data"]["text/plain"] for t in texts] == [f"[0] {i}" for i in range(20)]
    assert re.search(r"\[0\].*<b>x</b>", html["data"]["text/html"], re.DOTALL)


def test_figures_of_rank_0_are_shown(kernel: Kernel) -> None:
    pytest.importorskip("matplotlib")
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, r])\nplt.title('t')"
    (text, figure) = kernel.ok(f"%%malt\n{plot}").displays
    assert text["data"]["text/plain"].startswith("[0] Text(")
    assert len(figure["data"]["image/png"]) > 1000
    cell = kernel.ok(f"%%malt --show all\n{plot};")
    assert [set(shown["data"]) for shown in cell.displays] == [{"text/plain", "image/png"}] * N
    assert sorted(cell.out.split()) == [f"[{r}]" for r in range(N)]


def test_a_display_can_be_updated_and_the_output_cleared(kernel: Kernel) -> None:
    cell = kernel.ok("%%malt\nh = display(1, display_id=True)\nh.update(2) if r == 0 else None;")
    assert cell.texts == ["[0] 2"]
    kernel.ok("%%malt\nfrom IPython.display import clear_output\nclear_output()")


def test_progress_bars_are_redrawn_in_place(kernel: Kernel) -> None:
    cell = kernel.ok(
        "%%malt\nfor i in range(3000):\n    sys.stderr.write(f'\\r{i} of 3000'); sys.stderr.flush()\n"
        "sys.stderr.write('\\rall of it\\n');"
    )
    assert lines(cell.err) == [f"[{r}] all of it" for r in range(N)]
    assert len(cell.displays) <= 1
    assert all(text == "" for text in cell.texts)


def test_magics_shell_commands_and_await(kernel: Kernel) -> None:
    cell = kernel.ok("%%malt\n%cd -q /\nhere = os.getcwd()\n!echo from a command\nhere")
    assert cell.texts == ["[0] '/'"]
    assert lines(cell.out) == [f"[{r}] from a command" for r in range(N)]
    assert "from %%time" in kernel.ok("%%malt\n%%time\nprint('from %%time')").out
    assert kernel.ok("%%malt\nimport asyncio\nawait asyncio.sleep(0, 'awaited')").texts == ["[0] 'awaited'"]


def test_an_exception_shows_the_ranks_traceback_with_its_lines(kernel: Kernel) -> None:
    kernel.ok("%%malt\ndef f(x):\n    y = 1\n    return y / x")
    cell = kernel.run("%%malt\nz = 1\nf(r - 1)")
    assert cell.name == "RankError"
    assert cell.error.startswith("On rank 1:\n")
    assert re.search(r"Cell In\[\d+\], line 3\n.*-> 3 f\(r - 1\)", cell.error, re.DOTALL)
    assert "-> 4     return y / x" in cell.error
    assert cell.error.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "_notebook" not in cell.error


def test_exception_groups(kernel: Kernel) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("Python before 3.11 has no exception groups")
    error = kernel.run("%%malt\nraise ExceptionGroup('both', [ValueError('a'), KeyError('b')])").error
    assert "ExceptionGroup: both (2 sub-exceptions)" in error


def test_a_value_that_the_ranks_cannot_make(kernel: Kernel) -> None:
    kernel.ok("class Odd:\n    def __reduce__(self): return int, ('no number',)\nodd = Odd()")
    cell = kernel.run("%%malt -i odd\nprint('run')")
    assert "malt: -i odd cannot be received\nValueError: invalid literal for int()" in cell.error
    assert "Traceback" not in cell.error
    assert cell.out == ""


def test_what_cannot_be_shown_ends_the_ranks_and_leaves_no_mess() -> None:
    with Kernel() as kernel:
        kernel.ok("%load_ext malt")
        kernel.ok("%%malt -n 2\nimport time")
        kernel.ok("publish = get_ipython().display_pub.publish\ndef fail(*a, **k): raise OSError('cannot show')")
        cell = kernel.run(
            "get_ipython().display_pub.publish = fail\n"
            "try:\n    get_ipython().run_cell_magic('malt', '', 'display(1); time.sleep(1000)')\n"
            "finally:\n    get_ipython().display_pub.publish = publish"
        )
        assert "OSError: cannot show" in cell.error
        cell = kernel.ok("%%malt\nmalt.size()")
        assert cell.texts == ["[0] 2"]
        assert "2 new ranks, without variables: the notebook failed" in cell.err


def test_without_a_number_there_is_a_rank_for_each_core_and_more_take_turns() -> None:
    with Kernel() as kernel:
        kernel.ok("%load_ext malt\nimport os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})")
        cell = kernel.ok("%%malt\nmalt.size()")
        assert cell.texts == ["[0] 1"]
        assert (cell.out, cell.err) == ("malt: 1 rank, one for each core of this machine; -n sets another number\n", "")
        cell = kernel.ok("%malt restart -n 2")
        assert cell.err == "malt: 2 ranks share 1 core and take turns: expect no more speed than from 1\n"
        assert kernel.ok("%malt restart").err == ""  # once is enough


def test_notebooks_run_without_anybody_looking(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient: pip install nbclient")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install nbclient")
    load = f"%load_ext malt\nimport malt._notebook._cell\nmalt._notebook._cell.GRACE = {LONG}"
    cells = [load, "%%malt -n 2\nprint('hello')\nmalt.allreduce(malt.rank(), 'sum')", "%%malt\n1 / 0"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    client = nbclient.NotebookClient(notebook, timeout=LONG, kernel_name="python3", allow_errors=True)
    client.execute(cwd=str(tmp_path))
    outputs = notebook.cells[1].outputs  # rank 0 may have ended the cell before rank 1 prints
    printed = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    assert lines(printed) == ["[0] hello", "[1] hello"]
    (shown,) = (output for output in outputs if output.output_type != "stream")
    assert shown.data["text/plain"] == "[0] 1"
    (error,) = notebook.cells[2].outputs
    assert error.evalue == "all 2 ranks: ZeroDivisionError: division by zero"


def test_what_malt_explains_itself_ends_at_the_users_line(kernel: Kernel) -> None:
    cell = kernel.run("%%malt\nw = malt.Vector(3, name='w')\nif r == 0:\n    malt.allreduce(1)\nw.allreduce()")
    assert re.search(r"rank 0: malt.allreduce\(.* \(In\[\d+\]:4: malt.allreduce\(1\)\)", cell.error)
    assert re.search(r"rank [12]: w.allreduce\(.* \(In\[\d+\]:5: w.allreduce\(\)\)", cell.error)
    assert re.search(r"Cell In\[\d+\], line [45]\n", cell.error)
    assert "File " not in cell.error
    # A fold of the user's own is shown, with what called it.
    error = kernel.run("%%malt\nw.array += 1\ndef fold(own, updates):\n    return own / [][0]\nw.sync(fold)").error
    assert "IndexError" in error
    assert "-> 4     return own / [][0]" in error


def test_one_exception_of_all_ranks_is_shown_once(slow: Kernel) -> None:
    cell = slow.run("%%malt\nno_such_name")
    assert cell.error.startswith(f"On all {N} ranks:\n")
    assert cell.error.count("NameError: name 'no_such_name' is not defined") == 1


def test_exceptions_that_differ_are_all_told(slow: Kernel) -> None:
    error = slow.run("%%malt\nif r:\n    raise ValueError(f'bad {r}')").error
    first = int(re.match(r"On rank (\d):", error)[1])  # type: ignore[index]
    other = 3 - first
    assert f"ValueError: bad {first}" in error
    assert f"On rank {other}: ValueError: bad {other}  (line 3: raise ValueError(f'bad {{r}}'))" in error


def test_syntax_errors_are_told_once_and_by_no_rank(kernel: Kernel) -> None:
    cell = kernel.run("%%malt\nx = 1\nprint(x\n")
    assert "SyntaxError: '(' was never closed" in cell.error
    assert "print(x" in cell.error
    assert re.search(r"In\[\d+\].*3", cell.error)
    assert "rank" not in cell.error
    assert kernel.run("%%malt\nreturn 1").error.count("SyntaxError") == 1  # found by the ranks


def test_when_one_rank_raises_the_others_are_interrupted_and_all_can_be_used_on(kernel: Kernel, tmp_path: Path) -> None:
    kernel.ok("%%malt\nv = malt.Vector(np.full(3, float(r)), start='own')\nv.array += 1\nv.sync()")
    for wait in ("malt.barrier()", "v.sync()", "malt.allreduce(1); malt.barrier()", "time.sleep(1000)"):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        late = f"    while len(os.listdir('{folder}')) < 2: time.sleep(0.01)\n"
        line = f"os.mkdir(f'{folder}/{{r}}'); {wait}"
        cell = kernel.run(f"%%malt\nif r == 1:\n{late}    raise ValueError('the cause')\nv.array += 1\n{line}")
        assert "ValueError: the cause" in cell.error
        assert f"rank 0, 2 interrupted because of that at line 6: {line}" in cell.error
        assert cell.err == ""
        # What comes next is in step, without anything having been made anew.
        assert kernel.ok("%%malt\nv.array[:] = r\n(malt.allreduce(r, 'sum'), v.sync(), v.array[0])").texts == [
            f"[0] (3, {N - 1}, np.float64(1.0))"
        ]


def test_a_rank_that_raises_before_the_ranks_have_met() -> None:
    with Kernel() as kernel:
        kernel.ok("%load_ext malt")
        cell = kernel.run("%%malt -n 2\nimport os\nif os.environ['MALT_RANK'] == '1': 1 / 0\nmalt.barrier()")
        assert "ZeroDivisionError" in cell.error
        assert kernel.ok("%%malt\nmalt.allreduce(malt.rank(), 'sum')").texts == ["[0] 1"]


def test_input_is_refused_and_says_what_to_do(kernel: Kernel) -> None:
    for ask in ("input('Your name?')", "import getpass; getpass.getpass()"):
        error = kernel.run(f"%%malt\n{ask}").error
        assert "UnsupportedError: malt: input() was called on a rank\nranks have no keyboard\n" in error
        assert "-i" in error


def test_sys_exit_is_an_error_and_no_end(kernel: Kernel) -> None:
    assert "SystemExit: 3" in kernel.run("%%malt\nsys.exit(3)").error
    assert "%malt stop" in kernel.run("%%malt\nexit()").error
    assert kernel.ok("%%malt\nr").texts == ["[0] 0"]


def test_children_and_threads_of_ranks(kernel: Kernel) -> None:
    # A forked child that runs into the end of the cell is not taken for the rank.
    cell = kernel.ok("%%malt\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: display('child')\nbool(pid)")
    assert cell.texts == ["[0] True"]
    # What a thread shows after its cell is shown with the next one.
    kernel.ok(
        "%%malt\ngo = threading.Event()\n"
        "t = threading.Thread(target=lambda: (go.wait(), print('late'), display('shown late')))\nt.start()"
    )
    cell = kernel.ok("%%malt\ngo.set()\nt.join()")
    assert lines(cell.out) == [f"[{r}] late" for r in range(N)]
    assert cell.texts == ["[0] 'shown late'"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("%%malt -n 2\n1", f"-n 2, but {N} ranks are running\n.* %malt restart -n 2"),
        ("%%malt -n x\n1", "'x' is not a number of ranks\nexpected 1 to 1024"),
        ("%%malt --shwo all\n1", r"there is no option --shwo\nDid you mean '--show'\?"),
        ("%%malt --show 7\n1", "--show 7\nexpected ranks from 0 to 2"),
        ("%%malt -i nowhere\n1", "-i nowhere\nthe notebook has no variable of that name"),
        ("%%malt -i a.b\n1", "-i a.b\nexpected the name of a variable"),
        ("%%malt -o nowhere\n1", rf"^On all {N} ranks:\nmalt: -o nowhere\nthe ranks have no variable of that name$"),
        ("%%malt -m 2\n1", "there is no option -m\nit is one of -h, --help, -n"),
        ("%%malt\nimport sys; sys.exit(4)", rf"^On all {N} ranks:\nSystemExit: 4\n"),
        (
            "import threading\nlock = threading.Lock()\nget_ipython().run_cell_magic('malt', '-i lock', '1')",
            "-i lock\na lock cannot be sent to the ranks\ncannot pickle",
        ),
        (
            "%%malt -o lock\nimport threading\nlock = threading.Lock()",
            "-o lock\na lock cannot be sent to the notebook\ncannot",
        ),
        ("%malt stat", r"'stat' is not known\nDid you mean 'status'\?"),
        ("%malt status -n 2", "-n 2 goes with restart, not with status"),
        ("%%malt -i 'x\n1", "No closing quotation"),
    ],
)
def test_mistakes_are_explained_in_short_lines(slow: Kernel, code: str, says: str) -> None:
    cell = slow.run(code)
    assert re.search(says, cell.error), cell
    assert cell.error.count("\n") <= 3 or "RankError" in cell.name
    assert slow.ok("%%malt\nr").texts == ["[0] 0"]


def test_help_is_shown(kernel: Kernel) -> None:
    assert kernel.ok("%%malt --help\n1").out.startswith("usage: %%malt [-n RANKS]")
    assert kernel.ok("%malt").out.startswith("usage: %malt status")


def test_status_tells_of_every_rank(kernel: Kernel) -> None:
    first, _, *ranks = kernel.ok("%malt status").out.splitlines()
    assert re.fullmatch(rf"{N} ranks since \d\d:\d\d:\d\d, \d+ cells", first)
    pids = kernel.ok("%%malt -o pids\npids = os.getpid()") and kernel.ok("pids").result
    assert [int(line.split()[1]) for line in ranks] == eval(pids or "")
    assert all(float(line.split()[2]) > 10 for line in ranks)  # MiB


def test_functions_and_lambdas_of_cells_run_with_malt_run(kernel: Kernel) -> None:
    pytest.importorskip("cloudpickle")
    kernel.ok("import malt\nword = 'outer'\nclass Result:\n    def __init__(self, x): self.x = x")
    kernel.ok("def work(k):\n    print('at work')\n    return Result(word + str(k + malt.rank()))")
    cell = kernel.ok("results = malt.run(work, 2, (5,))\n[(type(x) is Result, x.x) for x in results]")
    assert cell.result == "[(True, 'outer5'), (True, 'outer6')]"
    assert lines(cell.out) == ["[0] at work", "[1] at work"]
    assert kernel.ok("malt.run(lambda: malt.allreduce(1, 'sum'), 3)").result == "[3, 3, 3]"
    cell = kernel.run("def fail():\n    raise KeyError('the reason')\nmalt.run(fail, 2)")
    assert cell.name == "KeyError"
    assert "raise KeyError('the reason')" in cell.error


def test_a_report_is_shown_below_its_cell() -> None:
    with Kernel() as kernel:
        kernel.ok("%load_ext malt")
        first = kernel.run("%%malt -n 2 --report\nimport time, malt\nv = malt.Vector(10)\nr = malt.rank()")
        assert "2 ranks took" in first.texts[-1], first
        cell = kernel.run(
            "%%malt --report\nfor step in range(5):\n    time.sleep(0.2 * r)\n    v.array[:] += 1\n    v.sync()"
        )
        assert cell.error == ""
        assert "The best single change is to give rank 1 less work" in cell.texts[-1]
        page = html.unescape(cell.displays[-1]["data"]["text/html"])
        assert page.startswith('<iframe title="Report" srcdoc="<!doctype html>')
        assert re.search(r"title='waiting for others: (0\.[5-9]|[1-9])", page), page
        assert kernel.run("%%malt\n_ = v.sync()").displays == []
        kernel.run("%malt restart")
        assert "2 ranks took" in kernel.run("%%malt --report\nimport malt\nmalt.barrier()").texts[-1]


def test_a_report_needs_ranks_that_record(kernel: Kernel) -> None:
    error = kernel.run("%%malt --report\npass").error
    assert f"--report, but {N} ranks are running that were started without it" in error
