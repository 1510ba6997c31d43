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

#: RabbitMQ's name for itself, where no user asked for a change.
_INTERNAL_USER: Final = "rmq-internal"

#: The events of changes, which tell who made them.
_CHANGES: Final = (
    *("exchange.", "queue.", "binding.", "policy.", "operator.policy.", "parameter.", "vhost.", "permission."),
    *("topic.permission.", "consumer.", "channel.", "connection.created", "user.created", "user.deleted"),
    *("user.password.", "user.tags.", "user.limits."),
)


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
    if event.name.startswith(_CHANGES):
        user = event.user or details.get("user") or _INTERNAL_USER
        headers["user_who_performed_action"] = user
    match event.name.split("."):
        case ["binding", _]:
            headers |= {
                "source_kind": "exchange",
                "source_name": details.pop("source", ""),
                "destination_name": event.subject,
            }
        case ["permission", _] | ["topic", "permission", _]:
            headers["user"] = event.subject
        case ["consumer", _]:
            headers["consumer_tag"] = event.subject
        case ["user", "limits", _]:
            headers |= {"name": "limits", "username": event.subject}
        case ["parameter", _]:
            headers |= {"name": event.subject, "component": details.pop("component", "") or "global"}
        case ["exchange", _]:
            headers["name"] = event.subject  # empty for the default exchange
        case _ if event.subject:
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
