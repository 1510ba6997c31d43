"""A batch of the sink, from its parts to messages in queues: prepared in slices, published in one turn.

Preparing decodes rows, and looks at everything that could be wrong with them. Publishing comes last and does nothing
else; with the messages the turn records which batch it was, so a batch that comes again is known, after a crash too.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.access import Operation, Permissions
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.batch_publish import publish_batch
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.routes import Fields
from gateway.management.pipeline.refusals import DetailedRefusal, access_refused, not_found
from gateway.management.pipeline.rows import Row, RowDefaults, RowDestination, RowReader
from gateway.management.pipeline.staging import Staging

#: Rows prepared before others have their turn: about a millisecond.
_SLICE: Final = 200

_IMPERSONATOR: Final = "impersonator"


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """Which batch it is: what makes it a duplicate when it comes again."""

    producer: str
    query: str
    batch: int


@dataclass(frozen=True, slots=True)
class PublishBatch:
    """What a commit asks for: attempts with their parts and rows, where rows go, what becomes of the unroutable."""

    identity: BatchIdentity | None
    attempts: Sequence[tuple[str, int, int]]
    defaults: RowDefaults
    may_drop: bool
    dead_letter_exchange: str | None


class BatchPublisher:
    """One batch on its way. Made for one request."""

    def __init__(
        self, call: Call, vhost: VirtualHost, batch: PublishBatch, staging: Staging, producer_memory_ms: int
    ) -> None:
        self._call = call
        self._vhost = vhost
        self._batch = batch
        self._staging = staging
        self._producer_memory_ms = producer_memory_ms
        self._owner = vhost.name, call.principal.name
        self._permissions = call.permissions(vhost)
        self._exchange_by_address: dict[RowDestination, Exchange] = {}

    def steps(self) -> Generator[None, None, Fields]:
        """Publish the batch, yielding now and then. :raises HttpError: when nothing of it was published."""
        if self._is_duplicate():
            self._discard()
            return {"published": 0, "duplicate": True}
        messages = yield from self._prepare()
        if self._is_duplicate():  # the same commit came again while this one was prepared
            return {"published": 0, "duplicate": True}
        answer = self._publish(messages)
        self._discard()
        yield  # so that the turn that published ends
        return answer

    def _is_duplicate(self) -> bool:
        identity = self._batch.identity
        if identity is None:
            return False
        return self._vhost.producers.has_published(identity.producer, identity.query, identity.batch)

    # Preparing

    def _prepare(self) -> Generator[None, None, list[tuple[Exchange, Message]]]:
        parts = self._parts()
        self._staging.require_publishable(sum(map(len, parts)))
        messages = []
        reader = RowReader(self._batch.defaults)
        for row in _all_rows(reader, parts):
            messages.append((self._exchange(row), Message(*row.address, row.header, row.body)))
            if len(messages) % _SLICE == 0:
                yield
        expected = sum(rows for _, _, rows in self._batch.attempts)
        if len(messages) != expected:
            raise bad_request(f"the batch has {expected} rows, but {len(messages)} were staged")
        return messages

    def _parts(self) -> list[bytes]:
        parts: list[bytes] = []
        for name, count, _ in self._batch.attempts:
            rows = self._staging.rows(self._owner, name, count)
            if rows is None:
                reason = "what was staged of the batch is not here: the broker was restarted, or it got too old"
                raise DetailedRefusal(409, "not_staged", reason, attempt=name)
            parts += rows
        return parts

    def _exchange(self, row: Row) -> Exchange:
        """Return where a row goes, once it is known that this user may publish it there."""
        exchange = self._exchange_by_address.get(row.address)
        if exchange is None:
            exchange = self._exchange_by_address[row.address] = self._permitted_exchange(row.address)
        user, principal = row.header.user_id or row.header.properties.user_id, self._call.principal
        if user not in (None, principal.name) and _IMPERSONATOR not in principal.tags:
            raise bad_request(f"user_id is '{user}', but the user is '{principal.name}' and no impersonator")
        if len(row.body) > self._call.context.max_message_size:
            limit = self._call.context.max_message_size
            raise bad_request(f"a body of {len(row.body)} bytes is larger than 'amqp.max_message_size', {limit} bytes")
        return exchange

    def _permitted_exchange(self, address: RowDestination) -> Exchange:
        exchange = existing_exchange(self._vhost, address.exchange)
        require_write(self._permissions, exchange)
        if exchange.type_name == "topic" and not self._permissions.may_use_topic(
            Operation.WRITE, exchange.name, address.routing_key
        ):
            raise access_refused(self._permissions, Operation.WRITE, "topic", address.routing_key)
        return exchange

    # Publishing

    def _publish(self, messages: Sequence[tuple[Exchange, Message]]) -> Fields:
        batch, producers = self._batch, self._vhost.producers
        instead = None
        if batch.dead_letter_exchange is not None:
            instead = existing_exchange(self._vhost, batch.dead_letter_exchange)
            require_write(self._permissions, instead)
        origin = Origin(f"pipeline {self._call.peer_host}", 0, self._call.principal.name, "HTTP")
        try:
            done = publish_batch(self._vhost, messages, may_drop=batch.may_drop, instead=instead, origin=origin)
        except PreconditionFailed as refusal:
            raise HttpError(409, "unroutable", str(refusal)) from None
        if batch.identity is not None:
            producers.published(batch.identity.producer, batch.identity.query, batch.identity.batch)
            producers.forget(self._producer_memory_ms)
        published = done.taken + done.refused
        return {"published": published, "duplicate": False, "dropped": done.unrouted, "refused": done.refused}

    def _discard(self) -> None:
        for name, _, _ in self._batch.attempts:
            self._staging.discard(self._owner, name)


def existing_exchange(vhost: VirtualHost, name: str) -> Exchange:
    """Return an exchange. :raises HttpError: when it is not there, or nobody may publish to it."""
    exchange = vhost.exchange_by_name.get(name)
    if exchange is None:
        raise not_found(f"no exchange '{name}' in vhost '{vhost.name}'")
    if exchange.is_internal:
        raise bad_request(f"exchange '{name}' in vhost '{vhost.name}' is internal: nobody publishes to it")
    if exchange.inert_reason:
        raise bad_request(f"exchange '{name}' in vhost '{vhost.name}' is inert: {exchange.inert_reason}")
    return exchange


def require_write(permissions: Permissions, exchange: Exchange) -> None:
    """Insist that the user may publish to an exchange. :raises HttpError: naming what is missing."""
    if not permissions.may(Operation.WRITE, exchange.name):
        raise access_refused(permissions, Operation.WRITE, "exchange", exchange.name or "amq.default")


def _all_rows(reader: RowReader, parts: Sequence[bytes]) -> Iterator[Row]:
    for part in parts:
        yield from reader.rows(part)
