"""The interface of the ends of shovels: one implementation for each protocol."""

from typing import NamedTuple, Protocol, TypeAlias

from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.link import Lost
from gateway.bridges.parcel import MessageDestination, MessageSource
from gateway.bridges.shovel_definition import ShovelDefinition

OpenedDestination: TypeAlias = MessageDestination


class OpenedSource(NamedTuple):
    """A source, and the number of messages in its queue; 0 if that is not known."""

    end: MessageSource
    queue_length: int


class ShovelEnds(Protocol):
    """Opens the ends of shovels in one protocol. If opening raises, nothing is left open."""

    async def source(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedSource:
        """Open the source of a shovel at one broker."""
        ...

    async def destination(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedDestination:
        """Open the destination of a shovel at one broker."""
        ...
