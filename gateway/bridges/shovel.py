"""One shovel: opens both ends as the definition says, and addresses the messages."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.link import Lost
from gateway.bridges.parcel import Parcel
from gateway.bridges.shovel_definition import NEVER, ShovelDefinition
from gateway.bridges.shovel_ends import OpenedDestination, OpenedSource, ShovelEnds
from gateway.bridges.transfer import Transfer
from gateway.kernel.clock import Clock

#: The header that records the shovels that a message passed.
SHOVELLED: Final = "x-shovelled"
TIMESTAMP: Final = "x-shovelled-timestamp"


E = TypeVar("E")


class Shovel:
    """Opens the ends of one shovel. ``node`` is the name in forward headers; ``on_done`` is called when it has moved
    as many messages as it was to move.

    ``ends`` opens the ends by protocol; ``src_uri`` and ``dest_uri`` are those in use.
    """

    def __init__(
        self,
        definition: ShovelDefinition,
        ends: Mapping[str, ShovelEnds],
        clock: Clock,
        node: str,
        on_done: Callable[[], None],
    ) -> None:
        self.definition = definition
        self.src_uri = definition.src_uris[0]
        self.dest_uri = definition.dest_uris[0]
        self._ends = ends
        self._clock = clock
        self._node = node
        self._on_done = on_done

    async def open(self, lost: Lost) -> Transfer:
        """Open both ends. Raises the errors of the connections; then no end is left open."""
        definition = self.definition
        source, self.src_uri = await _first(definition.src_uris, partial(self._source, lost))
        try:
            destination, self.dest_uri = await _first(definition.dest_uris, partial(self._destination, lost))
        except BaseException:
            source.end.close()
            raise
        after = definition.delete_after
        remaining = None if after == NEVER else after if isinstance(after, int) else source.queue_length
        return Transfer(
            source.end,
            destination,
            definition.ack_mode,
            self._addressed,
            self._clock.call_later,
            remaining,
            self._on_done,
        )

    async def _source(self, lost: Lost, uri: BrokerUri) -> OpenedSource:
        return await self._ends[self.definition.src_protocol].source(self.definition, uri, lost)

    async def _destination(self, lost: Lost, uri: BrokerUri) -> OpenedDestination:
        return await self._ends[self.definition.dest_protocol].destination(self.definition, uri, lost)

    def _addressed(self, parcel: Parcel) -> bool:
        """Set exchange, routing key and properties of a message for the destination."""
        definition = self.definition
        value, properties = definition.value, parcel.properties
        if "dest-queue" in value:
            parcel.exchange, parcel.routing_key = "", definition.text("dest-queue")
        else:
            parcel.exchange = str(value.get("dest-exchange", parcel.exchange))
            parcel.routing_key = str(value.get("dest-exchange-key", parcel.routing_key))
        for name, item in definition.properties.items():
            setattr(properties, name, item)
        if definition.adds_headers:
            passed = (properties.headers or {}).get(SHOVELLED)
            entries = [self._forward_header(), *(passed if isinstance(passed, list) else [])]
            properties.headers = {**(properties.headers or {}), SHOVELLED: entries}
        if definition.adds_timestamp:
            properties.headers = {**(properties.headers or {}), TIMESTAMP: self._clock.wall_ms() // 1000}
        return True

    def _forward_header(self) -> dict[str, str]:
        definition = self.definition
        names = ("src-exchange", "src-exchange-key", "src-queue", "dest-exchange", "dest-exchange-key", "dest-queue")
        return {
            "shovelled-by": self._node,
            "shovel-type": "dynamic",
            "shovel-name": definition.name,
            "shovel-vhost": definition.vhost,
            "src-uri": self.src_uri.shown,
            "dest-uri": self.dest_uri.shown,
            **{name: definition.text(name) for name in names if name in definition.value},
        }


async def _first(uris: Sequence[BrokerUri], opening: Callable[[BrokerUri], Awaitable[E]]) -> tuple[E, BrokerUri]:
    """Return the first end that can be opened. :raises Exception: the error of the last one."""
    for uri in uris[:-1]:
        try:
            return await opening(uri), uri
        except Exception:  # any failure of this broker makes it try the next one
            continue
    return await opening(uris[-1]), uris[-1]
