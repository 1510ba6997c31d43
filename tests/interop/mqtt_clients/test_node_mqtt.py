"""npm's mqtt (MQTT.js): every scenario of ``node/mqtt.mjs``, over TCP and over WebSocket."""

import pytest

from tests.interop import node_package
from tests.interop.mqtt_clients.mqtt_server import SERVER_URL, MqttServer

#: The URL of each transport. With another server than the gateway its own URL is used.
TRANSPORTS = {"tcp": "mqtt://{login}@{host}:{mqtt}", "websocket": "ws://{login}@{host}:{web_mqtt}/ws"}


@pytest.mark.timeout(node_package.TIMEOUT_S)
@pytest.mark.usefixtures("installed_package")
@pytest.mark.parametrize("transport", TRANSPORTS if SERVER_URL is None else ["tcp"])
@pytest.mark.parametrize("sentence", node_package.sentences("mqtt.mjs"))
def test_mqtt_js_works_unchanged(server: MqttServer, transport: str, sentence: str) -> None:
    login = f"{server.user}:{server.password}"
    url = TRANSPORTS[transport].format(login=login, host=server.host, **server.ports)
    node_package.check_scenario("mqtt.mjs", url, sentence)
