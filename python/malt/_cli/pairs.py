"""``malt doctor -H``: the network between hosts, pair by pair."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from itertools import groupby, permutations
from typing import Any

from malt._cli import hosts
from malt._cli.finding import OK, PROBLEM, WARNING, Finding, show
from malt._cli.options import Refuse
from malt._cli.remote import Inquiries

_SLOW = 12.5e6
"""Bytes a second, of a cable of 100 Mbit/s, below which a way is called slow."""

_FAR = 0.01
"""Seconds of a round trip above which a way is called slow."""


def main(options: argparse.Namespace, refuse: Refuse) -> int:
    """Check each pair of the hosts that the options name, and return the exit code."""
    named = dict.fromkeys(host.name for host in hosts.from_words(options.hosts, 1, refuse))
    if len(named) < 2:
        refuse(f"-H {options.hosts} names one host", "expected two or more, such as -H node1,node2")
    with Inquiries("malt doctor", "malt._cli.probe", list(named), options) as there:
        probes = there.programs
        there.begin()
        secret, interface = os.urandom(16).hex(), os.environ.get("MALT_INTERFACE", "")
        described = there.inquire(probes, do="listen", secret=secret, interface=interface)
        wide = max(4, *(len(name) for name in named))
        print(f"{'host':{wide}}  {'interface':12}{'MTU':>6}  address")
        for probe, about in zip(probes, described, strict=True):
            for one in about["interfaces"]:
                note = "  (public)" if one["public"] else ""
                print(f"{probe.host:{wide}}  {one['name']:12}{one['mtu']:6}  {one['address']}{note}")
        if any(one["public"] for about in described for one in about["interfaces"]):
            print("MALT encrypts what it sends to public addresses.")
        print(f"\n{'from':{wide}}  {'to':{wide}}  {'round trip':>10}  {'rate':>10}  {'MTU':>5}  verdict", flush=True)
        found: list[Finding] = []
        for (a, _), (b, about) in permutations(zip(probes, described, strict=True), 2):
            (way,) = there.inquire([a], do="measure", store=about["store"])
            verdict, findings = judged(f"{a.host} -> {b.host}", b.host, about, way)
            found += findings
            trip, rate = way.get("round_trip"), way.get("rate")
            print(
                f"{a.host:{wide}}  {b.host:{wide}}  {'-' if trip is None else f'{trip * 1e3:.2f} ms':>10}  "
                f"{'-' if rate is None else _rate(rate):>10}  {way.get('mtu') or '-':>5}  {verdict}",
                flush=True,
            )
    print()
    return show(found or [Finding(OK, "network", f"all {len(named)} hosts reach each other")])


def _rate(rate: float) -> str:
    amount, unit = (rate / 1e9, "GB") if rate >= 1e9 else (rate / 1e6, "MB") if rate >= 1e6 else (rate / 1e3, "KB")
    return f"{amount:.{int(unit != 'KB')}f} {unit}/s"


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
                + (f" is near {fits}, and no router reports it" if fits else ", or a firewall that drops long packets"),
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
