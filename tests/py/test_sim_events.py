"""What can happen in a simulated network: what its words mean, and what is cut after it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from malt._sim import SimError
from malt._sim.events import WAYS, Cut, parse


def cuts(*texts: str, count: int = 3) -> set[tuple[int, int, str]]:
    """Return what is cut after some events."""
    found: frozenset[Cut] = frozenset()
    for text in texts:
        found = parse(text).outcome(found, count)
    return {tuple(cut) for cut in found}


@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        (["cut:h0->h2"], {(0, 2, "drop")}),
        (["cut:h0-h2"], {(0, 2, "drop"), (2, 0, "drop")}),
        (["cut:h1"], {(0, 1, "drop"), (1, 0, "drop"), (1, 2, "drop"), (2, 1, "drop")}),
        (["cut=reject:h0->h1"], {(0, 1, "reject")}),
        (["cut=unplug:h1"], {(1, 1, "unplug")}),
        (["cut=address:h1"], {(1, 1, "address")}),
        (["off:h1"], {(1, 1, "unplug")}),
        (["cut:h0-h1", "heal:h1->h0"], {(0, 1, "drop")}),
        (["cut:h0->h1", "cut=blackhole:h0->h1", "heal:h0-h1"], set()),
        (["cut:h1", "heal:h0-h1"], {(1, 2, "drop"), (2, 1, "drop")}),
        (["cut=unplug:h1", "heal:h0-h1"], {(1, 1, "unplug")}),
        (["cut=unplug:h1", "cut:h0-h1", "cut:h0-h2", "heal:h1"], {(0, 2, "drop"), (2, 0, "drop")}),
        (["heal:h0"], set()),
    ],
)
def test_what_is_cut(texts: Sequence[str], cut: set[tuple[int, int, str]]) -> None:
    assert cuts(*texts) == cut


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("off:h1", "host h1 is powered off"),
        ("cut:h0->h2", "packets from h0 to h2 are dropped"),
        ("cut=blackhole:h0-h2", "packets between h0 and h2 are discarded by a blackhole route"),
        ("cut=reject:h2", "packets between h2 and all others are rejected by a firewall"),
        ("cut=unplug:h2", "the cable of host h2 is unplugged"),
        ("cut=address:h2", "host h2 has lost its addresses"),
        ("heal:h2", "packets between h2 and all others pass again"),
        ("heal:h0->h2", "packets from h0 to h2 pass again"),
    ],
)
def test_sentences(text: str, sentence: str) -> None:
    assert str(parse(text)) == sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is not an event"),
        ("cut", "'cut' is not an event"),
        ("cut:1", "'cut:1' is not an event"),
        ("cut:h1-", "'cut:h1-' is not an event"),  # what a shell leaves of cut:h1->h2
        ("cut:h1,h2", "such as off:h1, cut:h0-h1 or 'cut:h0->h1'"),
        ("cut:h1-h1", "h1-h1 is not a link\nexpected two hosts"),
        ("off:h0-h1", "'off:h0-h1' is not about one host"),
        ("cut=address:h0->h1", "'cut=address:h0->h1' is not about one host"),
        ("cut=saw:h1", f"cut=saw is not known\na cut has a way: cut={', cut='.join(WAYS)}"),
        ("heal=drop:h1", "heal=drop is not known"),
    ],
)
def test_what_is_no_event(text: str, said: str) -> None:
    with pytest.raises(SimError) as raised:
        parse(text)
    assert said in str(raised.value)


def test_hosts_that_are_not_there() -> None:
    for text in ("off:h3", "cut:h0-h3", "heal:h3->h0"):
        with pytest.raises(SimError, match="there is no host h3\nthe hosts are h0, h1, h2"):
            cuts(text)
