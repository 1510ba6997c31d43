"""The target of publishes: the exchange and the routing key, or the queue, of a destination."""

from gateway.kernel.queueing.channel_counters import PublishCounters
from gateway.kernel.routing.exchange import Exchange


class Target:
    """The resolved target of a destination. Valid while ``version`` is the virtual host's.

    ``is_intercepted``: interceptors inspect each publish to it.
    """

    __slots__ = ("exchange", "exchange_name", "is_intercepted", "routing_key", "tally", "version")

    def __init__(
        self, exchange: Exchange, routing_key: str, version: int, tally: PublishCounters, is_intercepted: bool = False
    ) -> None:
        self.exchange = exchange
        self.exchange_name = exchange.name
        self.routing_key = routing_key
        self.version = version
        self.tally = tally
        self.is_intercepted = is_intercepted
