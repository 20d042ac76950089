"""Where a host with several addresses listens."""

from __future__ import annotations

import json

import pytest
from net.talking import Programs

from malt._sim import Network
from malt._sim.programs import call

LISTED = """
from malt._ranks.addresses import addresses
say(json.dumps([addresses(sys.argv[1]), addresses()]))
"""


@pytest.mark.parametrize("label", ["eth0", "eth0:1"])
def test_a_second_address_of_a_device_can_be_chosen(label: str) -> None:
    with Network(1) as net, Programs() as started:
        (host,) = net.hosts
        call("ip", "address", "add", "192.168.77.1/24", "dev", "eth0", "label", label, enter=host._enter)
        chosen, everything = json.loads(started.start(host, LISTED, "192.168.77.0/24").hear())
        assert chosen == ["192.168.77.1"]
        assert everything == ["10.0.0.1", "192.168.77.1", "fd00::1"]
        assert json.loads(started.start(host, LISTED, "eth0").hear())[0] == everything
