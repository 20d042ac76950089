"""What the package says of itself: the README as it is shown elsewhere, and what ``malt explain`` prints.

A topic is a section of the docs that has a label, such as ``(hangs)=``. It goes on to the next heading
of its level or a higher one; topics in between are named only. Links lose their addresses, and what
is meant for Sphinx alone is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

LABELS = re.compile(r"((?:^\([a-z][a-z-]*\)=\n)+)\n*(#+) (.+)\n", re.MULTILINE)


def topics(docs: Path) -> dict[str, str]:
    """Return the text of each topic, by its label; for further labels of a section its first one."""
    found: dict[str, str] = {}
    for page in sorted(docs.rglob("*.md")):
        text = page.read_text()
        for heading in LABELS.finditer(text):
            section = text[heading.end() : _end(text, heading)]
            while inner := LABELS.search(section):
                more = f"{inner[3]}: `malt explain {_names(inner)[0]}`\n\n"
                section = section[: inner.start()] + more + section[_end(section, inner) :]
            first, *_ = names = _names(heading)
            for name in names:
                if name in found:
                    raise ValueError(f"{page}: the topic {name} is there twice")
                found[name] = _plain(heading[3], section) if name == first else first
    return found


def _names(heading: re.Match[str]) -> list[str]:
    return re.findall(r"[a-z-]+", heading[1])


def _end(text: str, heading: re.Match[str]) -> int:
    """Return where the section ends: its label, if it has one, is not part of the one before."""
    rest = _without_code(text[heading.end() :])
    end = re.search(rf"^(\([a-z][a-z-]*\)=\n+)*#{{1,{len(heading[2])}}} ", rest, re.MULTILINE)
    return heading.end() + end.start() if end else len(text)


def outside(readme: str, root: Path) -> str:
    """Return the README as it is shown where the checkout is not: its links name what the package has.

    A page of the guide that begins with a label is a topic of ``malt explain``. Other links to
    files lose their addresses, and pictures are left out.
    """

    def link(found: re.Match[str]) -> str:
        words, target = found.groups()
        if "://" in target:
            return found[0]
        page = root / target
        label = re.match(r"\(([a-z][a-z-]*)\)=", page.read_text()) if page.suffix == ".md" else None
        return f"{words} (`malt explain {label[1]}`)" if label else words

    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", link, re.sub(r"^!\[[^\]]*\]\([^)]+\)\n", "", readme, flags=re.MULTILINE))


def _without_code(text: str) -> str:
    """Return text of the same length in which no line of code looks like a heading."""
    return re.sub(r"^```.*?^```$", lambda m: m[0].replace("#", "."), text, flags=re.MULTILINE | re.DOTALL)


def _plain(title: str, text: str) -> str:
    """Return a section as it is read in a terminal."""
    text = re.sub(r"^\([a-z-]+\)=\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(`{3,})\{(?!code-block|grid)([^\n]*)\n(.*?)^\1$", _made, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^`{5,}.*\n(:.*\n)*", "", text, flags=re.MULTILINE)  # of a grid
    text = re.sub(r"^(`{3,})(?:\{code-block\} )?\w*\n(.*?)^\1$", _indented, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(
        r"\[\]\(([\w/.-]*?)(?:\.md)?(?:#([\w-]+))?\)", lambda m: f'"{(m[2] or m[1]).replace("-", " ")}"', text
    )
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r"^##+ (.+)$", lambda m: f"{m[1]}\n{'-' * len(m[1])}", text, flags=re.MULTILINE)
    return f"{title}\n{'=' * len(title)}\n\n{text.strip(chr(10))}\n"


def _made(block: re.Match[str]) -> str:
    """Return what stands for a block that Sphinx makes: a picture's text, or the command that prints it."""
    if alternative := re.search(r"^ *:alt: (.+)", block[3], re.MULTILINE):
        return f"Picture: {alternative[1]}"
    directive, _, argument = block[2].partition("} ")
    return f"    {argument}" if directive == "produced" else ""


def _indented(block: re.Match[str]) -> str:
    return re.sub(r"^(?=.)", "    ", block[2], flags=re.MULTILINE).rstrip("\n")
