"""Two of three servers are gone: nothing is confirmed, and clients learn it in bounded time."""

import time

import pytest
from pamqp import commands

from tests.clusters.accounting import Accounting
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.waiting import wait_until

#: How long a client may be left without being blocked or disconnected, and a declare without an end, in seconds.
TOLD_S = 45.0

#: How long the servers are gone, in seconds.
GONE_S = 12.0


class Watcher:
    """A connection that publishes, and waits until it is told that nothing is stored."""

    def __init__(self, node: ClusterNode, queue: str) -> None:
        self.link = AmqpLink(node.addresses["amqp"], TOLD_S)
        self.link.declare(queue)
        self.link.call(commands.Confirm.Select())
        self.queue = queue
        self.confirms = 0

    def publish(self) -> None:
        """Publish a message."""
        self.link.publish(self.queue, b"while there is no majority")

    def seconds_until_told(self) -> float:
        """Return how long it takes until the publisher is blocked, or its connection ends."""
        begin_s = time.monotonic()
        try:
            while not self.link.blocked:
                found = self.link._next()
                if self.link.note(found):
                    continue
                if isinstance(found, commands.Basic.Ack):
                    self.confirms += 1
                elif isinstance(found, commands.Connection.Close):
                    break
        except ConnectionResetError:
            pass
        return time.monotonic() - begin_s

    def seconds_until_declared_or_ended(self) -> float:
        """Declare a queue; return how long it takes until an error or the end of the connection."""
        begin_s = time.monotonic()
        with pytest.raises(ConnectionResetError):
            self.link.declare(f"{self.queue}-other")
        return time.monotonic() - begin_s


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_without_a_majority_nothing_is_confirmed(cluster: GatewayCluster) -> None:
    accounting = Accounting(cluster, "majority").start()
    for at in range(ROUNDS):
        leader = cluster.leader()
        publishing, declaring = Watcher(leader, f"watched-{at}"), Watcher(leader, f"declared-{at}")
        gone = [cluster.servers.servers[at % 3], cluster.servers.servers[at % 3 - 1]]
        gone_s = time.monotonic()
        for server in gone:
            server.kill()
        publishing.publish()
        told_s = publishing.seconds_until_told()
        declared_s = declaring.seconds_until_declared_or_ended()
        confirmed = accounting.confirmed
        wait_until(lambda gone_s=gone_s: time.monotonic() - gone_s >= GONE_S, timeout_s=GONE_S)  # type: ignore[misc]
        assert accounting.confirmed == confirmed, "something was confirmed without a majority"
        assert publishing.confirms == 0
        assert told_s <= TOLD_S
        assert declared_s <= TOLD_S
        print(f"told after {told_s:.1f} s, a declare ended after {declared_s:.1f} s")
        for server in gone:
            server.start()
        cluster.servers.wait_until_ready()
        accounting.goes_on()
        for watcher in (publishing, declaring):
            watcher.link.close()
    accounting.finish()
    assert all(node.child.poll() is None for node in cluster.nodes), "a node has ended"
