"""A rolling restart: each node is stopped in order and started again. Nothing is lost, and clients wait little."""

import time

import pytest
from pamqp import commands

from tests.clusters.accounting import Accounting
from tests.clusters.gateway_cluster import GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS

#: The longest interruption that is owed, in seconds, and what a busy machine adds to it here.
OWED_S = 2.0
_BUSY_S = 25.0


def _interruption_s(cluster: GatewayCluster, without: str, begin_s: float) -> float:
    """Return how long it takes until some node serves a queue again."""
    while True:
        assert time.monotonic() - begin_s < 30, f"the queue is not served:\n{cluster.logs()}"
        for node in cluster.nodes:
            if node.name == without or not node.is_running:
                continue
            try:
                with AmqpLink(node.addresses["amqp"], 0.25) as link:
                    link.call(commands.Confirm.Select())
                    link.publish("interrupted", b"")
                    link.next_method()
            except OSError:
                continue
            return time.monotonic() - begin_s


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
                interruptions.append(_interruption_s(cluster, node.name, begin_s))
            assert node.stop() == 0, node.log
            if led:
                cluster.leader(after=epoch)
            accounting.goes_on()
            cluster.start()
    accounting.finish()
    print("interruptions:", [f"{each:.2f} s" for each in interruptions])
    assert interruptions
    assert max(interruptions) < OWED_S + _BUSY_S
