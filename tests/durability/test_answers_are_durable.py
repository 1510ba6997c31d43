"""A kill right after an answer: answered requests survive, unanswered ones need not."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord
from gateway_lmdb import LmdbStore
from tests.broker.conftest import Connect
from tests.interop.amqp_clients.pika_client import fetch, is_empty
from tests.running import Gateway

NOT_FOUND: Final = 404
PERSISTENT: Final = pika.BasicProperties(delivery_mode=2)
Step = Callable[[BlockingChannel], object]


def prepare(channel: BlockingChannel) -> None:
    """Declare the entities for the requests below, with three messages in the queue ``old``."""
    channel.exchange_declare("events", "topic", durable=True)
    channel.exchange_declare("copies", "fanout", durable=True)
    channel.queue_declare("old", durable=True)
    channel.queue_bind("old", "events", "old.#")
    channel.confirm_delivery()
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", "old", body, PERSISTENT)


def has_queue(channel: BlockingChannel, name: str) -> bool:
    return is_found(channel.queue_declare, name)


def has_exchange(channel: BlockingChannel, name: str) -> bool:
    return is_found(channel.exchange_declare, name)


def is_found(declare: Callable[..., object], name: str) -> bool:
    """Return whether a passive declaration finds the entity."""
    try:
        declare(name, passive=True)
    except ChannelClosedByBroker as closed:
        if closed.reply_code != NOT_FOUND:
            raise
        return False
    return True


def routes(channel: BlockingChannel, exchange: str, key: str, queue: str) -> bool:
    """Return whether a message with this exchange and key reaches the queue, which is purged."""
    channel.queue_purge(queue)
    channel.basic_publish(exchange, key, b"probe")
    return not is_empty(channel, queue)


def declare_with_arguments(channel: BlockingChannel) -> None:
    channel.queue_declare("new", durable=True, arguments={"x-anything": "kept", "x-number": 7})


def declared_with_arguments(channel: BlockingChannel) -> bool:
    declare_with_arguments(channel)  # inequivalent arguments would close the channel
    return True


def acknowledge_and_publish(channel: BlockingChannel) -> None:
    """Acknowledge, then publish: the confirm implies that the acknowledgement is durable."""
    method, _, _ = channel.basic_get("old")
    assert method is not None
    channel.basic_ack(method.delivery_tag)
    channel.confirm_delivery()
    channel.basic_publish("", "old", b"4", PERSISTENT)


#: The last request before the kill, and a check after the start.
ANSWERS: Final[dict[str, tuple[Step, Callable[[BlockingChannel], bool]]]] = {
    "queue.declare": (
        lambda channel: channel.queue_declare("new", durable=True),
        lambda channel: has_queue(channel, "new"),
    ),
    "queue.declare with arguments": (declare_with_arguments, declared_with_arguments),
    "queue.delete": (lambda channel: channel.queue_delete("old"), lambda channel: not has_queue(channel, "old")),
    "queue.purge": (lambda channel: channel.queue_purge("old"), lambda channel: is_empty(channel, "old")),
    "queue.bind": (
        lambda channel: channel.queue_bind("old", "events", "new.#"),
        lambda channel: routes(channel, "events", "new.order", "old"),
    ),
    "queue.unbind": (
        lambda channel: channel.queue_unbind("old", "events", "old.#"),
        lambda channel: not routes(channel, "events", "old.order", "old"),
    ),
    "exchange.declare": (
        lambda channel: channel.exchange_declare("new", "headers", durable=True),
        lambda channel: has_exchange(channel, "new"),
    ),
    "exchange.delete": (
        lambda channel: channel.exchange_delete("events"),
        lambda channel: not has_exchange(channel, "events"),
    ),
    "exchange.bind": (
        lambda channel: channel.exchange_bind("events", "copies", "") and None,
        lambda channel: routes(channel, "copies", "old.order", "old"),
    ),
    "basic.ack before a confirmed publish": (
        acknowledge_and_publish,
        lambda channel: fetch(channel, "old", 3) == [b"2", b"3", b"4"] and is_empty(channel, "old"),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answered_requests_survive_a_kill(name: str, gateway: Gateway, connect: Connect) -> None:
    step, is_kept = ANSWERS[name]
    gateway.start()
    prepare(connect().channel())
    step(connect().channel())
    gateway.restart()
    assert is_kept(connect().channel())


def in_transaction(channel: BlockingChannel) -> None:
    """Acknowledge the first message of ``old`` and publish four messages to two queues, without a commit."""
    channel.tx_select()
    method, _, _ = channel.basic_get("old")
    assert method is not None
    channel.basic_ack(method.delivery_tag)
    for body in (b"4", b"x" * 300_000):
        channel.basic_publish("", "old", body, PERSISTENT)
        channel.basic_publish("", "other", body, PERSISTENT)


def test_a_committed_transaction_survives_completely(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    prepare(channel)
    channel.queue_declare("other", durable=True)
    transacting = connect().channel()
    in_transaction(transacting)
    transacting.tx_commit()
    gateway.restart()
    channel = connect().channel()
    assert fetch(channel, "old", 4) == [b"2", b"3", b"4", b"x" * 300_000]
    assert fetch(channel, "other", 2) == [b"4", b"x" * 300_000]
    assert is_empty(channel, "old")
    assert is_empty(channel, "other")


def test_an_uncommitted_transaction_leaves_nothing(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    prepare(channel)
    channel.queue_declare("other", durable=True)
    transacting = connect().channel()
    in_transaction(transacting)
    transacting.basic_qos(prefetch_count=1)  # answered after all requests above were processed
    gateway.restart()
    channel = connect().channel()
    assert fetch(channel, "old", 3) == [b"1", b"2", b"3"]
    assert is_empty(channel, "old")
    assert is_empty(channel, "other")


def test_transient_entities_and_messages_do_not_survive(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("transient", durable=False)
    channel.queue_declare("mine", exclusive=True, durable=True)
    channel.exchange_declare("transient", "direct", durable=False)
    channel.queue_declare("durable", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "durable", b"transient")
    channel.basic_publish("", "durable", b"persistent", PERSISTENT)
    gateway.restart()
    assert not has_queue(connect().channel(), "transient")
    assert not has_queue(connect().channel(), "mine")
    assert not has_exchange(connect().channel(), "transient")
    assert fetch(connect().channel(), "durable", 1) == [b"persistent"]


def test_users_and_policies_from_definitions_survive_without_the_file(gateway: Gateway, connect: Connect) -> None:
    definitions = gateway.directory / "definitions.json"
    definitions.write_text(DEFINITIONS)
    gateway.start(f"load_definitions={definitions}")
    connect().channel().queue_declare("later", durable=True)  # answered when everything before it is durable
    gateway.restart()
    shop = connect(virtual_host="shop", credentials=pika.PlainCredentials("orders", "orders-demo"))
    assert has_queue(shop.channel(), "orders.invoices")
    with pytest.raises(ChannelClosedByBroker, match="access to queue 'other'"):
        shop.channel().queue_declare("other", durable=True)
    gateway.kill()
    stored = entities_in(gateway.data)
    assert PolicyRecord("shop", "short", False, "^orders", "all", 0, {"max-length": 10}) in stored
    assert ParameterRecord("shop", "gateway-test", "answer", 42) in stored


def entities_in(data: Path) -> list[Entity]:
    store = LmdbStore(data, call_in_kernel=lambda call: None)
    entities = [change.entity for change in store.recover() if isinstance(change, Put)]
    store.close()
    return entities


DEFINITIONS: Final = """{
  "users": [{"name": "orders", "tags": [],
             "password_hash": "BHYx84y514Fs7CZBqqs+yjxEcTAp1C4TrTg73iCYCFcaE4aP"}],
  "vhosts": [{"name": "shop"}],
  "permissions": [{"user": "orders", "vhost": "shop", "configure": "^orders", "write": "^orders", "read": "^orders"}],
  "policies": [{"name": "short", "vhost": "shop", "pattern": "^orders", "definition": {"max-length": 10}}],
  "parameters": [{"component": "gateway-test", "name": "answer", "vhost": "shop", "value": 42}],
  "queues": [{"name": "orders.invoices", "vhost": "shop", "durable": true}]
}"""
