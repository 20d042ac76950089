"""``malt doctor -H``: the network between hosts, pair by pair."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, permutations
from typing import Any, NoReturn

import malt
from malt._cli import hosts
from malt._cli.diagnosis import diagnosis
from malt._cli.finding import OK, PROBLEM, WARNING, Finding, show
from malt._cli.frames import Frames
from malt._cli.options import UsageError
from malt._cli.plan import reached_by

_SLOW = 12.5e6
"""Bytes a second, of a cable of 100 Mbit/s, below which a way is called slow."""

_FAR = 0.01
"""Seconds of a round trip above which a way is called slow."""


class _Host:
    """One host, and the probe that has been started there."""

    def __init__(self, name: str, command: Sequence[str], opened: ExitStack) -> None:
        self.name = name
        self._command = command
        self._errors = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors)
        except FileNotFoundError:
            raise UsageError(
                "malt doctor",
                f"{command[0]!r} was not found: install it (apt install openssh-client), or say --ssh",
            ) from None
        opened.enter_context(self._process)
        opened.callback(self._process.terminate)
        self._frames = Frames()
        self._heard: list[dict[str, Any]] = []

    def ask(self, **what: Any) -> dict[str, Any]:
        """Have the probe do something, and return what it says."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # `hear` says why
        return self.hear()

    def hear(self) -> dict[str, Any]:
        """Return the next thing that the probe says."""
        assert self._process.stdout is not None
        while not self._heard and (piece := os.read(self._process.stdout.fileno(), 1 << 16)):
            self._heard += [json.loads(data) for _, _, data in self._frames.feed(piece)]
        if self._heard:
            said = self._heard.pop(0)
            if "refused" in said:
                raise UsageError("malt doctor", f"host {self.name}: {said['refused']}")
            return said
        self._process.wait()
        self._errors.seek(0)
        errors, noise = self._errors.read().decode(errors="replace"), self._frames.noise.decode(errors="replace")
        raise UsageError("malt doctor", diagnosis(self.name, self._command, errors, noise))


def main(options: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> int:
    """Check each pair of the hosts that the options name, and return the exit code."""
    named = {host.name: host for host in hosts.from_words(options.hosts, 1, refuse)}
    if len(named) < 2:
        refuse(f"-H {options.hosts} names one host: two or more are expected, such as -H node1,node2")
    _, reach = reached_by(options, "malt._cli.probe")
    with ExitStack() as opened:
        probes = [_Host(name, reach(host), opened) for name, host in named.items()]
        for probe in probes:
            version = probe.hear()["version"]
            if version != malt.__version__:
                raise UsageError(
                    "malt doctor",
                    f"host {probe.name} has MALT {version} and this machine has {malt.__version__}: install the same "
                    "version everywhere, or name another Python there with --python",
                )
        secret, interface = os.urandom(16).hex(), os.environ.get("MALT_INTERFACE", "")
        described = [probe.ask(do="listen", secret=secret, interface=interface) for probe in probes]
        wide = max(4, *(len(name) for name in named))
        print(f"{'host':{wide}}  {'interface':12}{'MTU':>6}  address")
        for probe, about in zip(probes, described, strict=True):
            for one in about["interfaces"]:
                note = "  (public: MALT encrypts)" if one["public"] else ""
                print(f"{probe.name:{wide}}  {one['name']:12}{one['mtu']:6}  {one['address']}{note}")
        print(
            f"\n{'from':{wide}}  {'to':{wide}}  {'round trip':>10}  {'rate':>10}  {'path MTU':>8}  verdict", flush=True
        )
        found: list[Finding] = []
        for (a, _), (b, there) in permutations(zip(probes, described, strict=True), 2):
            way = a.ask(do="measure", store=there["store"])
            verdict, findings = judged(f"{a.name} -> {b.name}", b.name, there, way)
            found += findings
            trip, rate = way.get("round_trip"), way.get("rate")
            print(
                f"{a.name:{wide}}  {b.name:{wide}}  {'-' if trip is None else f'{trip * 1e3:.2f} ms':>10}  "
                f"{'-' if rate is None else _rate(rate):>10}  {way.get('mtu') or '-':>8}  {verdict}",
                flush=True,
            )
    print()
    return show(found or [Finding(OK, "network", f"all {len(named)} hosts reach each other")])


def _rate(rate: float) -> str:
    return (
        f"{rate / 1e9:.1f} GB/s"
        if rate >= 1e9
        else f"{rate / 1e6:.1f} MB/s"
        if rate >= 1e6
        else f"{rate / 1e3:.0f} KB/s"
    )


# ------------------------------------------------------------------ what it means


def judged(pair: str, to: str, there: dict[str, Any], way: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the verdict on the way from one host to another in a word or two, and what to say of it.

    Parameters
    ----------
    pair, to : str
        What the way and the other host are called.
    there, way : dict
        What the probes say: of the other host, and of the way.
    """
    failed = list(_failures(pair, to, way["tried"]))
    if "address" not in way:
        return way["tried"][0]["how"], [Finding(PROBLEM, *said) for said in failed]
    # MALT tries the addresses of a host side by side, so one that works is enough.
    found = [
        Finding(WARNING, about, what, f"name the network that works: MALT_INTERFACE, such as {way['address']}/24")
        for about, what, _ in failed
    ]
    if way.get("hole"):
        fits = way["mtu"]
        return "MTU hole", [
            *found,
            Finding(
                PROBLEM,
                pair,
                "small packets arrive, large ones do not: the path's MTU"
                + (f" is near {fits}, and nothing says so" if fits else ", or a firewall that drops long packets"),
                f"ip link set dev {_device(there, way['address'])} mtu {fits or 1280} on both hosts, or let ICMP "
                '"fragmentation needed" pass',
            ),
        ]
    if way["rate"] < _SLOW or way["round_trip"] > _FAR:
        second = f"{1e6 / way['rate'] + way['round_trip']:.2g} s"
        return "slow", [
            *found,
            Finding(
                WARNING,
                pair,
                f"{_rate(way['rate'])}, round trip {way['round_trip'] * 1e3:.2f} ms: 1 MB takes {second}",
                "sync less often (every=), send less (sparse=, graph halton), or use a faster network",
            ),
        ]
    return "ok", found


def _failures(pair: str, to: str, tried: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield one finding for all addresses that failed in the same way."""
    kinds = groupby(tried, lambda one: (one["how"], one.get("host_answers"), one.get("why")))
    for (how, answers, why), several in kinds:
        ones = list(several)
        addresses = " and ".join(one["address"] for one in ones)
        at = f"{addresses} port {ones[0]['port']}"
        allow = f"let TCP to all ports of {addresses} pass, in the firewall of {to} and on the way"
        if how == "dropped" and answers:
            yield pair, f"no answer from {at}, though the host answers at port 22: a firewall drops it", allow
        elif how == "dropped":
            yield pair, f"no answer from {at}, nor from port 22 there", f"is it the right network? If so, {allow}"
        elif how == "refused":
            yield pair, f"{at} was refused, although the probe of {to} listens: a firewall rejects it", allow
        elif how == "rejected":
            yield pair, f"{at} was rejected by a firewall or router (no route to host, or prohibited)", allow
        elif how == "no route":
            yield pair, f"this host has no route to {addresses}", "set one up, or name another network: MALT_INTERFACE"
        elif how == "broken":
            yield pair, f"the connection with {at} broke: {why}", "look at the hosts' kernel logs and cables"


def _device(there: dict[str, Any], address: str) -> str:
    name: str = next(one["name"] for one in there["interfaces"] if one["address"] == address)
    return name
