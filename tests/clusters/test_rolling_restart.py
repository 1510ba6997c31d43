"""A rolling restart: each node is stopped in order and started again. Nothing is lost, and clients wait little."""

import time

import pytest

from tests.clusters.accounting import Accounting
from tests.clusters.gateway_cluster import GatewayCluster
from tests.clusters.interruption import interruption_s
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS

#: The longest interruption that is owed, in seconds, and what a busy machine adds to it here.
OWED_S = 2.0
_BUSY_S = 25.0


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_a_rolling_restart_loses_nothing_and_interrupts_little(cluster: GatewayCluster) -> None:
    with AmqpLink(cluster.leader().addresses["amqp"]) as link:
        link.declare("interrupted")
    accounting = Accounting(cluster, "rolling").start()
    interruptions = []
    for _ in range(ROUNDS):
        for node in cluster.nodes:
            led = node is cluster.leader()
            epoch = node.led_epoch
            begin_s = time.monotonic()
            node.child.send_signal(15)
            if led:
                interruptions.append(interruption_s(cluster, node.name, begin_s))
            assert node.stop() == 0, node.log
            if led:
                cluster.leader(after=epoch)
            accounting.goes_on()
            cluster.start()
    accounting.finish()
    print("interruptions:", [f"{each:.2f} s" for each in interruptions])
    assert interruptions
    assert max(interruptions) < OWED_S + _BUSY_S
