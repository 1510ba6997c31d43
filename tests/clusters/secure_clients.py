"""Clients with TLS and over WebSocket that must not lose their connection: see ``StayingClients``."""

import ssl
from typing import Any

import pika
from paho.mqtt.client import Client, MQTTv5

from tests.broker.tls.certificates import Authority
from tests.clusters.gateway_cluster import ClusterNode
from tests.clusters.staying_clients import HEARTBEAT_S, PikaClients
from tests.clusters.staying_mqtt_clients import PahoClients
from tests.clusters.staying_stomp_clients import StompClients

#: The user who logs in by the certificate of this name.
USER = "orders"


class SecurePikaClients(PikaClients):
    """Clients of pika that log in by their certificate."""

    def __init__(self, node: ClusterNode, queue: str, authority: Authority) -> None:
        self.context = ssl.create_default_context(cafile=str(authority.certificate))
        self.context.load_cert_chain(*map(str, authority.sign(USER)))
        super().__init__(node, queue)

    def _connect(self) -> pika.BlockingConnection:
        host, port = self.node.addresses["amqps"]
        return pika.BlockingConnection(
            pika.ConnectionParameters(
                host,
                port,
                heartbeat=HEARTBEAT_S,
                credentials=pika.credentials.ExternalCredentials(),
                ssl_options=pika.SSLOptions(self.context, host),
            )
        )


class SecureStompClients(StompClients):
    """Clients of stomp.py with TLS."""

    listener = "stomps"

    def __init__(self, node: ClusterNode, queue: str, authority: Authority) -> None:
        self._authority = authority
        super().__init__(node, queue)

    def _secure(self, connection: Any) -> None:
        connection.set_ssl([self.node.addresses[self.listener]], ca_certs=str(self._authority.certificate))


class SecurePahoClients(PahoClients):
    """Clients of paho with TLS, with QoS 2."""

    listener = "mqtts"

    def __init__(self, node: ClusterNode, topic: str, authority: Authority) -> None:
        self._authority = authority
        super().__init__(node, topic, MQTTv5, 2)

    def _secure(self, client: Client) -> None:
        client.tls_set(ca_certs=str(self._authority.certificate))


class SecureWebPahoClients(SecurePahoClients):
    """Clients of paho over WebSocket with TLS."""

    listener = "web_mqtts"
    transport = "websockets"

    def _secure(self, client: Client) -> None:
        super()._secure(client)
        client.ws_set_options("/ws")


class WebPahoClients(PahoClients):
    """Clients of paho over WebSocket without TLS."""

    listener = "web_mqtt"
    transport = "websockets"

    def __init__(self, node: ClusterNode, topic: str) -> None:
        super().__init__(node, topic, MQTTv5, 2)

    def _secure(self, client: Client) -> None:
        client.ws_set_options("/ws")
