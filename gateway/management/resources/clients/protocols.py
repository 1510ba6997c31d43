"""/protocols: the connections and the messages of each protocol. RabbitMQ has no such resource."""

from collections.abc import Generator
from typing import Final

from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.resources.clients.connections import visible_peers
from gateway.management.statistics.subjects import key_of

routes = Routes()

#: Connections added up in one step.
_STEP: Final = 32

#: The name in listings of connections, where that of origins differs.
_NAMES: Final = {"amqp091": "AMQP 0-9-1"}


@routes.get("/protocols")
def protocols(call: Call) -> LongTask:
    """Return the sums over the open connections and the virtual hosts that the user may see, by protocol."""
    return LongTask(_sums(call))


def _sums(call: Call) -> Generator[None, None, list[Fields]]:
    rows: dict[str, Fields] = {}
    visible = set(visible_peers(call))
    for number, peer in enumerate(call.broker.connections):
        peer.load()  # adds its deliveries to the totals of its virtual host
        if number % _STEP == 0:
            yield
        if peer not in visible:
            continue
        row = _row(rows, peer.info().protocol)
        trend = call.trend(key_of(peer))
        row["connections"] += 1
        row["channels"] += peer.channel_count
        row["recv_rate"] += trend.rate("recv_oct")
        row["send_rate"] += trend.rate("send_oct")
    for vhost in call.visible_vhosts():
        for protocol, published in vhost.traffic.by_protocol.items():
            if protocol:
                _row(rows, protocol)["published"] += published.published
        for (protocol, _), counters in vhost.traffic.delivered.items():
            if protocol:
                delivered = counters.deliver + counters.deliver_no_ack + counters.get + counters.get_no_ack
                _row(rows, protocol)["delivered"] += delivered
        yield
    return [rows[name] for name in sorted(rows)]


def _row(rows: dict[str, Fields], protocol: str) -> Fields:
    """Return the row of a protocol. ``published`` and ``delivered`` are messages since the start."""
    name = _NAMES.get(protocol, protocol)
    empty: Fields = {"protocol": name, "connections": 0, "channels": 0, "recv_rate": 0.0, "send_rate": 0.0}
    return rows.setdefault(name, empty | {"published": 0, "delivered": 0})
