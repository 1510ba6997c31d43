"""event-exchange: publishes a message for each event to ``amq.rabbitmq.event``, as RabbitMQ's plugin does.

The routing key is the name of the event, such as ``queue.created``, the body is empty, and the headers tell the rest.
Nothing is published while nothing is bound.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from gateway.api import Event, EventListener, ObservedVhost, PluginSettings, Properties, Value, hookimpl

EXCHANGE: Final = "amq.rabbitmq.event"

_PERSISTENT: Final = 2


class EventExchangeSettings(PluginSettings):
    """The settings of ``event-exchange``."""

    all_vhosts: bool = False
    """Whether the events of the other virtual hosts are published here too, as RabbitMQ does in the default one."""


class EventExchange(EventListener):
    """Publishes events to the exchange of one virtual host."""

    def __init__(self, vhost: ObservedVhost, *, all_vhosts: bool) -> None:
        self.all_vhosts = all_vhosts
        self._vhost = vhost
        vhost.provide_exchange(EXCHANGE)

    def on_event(self, event: Event) -> None:
        """Publish an event, if anything is bound."""
        if not self._vhost.is_bound(EXCHANGE):
            return
        now_ms = time.time_ns() // 1_000_000
        headers = {**headers_of(event), "node": self._vhost.node, "timestamp_in_ms": now_ms}
        timestamp = datetime.fromtimestamp(now_ms // 1000, UTC)
        properties = Properties(headers=headers, delivery_mode=_PERSISTENT, timestamp=timestamp)
        self._vhost.publish(EXCHANGE, event.name, properties, b"")


def headers_of(event: Event) -> dict[str, Value]:
    """Return the headers of an event, with RabbitMQ's names where it has the event too."""
    details = {name: _value(value) for name, value in event.details.items()}
    headers: dict[str, Value] = {"vhost": event.vhost} if event.vhost else {}
    if event.name.startswith("binding."):
        headers |= {
            "source_kind": "exchange",
            "source_name": details.pop("source", ""),
            "destination_name": event.subject,
        }
    elif event.name.startswith(("permission.", "topic.permission.")):
        headers["user"] = event.subject
    elif event.subject:
        headers["name"] = event.subject
    return headers | details


def _value(value: object) -> Value:
    """Return a detail as a value of a header."""
    if value is None or isinstance(value, bool | int | float | str | bytes | Decimal | datetime):
        return value
    if isinstance(value, Mapping):
        return {str(name): _value(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(each) for each in value]
    return str(value)


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the setting ``all_vhosts``."""
    return EventExchangeSettings


@hookimpl
def gateway_event_listeners(vhost: ObservedVhost, settings: EventExchangeSettings) -> Sequence[EventListener]:
    """Offer the listener."""
    return [EventExchange(vhost, all_vhosts=settings.all_vhosts)]
