"""The MQTT server under test."""

import os
from dataclasses import dataclass
from typing import ClassVar, Final

from tests.interop.server import Server

#: Set to ``mqtt://user:password@host:port`` to run the tests of MQTT clients against a running server.
SERVER_URL: Final = os.environ.get("GATEWAY_TEST_MQTT_URL")


@dataclass(frozen=True, slots=True)
class MqttServer(Server):
    """An MQTT server; an empty user name means an anonymous client. ``ports`` has ``mqtt``, ``mqtts``, ``web_mqtt``."""

    protocol: ClassVar[str] = "mqtt"
    usual_port: ClassVar[int] = 1883
    default_user: ClassVar[str] = ""
    #: Refused logins are answered without delay, so that tests do not wait.
    settings: ClassVar[tuple[str, ...]] = ("mqtt.failed_login_delay_s=0",)


running_server = MqttServer.running
