"""The log exchange: log lines as messages."""

import gc
import logging
import threading
from collections.abc import Iterator

import pytest

from gateway.logs import StructuredLog
from gateway.testing import MemoryBroker, Recipient
from gateway_tracing.log_exchange import EXCHANGE

LOG = StructuredLog("test")


@pytest.fixture(autouse=True)
def debug() -> Iterator[None]:
    logger = logging.getLogger("gateway")
    level, handlers = logger.level, list(logger.handlers)
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(level)
    logger.handlers = handlers


def watcher(broker: MemoryBroker, key: str) -> Recipient:
    vhost = broker.kernel.declare_vhost("watched", plugins={"log-exchange": {}})
    queue = vhost.declare_queue(f"lines {key}")
    vhost.bind(vhost.exchange(EXCHANGE), queue, key)
    recipient = Recipient()
    recipient.consume(queue)
    return recipient


def test_a_line_is_a_message_with_its_level_as_key() -> None:
    broker = MemoryBroker()
    recipient = watcher(broker, "warning")
    LOG.info("not bound")
    LOG.warning("disk is slow", seconds=3)
    (received,) = recipient.received
    assert b"disk is slow" in received.body
    assert b"seconds=3" in received.body
    message = received.message
    assert (message.exchange, message.routing_key) == (EXCHANGE, "warning")
    assert dict(message.headers) == {"node": "gateway@test"}
    assert message.properties.content_type == "text/plain"
    assert message.properties.timestamp is not None


def test_a_line_of_another_thread_follows_with_the_next_one() -> None:
    broker = MemoryBroker()
    recipient = watcher(broker, "#")
    thread = threading.Thread(target=LOG.info, args=("from a thread",))
    thread.start()
    thread.join()
    assert recipient.received == []
    LOG.info("from the kernel")
    assert [b"from a thread" in body for body in recipient.bodies] == [True, False]


def test_nothing_is_published_without_a_binding_and_after_the_plugin_is_gone() -> None:
    broker = MemoryBroker()
    vhost = broker.kernel.declare_vhost("watched", plugins={"log-exchange": {}})
    LOG.info("without a binding")
    assert vhost.traffic.published == 0
    before = len(logging.getLogger("gateway").handlers)
    broker.kernel.delete_vhost("watched")
    broker.advance(1)
    del vhost
    gc.collect()
    LOG.info("without a plugin")
    assert len(logging.getLogger("gateway").handlers) == before - 1
