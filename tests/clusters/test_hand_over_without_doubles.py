"""An orderly hand-over confirms what the former leader has stored, so that no message is published again."""

from collections import Counter
from threading import Event, Thread
from typing import Final

import pytest
from pamqp import commands

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.clusters.test_staying_clients import hand_over
from tests.waiting import wait_until

#: So many messages wait for their confirms at a time.
_WINDOW: Final = 500

_ANSWER_S: Final = 60.0


class WindowPublisher:
    """A thread that publishes numbers, with many confirms outstanding. ``confirmed`` counts these."""

    def __init__(self, node: ClusterNode, queue: str) -> None:
        self.sent = self.confirmed = 0
        self._node = node
        self._queue = queue
        self._is_over = Event()
        self._thread = Thread(target=self._publish, daemon=True)

    def start(self) -> "WindowPublisher":
        """Begin."""
        self._thread.start()
        return self

    def finish(self) -> None:
        """Publish no more, and wait for the last confirm."""
        self._is_over.set()
        self._thread.join(_ANSWER_S)
        assert self.confirmed == self.sent

    def _publish(self) -> None:
        with AmqpLink(self._node.addresses["amqp"], _ANSWER_S) as link:
            link.call(commands.Confirm.Select())
            while not self._is_over.is_set() or self.confirmed < self.sent:
                while self.sent - self.confirmed < _WINDOW and not self._is_over.is_set():
                    self.sent += 1
                    link.publish(self._queue, b"%d" % self.sent)
                found = link.next_method()
                assert isinstance(found, commands.Basic.Ack), found
                self.confirmed = found.delivery_tag if found.multiple else self.confirmed + 1


@pytest.mark.timeout(200 + 60 * ROUNDS)
def test_an_orderly_hand_over_doubles_no_message_of_a_publisher_that_stays(cluster: GatewayCluster) -> None:
    for at in range(ROUNDS):
        leader, follower = cluster.leader(), cluster.follower()
        successor = next(node for node in cluster.nodes if node not in (leader, follower))
        queue = f"handed-over-{at}"
        with AmqpLink(leader.addresses["amqp"]) as link:
            link.declare(queue)
        publisher = WindowPublisher(follower, queue).start()
        wait_until(lambda publisher=publisher: publisher.confirmed > 2000, cluster.logs)  # type: ignore[misc]
        hand_over(cluster, successor)
        before = publisher.confirmed
        wait_until(
            lambda publisher=publisher, before=before: publisher.confirmed > before + 1000,  # type: ignore[misc]
            cluster.logs,
            timeout_s=_ANSWER_S,
        )
        publisher.finish()
        with AmqpLink(successor.addresses["amqp"], _ANSWER_S) as link:
            found = Counter(map(int, link.take_all(queue)))
        assert set(found) == set(range(1, publisher.sent + 1))
        assert max(found.values()) == 1, f"{sum(found.values()) - len(found)} messages are there twice"
