"""/protocols: the connections of each protocol and their bytes per second. RabbitMQ has no such resource."""

from collections.abc import Generator
from typing import Final

from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.resources.connections import visible_peers
from gateway.management.statistics.subjects import key_of

routes = Routes()

#: Connections added up in one step.
_STEP: Final = 32


@routes.get("/protocols")
def protocols(call: Call) -> LongTask:
    """Return the sums over the open connections that the user may see, by protocol."""
    return LongTask(_sums(call))


def _sums(call: Call) -> Generator[None, None, list[Fields]]:
    sums: dict[str, Fields] = {}
    for number, peer in enumerate(visible_peers(call)):
        protocol = peer.info().protocol
        row = sums.setdefault(protocol, _empty(protocol))
        trend = call.trend(key_of(peer))
        row["connections"] += 1
        row["channels"] += peer.channel_count
        row["recv_rate"] += trend.rate("recv_oct")
        row["send_rate"] += trend.rate("send_oct")
        if number % _STEP == 0:
            yield
    return [sums[name] for name in sorted(sums)]


def _empty(protocol: str) -> Fields:
    return {"protocol": protocol, "connections": 0, "channels": 0, "recv_rate": 0.0, "send_rate": 0.0}
