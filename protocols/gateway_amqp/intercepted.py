"""Publishing through the interceptors of the virtual host, in any of the three modes of a channel."""

from collections.abc import Callable
from typing import TypeAlias

from gateway.kernel.interception.interceptor import Refusal
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway_amqp.errors import reply_code, reply_text
from gateway_amqp.publishing import Confirming, Plain, Target, Transactional

Return: TypeAlias = Callable[[int, str, Message], None]
"""Writes ``basic.return`` with a reply code and a reply text."""


class Intercepted(Plain):
    """Passes messages to the interceptors of their target, and then to the channel's ``mode``.

    A channel uses it while the virtual host has interceptors.

    A refused message closes the channel with the reason. If the message is mandatory, the channel stays open: the
    message is returned with the reason, and a confirm is a ``basic.nack``. In a transaction it closes the channel in
    any case, because a commit must not leave out a message.
    """

    def __init__(self, mode: Plain, vhost: VirtualHost, origin: Origin, returned: Return) -> None:
        self._mode = mode
        self._vhost = vhost
        self._origin = origin
        self._returned = returned

    def publish(self, target: Target, message: Message) -> None:
        """Publish a message as the interceptors return it."""
        chain = target.chain
        if chain is None:
            self._mode.publish(target, message)
            return
        published = chain.intercept(message, self._origin)
        if published is message:
            self._mode.publish(target, message)
            return
        if isinstance(published, Refusal):
            self._refuse(target, message, published)
            return
        if published.exchange != target.exchange_name:
            exchange = self._vhost.exchange(published.exchange)
            target = Target(exchange, published.routing_key, target.is_mandatory, target.version, target.tally)
        self._mode.publish(target, published)

    def _refuse(self, target: Target, message: Message, refusal: Refusal) -> None:
        mode = self._mode
        if not target.is_mandatory or isinstance(mode, Transactional):
            raise refusal.error()
        self._vhost.traffic.by_protocol[self._origin.protocol].returned += 1
        code = reply_code(refusal.error())
        self._returned(code, reply_text(code, refusal.reason), message)
        if isinstance(mode, Confirming):
            mode.confirms.published(False, False)
