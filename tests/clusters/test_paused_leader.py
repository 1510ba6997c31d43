"""The leader is stopped for 10 s, as by an overloaded host: what it does afterwards counts for nothing."""

import time

import pytest
from pamqp import commands

from tests.clusters.accounting import Accounting
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.waiting import wait_until

PAUSE_S = 10.0
MESSAGES = 30


class DeafClient:
    """A client of the paused node, which goes on publishing to it."""

    def __init__(self, node: ClusterNode, queue: str) -> None:
        self._queue = queue
        self._link = AmqpLink(node.addresses["amqp"])
        self._link.declare(queue)
        self._link.call(commands.Confirm.Select())
        self.sent: list[bytes] = []

    def publish(self, text: str) -> None:
        """Publish some messages, and wait for nothing."""
        for number in range(MESSAGES):
            self.sent.append(f"{text} {number}".encode())
            self._link.publish(self._queue, self.sent[-1])

    def confirmed(self) -> list[bytes]:
        """Read until the broker closes the connection; return the messages that were confirmed."""
        confirmed: list[bytes] = []
        for each in self._link.receive_all():
            if isinstance(each, commands.Basic.Ack):
                confirmed = (
                    self.sent[: each.delivery_tag] if each.multiple else [*confirmed, self.sent[each.delivery_tag - 1]]
                )
        self._link.close()
        return confirmed


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_what_a_paused_leader_does_afterwards_counts_for_nothing(cluster: GatewayCluster) -> None:
    accounting = Accounting(cluster, "paused").start()
    for at in range(ROUNDS):
        old = cluster.leader()
        epoch = old.led_epoch
        client = DeafClient(old, f"deaf-{at}")
        client.publish("before")
        old.pause()
        paused_s = time.monotonic()
        client.publish("during")
        leader = cluster.leader(after=epoch)
        accounting.goes_on()
        wait_until(lambda paused_s=paused_s: time.monotonic() - paused_s >= PAUSE_S, timeout_s=PAUSE_S)  # type: ignore[misc]
        old.resume()
        confirmed = client.confirmed()
        old.log_has("no longer the leader")
        wait_until(lambda old=old: old.led_epoch == 0, "the old leader still leads")  # type: ignore[misc]
        assert cluster.leader() is leader, "the new leader did not stay"
        with AmqpLink(leader.addresses["amqp"]) as link:
            stored = link.take_all(f"deaf-{at}")
        assert set(confirmed) <= set(stored), "a lost message was confirmed"
        assert stored == client.sent[: len(stored)], "messages came twice, or out of order"
        accounting.goes_on()
    accounting.finish()
    # It follows again by itself: it can lead, once the others are gone.
    epoch = leader.led_epoch
    others = [node for node in cluster.nodes if node is not old]
    for node in others:
        node.kill()
    assert cluster.leader(after=epoch) is old
    cluster.start()
