"""Publishing of the sink's batches: prepared and published in slices, as one step of the store.

The preparation decodes and validates all rows. The step of the store that has the messages also records the identity of
the batch, so that a repeated batch is recognised, after a crash too.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.access import Operation, Permissions
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.batch_publish import BatchPublish
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.routes import Fields
from gateway.management.pipeline.refusals import DetailedRefusal, access_refused, not_found
from gateway.management.pipeline.rows import Row, RowDefaults, RowDestination, RowReader
from gateway.management.pipeline.staging import Staging

#: Rows prepared in one step: about a millisecond.
_SLICE: Final = 200

_IMPERSONATOR: Final = "impersonator"


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """The identity of a batch, by which a repetition is recognised."""

    producer: str
    query: str
    batch: int


@dataclass(frozen=True, slots=True)
class PublishBatch:
    """A commit: attempts with their parts and rows, default destination, handling of unroutable rows."""

    identity: BatchIdentity | None
    attempts: Sequence[tuple[str, int, int]]
    defaults: RowDefaults
    may_drop: bool
    dead_letter_exchange: str | None


class BatchPublisher:
    """Publishes one batch for one request."""

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
        """Publish the batch in steps. :raises HttpError: if nothing of it was published."""
        if self._is_duplicate():
            self._discard()
            return {"published": 0, "duplicate": True}
        messages = yield from self._prepare()
        if self._is_duplicate():  # the same commit was repeated during the preparation
            return {"published": 0, "duplicate": True}
        answer = yield from self._publish(messages)
        self._discard()
        yield  # end the turn that published
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
                reason = "the staged rows of the batch do not exist: the broker was restarted, or they have expired"
                raise DetailedRefusal(409, "not_staged", reason, attempt=name)
            parts += rows
        return parts

    def _exchange(self, row: Row) -> Exchange:
        """Return the exchange of a row after checking permissions and limits."""
        exchange = self._exchange_by_address.get(row.address)
        if exchange is None:
            exchange = self._exchange_by_address[row.address] = self._permitted_exchange(row.address)
        user, principal = row.header.user_id or row.header.properties.user_id, self._call.principal
        if user not in (None, principal.name) and _IMPERSONATOR not in principal.tags:
            raise bad_request(f"user_id is '{user}', but the user is '{principal.name}' without the tag impersonator")
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

    def _publish(self, messages: Sequence[tuple[Exchange, Message]]) -> Generator[None, None, Fields]:
        batch, producers = self._batch, self._vhost.producers
        dead_letters = None
        if batch.dead_letter_exchange is not None:
            dead_letters = existing_exchange(self._vhost, batch.dead_letter_exchange)
            require_write(self._permissions, dead_letters)
        origin = Origin(f"pipeline {self._call.peer_host}", 0, self._call.principal.name, "HTTP")
        try:
            done = yield from BatchPublish(
                self._vhost, self._call.broker.journal, may_drop=batch.may_drop, instead=dead_letters, origin=origin
            ).steps(messages)
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
    """Return an exchange. :raises HttpError: if it does not exist, is internal or is inert."""
    exchange = vhost.exchange_by_name.get(name)
    if exchange is None:
        raise not_found(f"no exchange '{name}' in vhost '{vhost.name}'")
    if exchange.is_internal:
        raise bad_request(f"exchange '{name}' in vhost '{vhost.name}' is internal: clients cannot publish to it")
    if exchange.inert_reason:
        raise bad_request(f"exchange '{name}' in vhost '{vhost.name}' is inert: {exchange.inert_reason}")
    return exchange


def require_write(permissions: Permissions, exchange: Exchange) -> None:
    """Check that the user may publish to an exchange. :raises HttpError: naming the missing permission."""
    if not permissions.may(Operation.WRITE, exchange.name):
        raise access_refused(permissions, Operation.WRITE, "exchange", exchange.name or "amq.default")


def _all_rows(reader: RowReader, parts: Sequence[bytes]) -> Iterator[Row]:
    for part in parts:
        yield from reader.rows(part)
