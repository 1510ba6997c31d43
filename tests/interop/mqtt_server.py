"""The MQTT server under test."""

import os
from dataclasses import dataclass
from typing import ClassVar, Final

from tests.interop.server import Server

#: Set to ``mqtt://user:password@host:port`` to run the tests of MQTT clients against a server that is already there.
SERVER_URL: Final = os.environ.get("GATEWAY_TEST_MQTT_URL")


@dataclass(frozen=True, slots=True)
class MqttServer(Server):
    """A user of ``""`` connects without a name. ``ports`` has ``mqtt``, ``mqtts``, ``web_mqtt``."""

    protocol: ClassVar[str] = "mqtt"
    usual_port: ClassVar[int] = 1883
    nobody: ClassVar[str] = ""
    #: Who may not log in hears of it at once, so that tests of that need no patience.
    settings: ClassVar[tuple[str, ...]] = ("mqtt.failed_login_delay_s=0",)


running_server = MqttServer.running
