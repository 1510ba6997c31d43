"""The STOMP server under test."""

import os
from dataclasses import dataclass
from typing import ClassVar, Final

from tests.interop.broker import Broker
from tests.interop.mqtt_clients.mqtt_server import MqttServer
from tests.interop.server import Server

#: Set to ``stomp://user:password@host:port`` to run the tests of STOMP clients against a running server.
SERVER_URL: Final = os.environ.get("GATEWAY_TEST_STOMP_URL")


@dataclass(frozen=True, slots=True)
class StompServer(Server):
    """``ports`` has ``stomp``, ``stomps``, ``web_stomp``, and those of other protocols."""

    protocol: ClassVar[str] = "stomp"
    usual_port: ClassVar[int] = 61613

    @property
    def amqp(self) -> Broker:
        """The AMQP listener of the same server."""
        return Broker(self.host, self.ports["amqp"])

    @property
    def mqtt(self) -> MqttServer:
        """The MQTT listener of the same server."""
        return MqttServer(self.host, self.ports["mqtt"], ports=self.ports)


running_server = StompServer.running
