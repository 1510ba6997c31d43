"""The STOMP part of a node: the adapter's context from the settings."""

import secrets
from collections.abc import Callable

from gateway.access import Access
from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.version import VERSION
from gateway_stomp.listener_context import StompContext


def stomp_settings(
    settings: Settings, broker: Broker, access_of: Callable[[str], Access], login: Access
) -> StompContext:
    """Return the context shared by all STOMP listeners of a node."""
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
