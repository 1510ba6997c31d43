"""The checks of rows before any of a batch is published: permissions, limits, exchanges that exist."""

from typing import Final

from gateway.access import Operation, Permissions, Principal
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.errors import bad_request
from gateway.management.pipeline.refusals import access_refused, not_found
from gateway.management.pipeline.rows import RowHead, RowRun

_IMPERSONATOR: Final = "impersonator"


class RowChecks:
    """Checks the rows that a user publishes in a virtual host, with bodies of up to ``max_body`` bytes."""

    def __init__(self, vhost: VirtualHost, principal: Principal, permissions: Permissions, max_body: int) -> None:
        self._vhost = vhost
        self._principal = principal
        self._permissions = permissions
        self._max_body = max_body
        self._exchange_by_address: dict[tuple[str, str], Exchange] = {}

    def exchange(self, run: RowRun) -> Exchange:
        """Return the exchange of rows. :raises HttpError: if the user may not publish them, or one is undeliverable."""
        head = run.head
        address = (head.exchange, head.routing_key)
        exchange = self._exchange_by_address.get(address)
        if exchange is None:
            exchange = self._exchange_by_address[address] = self._permitted_exchange(head)
        user = head.header.user_id or head.header.properties.user_id
        if user not in (None, self._principal.name) and _IMPERSONATOR not in self._principal.tags:
            reason = f"the user is '{self._principal.name}' without the tag impersonator"
            raise bad_request(f"user_id is '{user}', but {reason}")
        self.require_sizes(run)
        return exchange

    def require_sizes(self, run: RowRun) -> None:
        """Check the sizes of rows' bodies. :raises HttpError: if one is too large."""
        if run.largest > self._max_body:
            limit = f"'amqp.max_message_size', {self._max_body} bytes"
            raise bad_request(f"a body of {run.largest} bytes is larger than {limit}")

    def writable_exchange(self, name: str) -> Exchange:
        """Return an exchange that the user may publish to. :raises HttpError: if it is none."""
        exchange = existing_exchange(self._vhost, name)
        if not self._permissions.may(Operation.WRITE, exchange.name):
            raise access_refused(self._permissions, Operation.WRITE, "exchange", exchange.name or "amq.default")
        return exchange

    def _permitted_exchange(self, head: RowHead) -> Exchange:
        exchange = self.writable_exchange(head.exchange)
        if exchange.type_name == "topic" and not self._permissions.may_use_topic(
            Operation.WRITE, exchange.name, head.routing_key
        ):
            raise access_refused(self._permissions, Operation.WRITE, "topic", head.routing_key)
        return exchange


def existing_exchange(vhost: VirtualHost, name: str) -> Exchange:
    """Return an exchange. :raises HttpError: if it does not exist, is internal or is inert."""
    exchange = vhost.exchange_by_name.get(name)
    if exchange is None:
        raise not_found(f"no exchange '{name}' in vhost '{vhost.name}'")
    if exchange.is_internal:
        raise bad_request(f"exchange '{name}' in vhost '{vhost.name}' is internal: clients cannot publish to it")
    if exchange.inert_reason:
        raise bad_request(f"exchange '{name}' in vhost '{vhost.name}' is inert: {exchange.inert_reason}")
    return exchange
