"""The time in which the queues of a cluster are not served."""

import time

from pamqp import commands

from tests.clusters.gateway_cluster import GatewayCluster
from tests.clusters.links import AmqpLink


def interruption_s(cluster: GatewayCluster, without: str, begin_s: float) -> float:
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
