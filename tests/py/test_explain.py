"""``malt explain``, and that the guide has each topic that a message names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from malt._cli import explain, main

ROOT = Path(__file__).parents[2]


def named() -> set[str]:
    """Return the topics in the sources of the messages, Go's and Python's."""
    found = set()
    for folder in ("capi", "libmalt", "rdma"):
        for path in (ROOT / folder).rglob("*.go"):
            if not path.name.endswith("_test.go"):
                text = path.read_text()
                found |= set(re.findall(r'\bTopic: +"([^"]*)"', text))
                for names, values in re.findall(
                    r"^\s*(?:if )?([\w., ]*\bTopic\b[\w., ]*) = (.*?)(?:;.*)?$", text, re.M
                ):
                    assert names.split(", ")[-1].endswith("Topic"), f"{path}: the topic last, so that this test sees it"
                    found |= set(re.findall(r'"([a-z-]*)"$', values))
                found |= set(re.findall(r'\.More\("([^"]*)"\)', text))
                found |= set(re.findall(r'\bwaitFor\(.*"([a-z-]+)"\)', text))
    for path in (ROOT / "python" / "malt").rglob("*.py"):
        text = path.read_text()
        found |= set(re.findall(r'\btopic="([^"]*)"', text)) | set(re.findall(r"malt explain ([a-z-]{3,})\b", text))
    return found - {""}


def test_the_guide_has_every_topic_that_is_named() -> None:
    topics = explain.topics()
    assert {"different-calls", "sync-timeout", "mismatch", "dead", "firewall", "out-of-memory", "unchanged"} <= named()
    assert named() <= set(topics)
    assert {"hangs", "slow", "timeout", "out-of-memory", "firewall", "mismatch", "checkpoint"} <= set(topics)
    assert {"top", "stack", "trace", "report"} <= set(topics)
    assert topics["stack"] == topics["hangs"]


def test_a_topic_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mismatch"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Ranks disagree about a vector\n===")
    assert "    import malt\n" in said
    assert not re.search(r"^#|^```|\]\(|\)=$", said, re.M), said


@pytest.mark.parametrize("topic", explain.topics())
def test_prose_lists_and_tables_fit_the_terminal(topic: str) -> None:
    text = explain.topics()[topic]
    code = [line for line in text.splitlines() if line.startswith("    ")]
    lines = list(explain.fitted(text, 60))
    assert [line for line in lines if line in code] == code
    assert max(len(line) for line in lines if line not in code) <= 60
    assert sorted(re.findall(r"[^\s|-]+", " ".join(lines))) == sorted(re.findall(r"[^\s|-]+", text))
    assert not re.search(r"^#|^`{3}|^\||\{eval-rst|:alt:|\]\(|\)=$", "\n".join(lines), re.MULTILINE)


def test_without_a_topic_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(explain.topics())


def test_words_that_a_user_may_look_for_are_topics() -> None:
    assert {"graphs", "consistency", "learning-rate", "every"} <= explain.topics().keys()
    for word in ("ids", "filter", "sparse", "age", "ssp"):
        assert re.search(rf"\b{word}\b", explain.topics()[word])
    assert explain.topics()["ids"].startswith("Ids, wants and fold\n")
    assert explain.topics()["sparse"].startswith("Sparse models\n")
    assert "`dvf-l2:D`" in explain.topics()["filter"]


def test_a_misspelt_topic_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "hang"]) == 2
    assert "'hang' is not a topic\nDid you mean 'hangs'?" in capsys.readouterr().err


def test_it_is_small() -> None:
    assert Path(explain.__file__).parents[1].joinpath("_topics.json").stat().st_size < 93_000
