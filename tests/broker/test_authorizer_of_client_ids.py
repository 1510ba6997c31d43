"""A plugin decides by the client identifier of MQTT clients: paho clients of one user have different permissions."""

from pathlib import Path

import paho.mqtt.client as paho

from tests.management_client import request
from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.waiting import wait_until

#: Accepts the user ``device``, and permits its clients what their identifiers say.
PLUGIN = """
from gateway.api import Permissions, Principal, hookimpl

class Devices:
    def authenticate(self, credentials, answer):
        answer(Principal("device") if credentials.username == "device" else None)

    def permissions(self, principal, vhost):
        if principal.name != "device" or not principal.client_id.startswith(("sensor-", "panel-")):
            return None
        may_write = ".*" if principal.client_id.startswith("sensor-") else "^mqtt-subscription-"
        return Permissions("device", vhost, "^mqtt-subscription-", may_write, ".*")

devices = Devices()

@hookimpl
def gateway_authenticators():
    return [devices]

@hookimpl
def gateway_authorizers():
    return [devices]
"""


def connect(gateway: Gateway, client_id: str) -> tuple[paho.Client, list[int]]:
    """Connect as ``device``; return the client, and the reason codes of its CONNACK and of its publishes."""
    codes: list[int] = []
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5, reconnect_on_failure=False)
    client.username_pw_set("device", "any")
    client.on_connect = lambda _client, _data, _flags, code, _properties: codes.append(code.value)
    client.on_publish = lambda _client, _data, _mid, code, _properties: codes.append(code.value)
    client.connect(*gateway.addresses["mqtt"])
    client.loop_start()
    wait_until(lambda: codes, lambda: "no CONNACK")
    return client, codes


def test_clients_of_one_user_have_the_permissions_of_their_identifiers(gateway: Gateway, tmp_path: Path) -> None:
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "devices.py").write_text(PLUGIN)
    gateway.start(f"plugins_dir={directory}", "mqtt.failed_login_delay_s=0")
    request(gateway, "PUT", "plugins/%2F/devices", {})
    answers: dict[str, list[int]] = {}
    for client_id in ("sensor-1", "panel-1", "other"):
        client, codes = connect(gateway, client_id)
        if codes == [0]:
            client.publish("t", b"x", qos=1)
            wait_until(lambda codes=codes: len(codes) == 2, lambda codes=codes: f"no PUBACK: {codes}")
        client.disconnect()
        stop_loop(client)
        answers[client_id] = codes
    assert answers == {"sensor-1": [0, 0x10], "panel-1": [0, 0x87], "other": [0x87]}
