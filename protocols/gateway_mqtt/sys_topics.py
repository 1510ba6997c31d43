"""The ``$SYS/broker`` topics: statistics of the broker for MQTT clients, as in Mosquitto.

Values are retained in memory, so that a new subscriber gets them at once, and offered to the queues of present
subscribers. They are not published to the exchange, so bindings such as ``#`` do not receive them.

Sessions, subscriptions and messages are those of the subscriber's virtual host. Traffic is the node's.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.messages.message import Message
from gateway.kernel.sessions.session import Session
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway_mqtt.inventory import Inventory, inventory_of
from gateway_mqtt.load import Load
from gateway_mqtt.meter import Meter
from gateway_mqtt.translation.header import mqtt_header
from gateway_mqtt.translation.topics import REVERSIBLE

#: The prefix of all topics.
PREFIX: Final = "$SYS/broker/"

#: The counters with averages, which are below ``load`` under the same names.
_AVERAGED: Final = (
    *("messages/received", "messages/sent", "publish/received", "publish/sent", "publish/dropped"),
    *("bytes/received", "bytes/sent", "sockets", "connections"),
)

#: Sessions that get a value in one step.
_STEP_SIZE: Final = 50

#: The shortest time over which a rate is calculated, in seconds.
_MIN_ELAPSED_S: Final = 0.001

Values = dict[str, str]
"""The values of topics, by their names without the prefix."""


class SysTopics:
    """Publishes the changed statistics periodically. Owns the averages.

    ``memory`` returns the memory of the process in bytes, ``turns`` the durations of event loop turns. ``exchange`` is
    the exchange of MQTT messages.
    """

    def __init__(
        self,
        broker: Broker,
        meter: Meter,
        exchange: str,
        version: str,
        memory: Callable[[], int],
        turns: Callable[[], Mapping[str, float | int | str]] = dict,
    ) -> None:
        self._broker = broker
        self._meter = meter
        self._exchange = exchange
        self._version = version
        self._memory = memory
        self._turns = turns
        self._started_s = self._updated_s = broker.clock.monotonic_s()
        self._loads = {name: Load() for name in _AVERAGED}
        self._most_memory = 0
        self._dropped = 0
        self._dropped_in: dict[str, int] = {}
        self._header = mqtt_header(qos=0, retain=False, version5=True, client_id="", block=b"")

    def update(self) -> Iterator[None]:
        """Collect all values and distribute those that changed, one step per iteration."""
        inventory_by_vhost: dict[VirtualHost, Inventory] = {}
        for vhost in list(self._broker.vhost_by_name.values()):
            inventory_by_vhost[vhost] = yield from inventory_of(vhost)
        self._add_dropped(inventory_by_vhost)
        of_node = self._values_of_node()
        for vhost, inventory in inventory_by_vhost.items():
            for name, value in (of_node | values_of(inventory)).items():
                if self._broker.vhost_by_name.get(vhost.name) is vhost:  # it may be deleted between two steps
                    yield from self._update_topic(vhost, inventory.sys_subscribers, name, value)
                yield

    def _update_topic(self, vhost: VirtualHost, subscribers: list[Session], name: str, value: str) -> Iterator[None]:
        """Retain a changed value and offer it to the subscribers, some of them in each step."""
        routing_key = REVERSIBLE.routing_key(PREFIX + name)
        body = value.encode()
        kept = vhost.retained.get(routing_key)
        if kept is not None and kept.message.body == body:
            return
        message = Message(self._exchange, routing_key, self._header, body)
        vhost.retained.keep_transient(message)
        for number, session in enumerate(subscribers, 1):
            _offer(session, message)
            if number % _STEP_SIZE == 0:
                yield

    def _add_dropped(self, inventory_by_vhost: Mapping[VirtualHost, Inventory]) -> None:
        """Add the drops since the last collection; those of deleted queues stay included."""
        dropped_in = {vhost.name: inventory.dropped for vhost, inventory in inventory_by_vhost.items()}
        self._dropped += sum(max(0, count - self._dropped_in.get(name, 0)) for name, count in dropped_in.items())
        self._dropped_in = dropped_in

    def _values_of_node(self) -> Values:
        now_s, total, meter = self._broker.clock.monotonic_s(), self._meter.total(), self._meter
        memory = self._memory()
        self._most_memory = max(self._most_memory, memory)
        counts = {
            "bytes/received": total.bytes_received,
            "bytes/sent": total.bytes_sent,
            "messages/received": total.packets_received,
            "messages/sent": total.packets_sent,
            "publish/messages/received": total.publishes_received,
            "publish/messages/sent": total.publishes_sent,
            "publish/messages/dropped": self._dropped,
            "publish/bytes/received": total.payload_received,
            "publish/bytes/sent": total.payload_sent,
            "heap/current": memory,
            "heap/maximum": self._most_memory,
        }
        risen = {name.replace("publish/messages/", "publish/"): count for name, count in counts.items()}
        self._update_loads(risen | {"sockets": meter.sockets, "connections": meter.connects}, now_s)
        values = {"version": self._version, "uptime": f"{int(now_s - self._started_s)} seconds"}
        turns = {f"turns/{name}": str(value) for name, value in self._turns().items()}
        return values | {name: str(count) for name, count in counts.items()} | self._averages() | turns

    def _update_loads(self, counts: Mapping[str, int], now_s: float) -> None:
        """Update the averages, unless no time has passed: the first collection is at the start."""
        elapsed_s, self._updated_s = now_s - self._updated_s, now_s
        if elapsed_s >= _MIN_ELAPSED_S:
            for name, load in self._loads.items():
                load.update(counts[name], elapsed_s)

    def _averages(self) -> Values:
        return {
            f"load/{name}/{span}": f"{average:.2f}"
            for name, load in self._loads.items()
            for span, average in load.per_minute.items()
        }


def values_of(inventory: Inventory) -> Values:
    """Return the values for one virtual host, including the names that Mosquitto calls deprecated."""
    counts = {
        "clients/total": inventory.total,
        "clients/connected": inventory.connected,
        "clients/active": inventory.connected,
        "clients/disconnected": inventory.disconnected,
        "clients/inactive": inventory.disconnected,
        "clients/maximum": inventory.maximum,
        "clients/expired": inventory.expired,
        "messages/inflight": inventory.inflight,
        "messages/stored": inventory.stored,
        "store/messages/count": inventory.stored,
        "store/messages/bytes": inventory.stored_bytes,
        "retained messages/count": inventory.retained,
        "subscriptions/count": inventory.subscriptions,
        "shared_subscriptions/count": inventory.shared_subscriptions,
    }
    return {name: str(count) for name, count in counts.items()}


def _offer(session: Session, message: Message) -> None:
    """Offer a value to a subscribed session, unless its client is offline: it would be stale later."""
    terms = session.subscriptions.terms(message.routing_key)
    if terms is None or session.holder is None:
        return
    queue = session.queue_of(terms.qos)
    if queue is not None:
        queue.offer(message)
