"""Requests and replies through a follower while the leader changes: exclusive queues of a connection stay."""

import time
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.staying_clients import HEARTBEAT_S
from tests.clusters.test_staying_clients import hand_over
from tests.waiting import wait_until

#: A request without a reply for so long is sent again, in seconds: the leader takes transient messages with it.
_AGAIN_S = 3.0

_REQUESTS = "requests-and-replies"


class Conversation:
    """A server and a client on one node. ``answered`` counts the requests that were answered."""

    def __init__(self, node: ClusterNode) -> None:
        self.answered = 0
        self.failures: list[BaseException] = []
        self._node = node
        self._is_over = Event()
        self._threads = [Thread(target=self._guarded, args=(work,), daemon=True) for work in (self._serve, self._ask)]
        for thread in self._threads:
            thread.start()

    def _guarded(self, work: Any) -> None:
        try:
            host, port = self._node.addresses["amqp"]
            with pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=HEARTBEAT_S)) as connection:
                work(connection, connection.channel())
        except BaseException as error:
            self.failures.append(error)

    def _serve(self, connection: pika.BlockingConnection, channel: BlockingChannel) -> None:
        def answer(channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
            channel.basic_publish("", properties.reply_to, body)
            channel.basic_ack(method.delivery_tag)

        channel.basic_consume(_REQUESTS, answer)
        while not self._is_over.is_set():
            connection.process_data_events(0.2)

    def _ask(self, connection: pika.BlockingConnection, channel: BlockingChannel) -> None:
        replies: set[bytes] = set()
        own = channel.queue_declare("", exclusive=True, auto_delete=True).method.queue
        channel.basic_consume(own, lambda channel, method, properties, body: replies.add(body), auto_ack=True)
        while not self._is_over.is_set():
            asked, asked_s = uuid4().hex.encode(), 0.0
            while asked not in replies and not self._is_over.is_set():
                if time.monotonic() - asked_s > _AGAIN_S:
                    asked_s = time.monotonic()
                    channel.basic_publish("", _REQUESTS, asked, pika.BasicProperties(reply_to=own))
                connection.process_data_events(0.05)
            self.answered += 1

    def goes_on(self) -> None:
        """Wait until more requests are answered."""
        goal = self.answered + 20
        wait_until(lambda: self.failures or self.answered >= goal, lambda: f"{self.answered} answers", timeout_s=60.0)
        if self.failures:
            raise self.failures[0]

    def end(self) -> None:
        """End both."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(10.0)
        assert not self.failures


@pytest.mark.timeout(240)
def test_requests_are_answered_across_changes_of_the_leader(cluster: GatewayCluster) -> None:
    leader, follower = cluster.leader(), cluster.follower()
    with AmqpLink(leader.addresses["amqp"]) as link:
        link.declare(_REQUESTS)
    conversation = Conversation(follower)
    conversation.goes_on()
    for node in (follower, leader):  # the node of the clients leads too, and goes on with them
        hand_over(cluster, node)
        conversation.goes_on()
    epoch = leader.led_epoch
    leader.kill()
    cluster.leader(after=epoch)
    conversation.goes_on()
    conversation.end()
    cluster.start()
