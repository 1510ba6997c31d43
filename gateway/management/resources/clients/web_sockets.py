"""/web-sockets: the listeners for WebSockets, which the web UI connects to. RabbitMQ has no such resource."""

from typing import Final

from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, Routes

routes = Routes()

#: Listener to protocol, whether it uses TLS, and the setting with its path.
_LISTENERS: Final = {
    "web_mqtt": ("web-mqtt", False, "web_mqtt.path"),
    "web_mqtts": ("web-mqtt", True, "web_mqtt.path"),
    "web_stomp": ("web-stomp", False, "web_stomp.path"),
    "web_stomps": ("web-stomp", True, "web_stomp.path"),
}


@routes.get("/web-sockets")
def web_sockets(call: Call) -> list[Fields]:
    """List the listeners for MQTT and STOMP over WebSocket."""
    value_by_key = {row["key"]: row["value"] for row in call.control.settings()}
    addresses = call.context.addresses()
    return [
        {"protocol": protocol, "tls": is_tls, "port": addresses[name][1], "path": value_by_key.get(key, "/ws")}
        for name, (protocol, is_tls, key) in _LISTENERS.items()
        if name in addresses
    ]
