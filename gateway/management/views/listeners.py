"""JSON views of the listeners, with RabbitMQ's names for their protocols."""

from typing import Final

from gateway.management.context import ApiContext
from gateway.management.http.routes import Fields

#: RabbitMQ's names for the protocols of listeners, where they differ from the names of the listeners.
PROTOCOL_BY_LISTENER: Final = {
    "amqps": "amqp/ssl",
    "mqtts": "mqtt/ssl",
    "stomps": "stomp/ssl",
    "web_mqtt": "http/web-mqtt",
    "web_mqtts": "https/web-mqtt",
    "web_stomp": "http/web-stomp",
    "web_stomps": "https/web-stomp",
    "management": "http",
    "management_tls": "https",
    "prometheus": "http/prometheus",
    "prometheus_tls": "https/prometheus",
}

_APIS: Final = ("http", "https")

_AMQP_VERSIONS: Final = ("091", "0.9.1", "0-9-1", "0_9_1", "10", "1.0", "1-0", "1_0")
_MQTT_VERSIONS: Final = ("31", "3.1", "3_1", "311", "3.1.1", "3_1_1")
_STOMP_VERSIONS: Final = ("10", "1.0", "1_0", "11", "1.1", "1_1", "12", "1.2", "1_2")

#: Other names of protocols that probes may use, as in RabbitMQ.
_ALIASES: Final = {
    **{f"amqp{version}": "amqp" for version in _AMQP_VERSIONS},
    **{f"mqtt{version}": "mqtt" for version in _MQTT_VERSIONS},
    **{f"stomp{version}": "stomp" for version in _STOMP_VERSIONS},
    **{
        f"{protocol}{suffix}": f"{protocol}/ssl"
        for protocol in ("amqp", "mqtt", "stomp")
        for suffix in ("s", "/tls", "+tls", "+ssl")
    },
    **dict.fromkeys(("http1", "http1.1", "http_api", "management", "management_ui", "ui"), "http"),
    **{
        f"web{separator}{protocol}{suffix}": f"{'https' if suffix else 'http'}/web-{protocol}"
        for separator in ("", "-", "_")
        for protocol in ("mqtt", "stomp")
        for suffix in ("", "/tls", "/ssl", "+tls", "+ssl")
    },
}


def protocol_of(listener: str) -> str:
    """Return RabbitMQ's name for the protocol of a listener."""
    return PROTOCOL_BY_LISTENER.get(listener, listener)


def protocol_named(name: str) -> str:
    """Return the name of a protocol from any of its names; an unknown name in lower case."""
    name = name.lower()
    return _ALIASES.get(name, name)


def listener_views(context: ApiContext) -> list[Fields]:
    """Return the listeners."""
    return [
        {
            "node": context.broker.node,
            "protocol": protocol_of(name),
            "ip_address": _address(host),
            "port": port,
            "socket_opts": {"backlog": 1024, "nodelay": True},
        }
        for name, (host, port) in context.addresses().items()
    ]


def api_views(context: ApiContext) -> list[Fields]:
    """Return the listeners of the HTTP API."""
    return [
        {
            "ssl_opts": [],
            "node": context.broker.node,
            "description": "RabbitMQ Management",
            "path": "/",
            "cowboy_opts": "[]",
            "ip": _address(host),
            "port": str(port),
        }
        for name, (host, port) in context.addresses().items()
        if protocol_of(name) in _APIS
    ]


def _address(host: str) -> str:
    return "::" if host == "*" else host
