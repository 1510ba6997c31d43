"""Clients of STOMP that must not lose their connection: see ``StayingClients``."""

from threading import Condition
from typing import Any

import stomp
from stomp.utils import Frame

from tests.clusters.gateway_cluster import ClusterNode
from tests.clusters.staying_clients import StayingClients
from tests.clusters.staying_mqtt_clients import LONGEST_S
from tests.waiting import wait_until

#: The time for a receipt across a takeover, in seconds; and the interval of heart-beats, in milliseconds.
_RECEIPT_S = 60.0
_BEAT_MS = 5000

_PAUSE_S = 0.005


class _Listener(stomp.ConnectionListener):
    """Reports receipts, messages and the end of a connection."""

    def __init__(self, clients: "StompClients", connection: Any) -> None:
        self._clients = clients
        self._connection = connection
        self.receipts: set[str] = set()
        self.changed = Condition()

    def on_receipt(self, frame: Frame) -> None:
        with self.changed:
            self.receipts.add(frame.headers["receipt-id"])
            self.changed.notify_all()

    def on_message(self, frame: Frame) -> None:
        self._clients.taken.append(int(frame.body))
        self._connection.ack(frame.headers["ack"])

    def on_error(self, frame: Frame) -> None:
        self._clients.failures.append(ConnectionError(f"ERROR: {frame.headers} {frame.body}"))

    def on_disconnected(self) -> None:
        if not self._clients.leaves:
            self._clients.failures.append(ConnectionError("disconnected"))


class StompClients(StayingClients):
    """A publisher with receipts and a consumer of stomp.py that do not connect again."""

    listener = "stomp"

    def _secure(self, connection: Any) -> None:
        """Set up TLS."""

    def __init__(self, node: ClusterNode, queue: str) -> None:
        self.leaves = False
        super().__init__(node, queue)

    def _connect(self) -> tuple[Any, _Listener]:
        connection = stomp.Connection12(
            [self.node.addresses[self.listener]], vhost="/", heartbeats=(_BEAT_MS, _BEAT_MS), reconnect_attempts_max=1
        )
        self._secure(connection)
        listener = _Listener(self, connection)
        connection.set_listener("", listener)
        connection.connect("guest", "guest", wait=True)
        return connection, listener

    def publish(self) -> None:
        """See ``StayingClients``."""
        connection, listener = self._connect()
        number = 0
        while not self._is_over.is_set() and not self.failures:
            number += 1
            name = str(number)
            connection.send(f"/queue/{self.queue}", name, receipt=name, persistent="true")
            with listener.changed:
                assert listener.changed.wait_for(lambda name=name: name in listener.receipts, _RECEIPT_S), name
            self.confirmed.append(number)
            self._is_over.wait(_PAUSE_S)
        self._is_published.set()
        self._leave(connection)

    def consume(self) -> None:
        """See ``StayingClients``."""
        connection, _ = self._connect()
        headers = {"prefetch-count": "10"}
        connection.subscribe(f"/queue/{self.queue}", "1", ack="client-individual", headers=headers)
        wait_until(lambda: self.failures or self.has_ended, "the publisher does not end", timeout_s=LONGEST_S)
        self._leave(connection)

    def _leave(self, connection: Any) -> None:
        self.leaves = True
        connection.disconnect()
