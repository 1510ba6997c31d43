"""Operator actions: virtual hosts, users, plugins' exchange types, reloads, definitions."""

import os
import signal
from typing import Final

import pika

from benchmarks.soak.broker_under_test import BrokerUnderTest, drain
from benchmarks.soak.work import Activities, Bodies, Work, name_numbers

_PERSISTENT: Final = pika.BasicProperties(delivery_mode=2)

#: The virtual host that is created and deleted; the settings enable its plugins each time.
PLUGIN_VHOST: Final = "soak-plugins"

#: Plugins that are not enabled by default.
PLUGINS: Final = ("exchange-modulus-hash", "exchange-local-random", "exchange-jms-topic")

#: Exchange types of plugins, and the binding arguments with which a queue receives every message.
_TYPES: Final[tuple[tuple[str, str, dict[str, str]], ...]] = (
    ("x-modulus-hash", "1", {}),
    ("x-local-random", "", {}),
    ("x-jms-topic", "", {"x-jms-selector": "TRUE"}),
    ("headers", "", {"x-match": "all"}),
)


def vhosts(broker: BrokerUnderTest) -> Work:
    """Create a virtual host with a user, publish and consume in it, delete both while a client is connected."""
    bodies, numbers = Bodies("vhosts"), name_numbers()

    def work() -> None:
        name = f"soak-{next(numbers)}"
        broker.api("PUT", f"vhosts/{name}", {})
        try:
            broker.api("PUT", f"users/{name}", {"password_hash": "", "tags": ""})
            for user in ("guest", name):
                broker.api("PUT", f"permissions/{name}/{user}", {"configure": ".*", "write": ".*", "read": ".*"})
            connection = broker.amqp(name)
            channel = connection.channel()
            channel.confirm_delivery()
            sent = bodies.some(20)
            for at in range(5):
                channel.queue_declare(f"q{at}", durable=True)
            for at, body in enumerate(sent):
                channel.basic_publish("", f"q{at % 5}", body, _PERSISTENT)
            came = [body for at in range(5) for body in drain(channel, f"q{at}", 4, acknowledge=bool(at))]
            broker.ledger.settle("vhosts", sent, came)
        finally:
            broker.api("DELETE", f"vhosts/{name}")
            broker.api("DELETE", f"users/{name}")

    return work


def plugins(broker: BrokerUnderTest) -> Work:
    """Create a virtual host with plugins, publish through an exchange of each of their types, delete it."""
    bodies, numbers = Bodies("plugins"), name_numbers()
    if any(vhost["name"] == PLUGIN_VHOST for vhost in broker.api("GET", "vhosts")):
        broker.api("DELETE", f"vhosts/{PLUGIN_VHOST}")  # the settings create it at the start

    def work() -> None:
        number = next(numbers)
        broker.api("PUT", f"vhosts/{PLUGIN_VHOST}", {})
        try:
            broker.api("PUT", f"permissions/{PLUGIN_VHOST}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
            for kind, key, arguments in _TYPES:
                for vhost in (PLUGIN_VHOST, "/"):
                    _through(broker, vhost, f"soak.plugin.{number}", kind, key, arguments, bodies)
        finally:
            broker.api("DELETE", f"vhosts/{PLUGIN_VHOST}")

    return work


def _through(
    broker: BrokerUnderTest, vhost: str, name: str, kind: str, key: str, arguments: dict[str, str], bodies: Bodies
) -> None:
    with broker.channel(vhost) as channel:
        channel.exchange_declare(name, kind, durable=True)
        channel.queue_declare(name, durable=True)
        channel.queue_bind(name, name, key, arguments)
        sent = bodies.some(10)
        for body in sent:
            channel.basic_publish(name, body.decode()[:30], body, _PERSISTENT, mandatory=True)
        broker.ledger.settle("plugins", sent, drain(channel, name, len(sent)))
        channel.exchange_delete(name)
        channel.queue_delete(name)


def reloads(broker: BrokerUnderTest) -> Work:
    """Reload the broker's settings, and export all definitions."""

    def work() -> None:
        os.kill(broker.pid, signal.SIGHUP)
        broker.api("GET", "definitions")

    return work


OPERATED: Final[Activities] = {
    "vhosts": (vhosts, 4.0),
    "plugins": (plugins, 5.0),
    "reloads": (reloads, 30.0),
}
"""Each with its pause between two rounds, in seconds."""
