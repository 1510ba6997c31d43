"""The STOMP ends of shovels."""

from typing import Any

from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.link import Lost
from gateway.bridges.shovel_definition import ShovelDefinition
from gateway.bridges.shovel_ends import OpenedDestination, OpenedSource
from gateway.bridges.stomp_connection import StompConnection
from gateway.bridges.stomp_ends import StompDestination, StompSource


class StompShovelEnds:
    """Opens STOMP sources and destinations as a shovel defines them."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    async def source(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedSource:
        """Open the source: connect."""
        connection = StompConnection(uri, definition.prefetch, self._reactor, lost)
        source = StompSource(connection, definition.text("src-destination"))
        await connection.connect()
        return OpenedSource(source, 0)

    async def destination(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedDestination:
        """Open the destination: connect."""
        connection = StompConnection(uri, definition.prefetch, self._reactor, lost)
        destination = StompDestination(connection, definition.text("dest-destination"))
        await connection.connect()
        return destination
