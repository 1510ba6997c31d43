"""A client of pika that notes whether its node blocks it, and why its connection ends."""

from threading import Event, Thread

import pika

from tests.clusters.gateway_cluster import ClusterNode
from tests.clusters.staying_clients import HEARTBEAT_S


class BlockedClient:
    """A thread with a connection. ``events`` has the reasons of ``connection.blocked``, and ``unblocked``.

    ``end`` is the reason why the connection was closed; empty while it is open. ``has_published``: it has sent one.
    """

    def __init__(self, node: ClusterNode, queue: str) -> None:
        self.events: list[str] = []
        self.end = ""
        self.has_published = False
        self._node = node
        self._queue = queue
        self._is_over, self._asks = Event(), Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> "BlockedClient":
        """Connect, publish a message, and wait for what comes."""
        self._thread.start()
        return self

    def ask(self) -> None:
        """Declare a queue."""
        self._asks.set()

    def close(self) -> None:
        """End the thread."""
        self._is_over.set()
        self._thread.join(30.0)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._watch()
        except pika.exceptions.AMQPError as error:
            self.end = str(error)

    def _watch(self) -> None:
        host, port = self._node.addresses["amqp"]
        with pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=HEARTBEAT_S)) as connection:
            connection.add_on_connection_blocked_callback(lambda _, frame: self.events.append(frame.method.reason))
            connection.add_on_connection_unblocked_callback(lambda *_: self.events.append("unblocked"))
            channel = connection.channel()
            channel.basic_publish("", self._queue, b"first")
            channel.queue_declare(self._queue, durable=True)
            self.has_published = True
            while not self._is_over.is_set():
                connection.process_data_events(0.1)
                if self._asks.is_set():
                    channel.queue_declare(f"{self._queue}-asked", durable=True)
                    self._asks.clear()
