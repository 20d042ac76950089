"""Lines, prefixes and last words, without processes."""

from __future__ import annotations

import io

import pytest

from malt._ranks import output
from malt._ranks.output import LONGEST, Display, Lines


def feed(*pieces: bytes) -> list[bytes]:
    lines = Lines()
    return [line for piece in pieces for line in lines.feed(piece)] + lines.rest()


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"one\ntwo\n"], [b"one", b"two"]),
        ([b"o", b"n", b"e\nt", b"wo"], [b"one", b"two"]),
        ([b"\n\n"], [b"", b""]),
        ([b"\x00\xff\n"], [b"\x00\xff"]),
        ([b"dos\r\n", b"dos\r", b"\n"], [b"dos", b"dos"]),
        ([b""], []),
    ],
)
def test_lines(pieces: list[bytes], lines: list[bytes]) -> None:
    assert feed(*pieces) == lines


def test_long_lines_come_in_pieces() -> None:
    pieces = feed(*[b"x" * 1000] * 500)
    assert b"".join(pieces) == b"x" * 500_000
    assert all(len(piece) < LONGEST + 1000 for piece in pieces)


def test_progress_bars_are_shown_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    bar, shown = Lines(), []
    for percent in range(101):  # a tenth of a second each
        now = percent / 10
        shown += bar.feed(b"\r%3d%%" % percent)
    assert len(shown) == 10
    assert shown[0] == b"  0%"
    assert bar.feed(b"\n") == [b"100%"]


def test_progress_bars_keep_what_was_there_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.time, "monotonic", lambda: 0.0)
    assert feed(b"\r1\r2", b"\r3", b"\r   \r") == [b"1", b"3"]


def shown(display_size: int = 3, **options: object) -> tuple[Display, list[tuple[int, bytes]]]:
    got: list[tuple[int, bytes]] = []
    return Display(display_size, lambda fd, text: got.append((fd, text)), **options), got  # type: ignore[arg-type]


def test_prefix_and_stream() -> None:
    display, got = shown(11)
    display(3, 1, b"a\nb")
    display(10, 2, b"e\n")
    display(3, 1, b"")
    assert got == [(1, b"[ 3] a\n"), (2, b"[10] e\n"), (1, b"[ 3] b\n")]


def test_colours_only_where_asked() -> None:
    display, got = shown(colour=(True, False))
    display(1, 1, b"a\n")
    display(1, 2, b"b\n")
    assert got == [(1, b"\x1b[32m[1]\x1b[0m a\n"), (2, b"[1] b\n")]


def test_logs_and_a_log_that_cannot_be_written() -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    logs = [io.BytesIO(), Full(), io.BytesIO()]
    display, got = shown(logs=dict(enumerate(logs)))
    display(0, 2, b"one\ntwo\n")
    display(1, 1, b"x\n")
    display(0, 1, b"three\n")
    assert logs[0].getvalue() == b"one\ntwo\n"
    assert "No space" in str(display.log_error)
    assert len(got) == 3


TRACE = b'Traceback (most recent call last):\n  File "x", line 1\nValueError: x\n'


def test_last_words_are_the_last_traceback() -> None:
    display, _ = shown()
    display(1, 2, b"noise\n" + TRACE.replace(b"x", b"old") + b"more\n" + TRACE)
    display(2, 2, b"other\n")
    assert display.last_words(1) == b"".join(b"[1] " + line + b"\n" for line in TRACE.splitlines())


@pytest.mark.parametrize(
    "link",
    [
        b"\nThe above exception was the direct cause of the following exception:\n\n",
        b"\nDuring handling of the above exception, another exception occurred:\n\n",
    ],
)
def test_last_words_begin_with_the_cause(link: bytes) -> None:
    display, _ = shown()
    display(1, 2, TRACE + b"noise\n" + TRACE + link + TRACE)
    display(0, 1, b"other\n")
    assert display.last_words(1).count(b"Traceback") == 2


def test_last_words_of_a_crash_begin_with_what_compiled_code_said() -> None:
    display, _ = shown(1)
    display(0, 2, b"1\n2\n3\n4\nfree(): invalid pointer\nFatal Python error: Aborted\n\nCurrent thread\n")
    assert display.last_words(0, again=True).splitlines()[2] == b"[0] free(): invalid pointer"
    assert len(display.last_words(0, again=True).splitlines()) == 6


def test_last_words_without_a_traceback_are_ten_lines() -> None:
    display, _ = shown()
    display(1, 2, b"".join(b"%d\n" % i for i in range(30)))
    display(0, 1, b"other\n")
    assert display.last_words(1).split()[1::2] == [b"%d" % i for i in range(20, 30)]
    assert display.last_words(2) == b""


def test_last_words_are_not_said_twice_in_a_row() -> None:
    display, _ = shown()
    display(1, 2, TRACE)
    assert display.last_words(1) == b""
    assert display.last_words(1, again=True).endswith(b"[1] ValueError: x\n")
