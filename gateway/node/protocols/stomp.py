"""STOMP as a node serves it."""

import secrets
from collections.abc import Callable
from typing import Any, ClassVar

from gateway.access import Access
from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.kernel.messages.message import HeaderFormat
from gateway.net import websocket
from gateway.node.protocols.served import ServedProtocol
from gateway.version import VERSION
from gateway_stomp import not_ready
from gateway_stomp.header import STOMP
from gateway_stomp.listener_context import StompContext
from gateway_stomp.resuming.relayed_connection import RelayedStompConnection
from gateway_stomp.server import StompFactory


class StompProtocol(ServedProtocol):
    """STOMP 1.0, 1.1 and 1.2: all listeners share one factory."""

    name: ClassVar[str] = "stomp"
    format: ClassVar[HeaderFormat] = STOMP
    dialect: ClassVar[websocket.Dialect | None] = websocket.STOMP
    _factory: StompFactory | None = None

    @staticmethod
    def refusal(data: bytes, reason: str) -> bytes | None:
        """See ``ServedProtocol``."""
        return not_ready.refusal(data, reason)

    @staticmethod
    def resumable(settings: Settings) -> RelayedStompConnection:
        """See ``ServedProtocol``."""
        stomp = settings.stomp
        return RelayedStompConnection(stomp.max_frame_size_unauthenticated, stomp.vhost, activemq=stomp.activemq)

    def factory(self, *, is_tls: bool) -> Any:
        """See ``ServedProtocol``."""
        if self._factory is None:
            self._factory = StompFactory(self._context(), self.services.turn)
        return self._factory

    def apply(self, settings: Settings) -> None:
        """See ``ServedProtocol``."""
        super().apply(settings)
        if self._factory is not None:
            self._factory.settings = self._context()

    def _context(self) -> StompContext:
        services = self.services
        return stomp_context(self.settings, services.broker, services.access_of, services.login_access())


def stomp_context(
    settings: Settings, broker: Broker, access_of: Callable[[str], Access], login: Access
) -> StompContext:
    """Return what all STOMP listeners of a node share."""
    stomp = settings.stomp
    return StompContext(
        broker,
        access_of,
        login,
        token=lambda: secrets.token_urlsafe(16),
        server=f"{settings.amqp.product}/{settings.amqp.product_version} (gateway/{VERSION})",
        vhost=stomp.vhost,
        default_user=stomp.default_user,
        default_passcode=stomp.default_passcode.get_secret_value(),
        implicit_connect=stomp.implicit_connect,
        certificate_login=stomp.certificate_login,
        topic_exchange=stomp.default_topic_exchange,
        nack_requeues=stomp.default_nack_requeue,
        max_frame_size_unauthenticated=stomp.max_frame_size_unauthenticated,
        max_frame_size=stomp.max_frame_size,
        max_body_size=stomp.max_body_size,
        max_headers=stomp.max_headers,
        max_headers_size=stomp.max_headers_size,
        max_header_size=stomp.max_header_size,
        max_transactions=stomp.max_transactions,
        max_transaction_actions=stomp.max_transaction_actions,
        max_transaction_size=stomp.max_transaction_size,
        login_timeout_s=stomp.login_timeout_s,
        consumer_timeout_ms=settings.queues.consumer_timeout_ms,
        activemq=stomp.activemq,
    )
