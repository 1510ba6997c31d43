"""The interceptors that check bodies, made as the broker makes them."""

from typing import Any

from gateway.api import Interceptor, Message, Origin, Refusal
from gateway.plugins.registry import load_plugins
from gateway.testing import plain_message

AMQP = Origin("127.0.0.1:5001 -> 127.0.0.1:5672", 1, "guest", "amqp091")


class Vhost:
    name = "/"
    node = "gateway@here"

    def publish(self, exchange: str, routing_key: str, properties: object, body: bytes) -> None:
        raise NotImplementedError


def validator(plugin: str, **rule: Any) -> Interceptor:
    """Return the interceptor of a plugin with one rule, by default for the exchange ``source``."""
    settings: Any = {"rules": [{"exchange": "source", **rule}]}
    (found,) = load_plugins().view("/", {plugin: settings}).interceptors(Vhost())
    return found


def complaint(found: Interceptor, body: bytes) -> str:
    """Return what an interceptor says about a body that is published to ``source``, "" if it is valid."""
    decision = found.on_publish(plain_message(body=body), AMQP)
    if isinstance(decision, Message):
        return ""
    assert isinstance(decision, Refusal)
    return decision.reason.removeprefix("the body is invalid: ")
