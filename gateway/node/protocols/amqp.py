"""AMQP 0-9-1 as a node serves it. TLS listeners offer a login by certificate besides."""

import secrets
from dataclasses import replace
from typing import Any, ClassVar, Final

from gateway.access import Access
from gateway.config import Settings
from gateway.kernel.messages.message import HeaderFormat
from gateway.node.protocols.served import ServedProtocol, Services
from gateway.version import VERSION
from gateway_amqp import not_ready
from gateway_amqp.header import AMQP
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.resuming.relayed_connection import RelayedConnection
from gateway_amqp.server import AmqpFactory

PLAIN_MECHANISMS: Final = "PLAIN AMQPLAIN"


class AmqpProtocol(ServedProtocol):
    """AMQP 0-9-1: one factory without TLS and one with it, as they offer different SASL mechanisms."""

    name: ClassVar[str] = "amqp"
    format: ClassVar[HeaderFormat] = AMQP

    def __init__(self, services: Services, settings: Settings) -> None:
        super().__init__(services, settings)
        self._factories: dict[bool, AmqpFactory] = {}

    @staticmethod
    def refusal(data: bytes, reason: str) -> bytes | None:
        """See ``ServedProtocol``."""
        return not_ready.refusal(data, reason)

    @staticmethod
    def resumable(settings: Settings) -> RelayedConnection:
        """See ``ServedProtocol``."""
        return RelayedConnection()

    def factory(self, *, is_tls: bool) -> Any:
        """See ``ServedProtocol``."""
        if is_tls not in self._factories:
            self._factories[is_tls] = AmqpFactory(self._context(is_tls=is_tls), self.services.turn)
        return self._factories[is_tls]

    def inside_factory(self, access: Access) -> AmqpFactory:
        """Return a factory of connections within the process, with their own access checks and without heartbeats."""
        context = replace(
            self._context(is_tls=False),
            login=access,
            access_of=lambda vhost: access,
            may_authenticate_in_vhost=lambda: False,
            heartbeat_s=0,
        )
        return AmqpFactory(context, self.services.turn)

    def apply(self, settings: Settings) -> None:
        """See ``ServedProtocol``."""
        super().apply(settings)
        for is_tls, factory in self._factories.items():
            factory.settings = self._context(is_tls=is_tls)

    def _context(self, *, is_tls: bool) -> AmqpContext:
        amqp, services = self.settings.amqp, self.services
        takes_certificates = is_tls and self.settings.tls.verify != "off"
        return AmqpContext(
            broker=services.broker,
            login=services.login_access(),
            may_authenticate_in_vhost=services.may_authenticate_in_vhost,
            access_of=services.access_of,
            token=lambda: secrets.token_urlsafe(16),
            server_properties={
                "product": amqp.product,
                "version": amqp.product_version,
                "broker": "gateway",
                "broker_version": VERSION,
                "platform": "Python",
                "cluster_name": self.settings.node,
                "information": "https://www.rabbitmq.com/amqp-0-9-1-reference.html",
            },
            mechanisms=f"EXTERNAL {PLAIN_MECHANISMS}" if takes_certificates else PLAIN_MECHANISMS,
            heartbeat_s=amqp.heartbeat_s,
            frame_max=amqp.frame_max,
            channel_max=amqp.channel_max,
            max_message_size=amqp.max_message_size,
            max_held_size=amqp.max_held_size,
            max_unsettled_size=amqp.max_unsettled_size,
            login_timeout_s=amqp.login_timeout_s,
            consumer_timeout_ms=self.settings.queues.consumer_timeout_ms,
        )
