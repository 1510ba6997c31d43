"""Helpers of the tests with two brokers: addresses, setting parameters, reading queues, statuses."""

from collections.abc import Mapping
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from tests.management_client import get, put
from tests.running import Gateway
from tests.waiting import wait_until


def uri_of(gateway: Gateway, vhost: str = "%2F") -> str:
    """Return the AMQP URI of a gateway."""
    host, port = gateway.addresses["amqp"]
    return f"amqp://guest:guest@{host}:{port}/{vhost}"


def mqtt_uri_of(gateway: Gateway, version: str = "3.1.1") -> str:
    """Return the MQTT URI of a gateway."""
    host, port = gateway.addresses["mqtt"]
    return f"mqtt://guest:guest@{host}:{port}?version={version}"


def stomp_uri_of(gateway: Gateway) -> str:
    """Return the STOMP URI of a gateway."""
    host, port = gateway.addresses["stomp"]
    return f"stomp://guest:guest@{host}:{port}/%2F"


def put_shovel(gateway: Gateway, name: str, **value: Any) -> None:
    """Set a shovel; underscores in the names of keys stand for hyphens."""
    put(gateway, f"parameters/shovel/%2F/{name}", {"value": {key.replace("_", "-"): v for key, v in value.items()}})


def shovel_status(gateway: Gateway, name: str) -> Mapping[str, Any]:
    """Return the status of a shovel; empty if it does not exist."""
    found = [status for status in get(gateway, "shovels") if status["name"] == name]
    return found[0] if found else {}


def wait_for_state(gateway: Gateway, name: str, state: str) -> Mapping[str, Any]:
    """Wait until a shovel has a state; return its status."""
    return wait_until(
        lambda: status if (status := shovel_status(gateway, name)).get("state") == state else {},
        lambda: f"the shovel is not {state}: {shovel_status(gateway, name)}\n{gateway.log}",
    )


def bodies_in(channel: BlockingChannel, queue: str, count: int) -> list[bytes]:
    """Wait for ``count`` messages in a queue; return and consume them."""
    bodies: list[bytes] = []

    def has_all() -> bool:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is not None:
            bodies.append(body)
        return len(bodies) >= count

    wait_until(has_all, lambda: f"{queue} had {len(bodies)} of {count} messages", interval_s=0.001)
    return bodies


def length_of(channel: BlockingChannel, queue: str) -> int:
    """Return the number of ready messages in a queue."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)
