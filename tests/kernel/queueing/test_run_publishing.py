"""Rows of a batch are published as a run only while none of them needs more than a place in one queue."""

from collections.abc import Callable

import pytest

from gateway.kernel.archives.message_observer import MessageObserver
from gateway.kernel.interception.interceptor import Interceptor
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.origin import Origin
from gateway.kernel.vhosts.run_publishing import RunPublishing
from gateway.kernel.vhosts.virtual_host import VirtualHost

SIZES = [0, 100, 101, 101, 5000, 1]


class Watching(Interceptor):
    """An interceptor that has to see each message."""

    def on_publish(self, message: Message, origin: Origin) -> Message:
        return message


def run(sizes: list[int], routing_key: str = "k") -> list[Message]:
    header = native_header(Properties(delivery_mode=2))
    return [Message("x", routing_key, header, b"x" * size) for size in sizes]


@pytest.fixture
def vhost(vhost: VirtualHost) -> VirtualHost:
    """The exchange ``x`` has a known route for ``k``: one durable queue, in which a message waits."""
    exchange = vhost.declare_exchange("x", "direct", is_durable=True)
    vhost.bind(exchange, vhost.declare_queue("q", is_durable=True), "k")
    vhost.publish(exchange, run([1])[0])
    return vhost


@pytest.fixture
def runs(vhost: VirtualHost) -> RunPublishing:
    return RunPublishing(vhost, Origin("test", 0, "guest", "HTTP"))


def test_a_run_is_counted_as_its_messages_would_be(vhost: VirtualHost, runs: RunPublishing) -> None:
    assert runs.publish(run(SIZES))
    traffic = vhost.traffic.published_by("HTTP")
    assert (traffic.bytes, traffic.sizes[:4], traffic.published) == (sum(SIZES), [3, 2, 1, 0], 6)
    exchange = vhost.exchange("x")
    assert (exchange.published_in, exchange.published_out, len(vhost.queue("q"))) == (7, 7, 7)


def intercepted(vhost: VirtualHost) -> None:
    vhost.interception.apply([Watching()])


def traced(vhost: VirtualHost) -> None:
    vhost.tracing = MessageObserver()


def bound_twice(vhost: VirtualHost) -> None:
    vhost.bind(vhost.exchange("x"), vhost.declare_queue("other"), "k")
    vhost.publish(vhost.exchange("x"), run([1])[0])


def unbound(vhost: VirtualHost) -> None:
    vhost.unbind(vhost.exchange("x"), vhost.queue("q"), "k")


def deleted(vhost: VirtualHost) -> None:
    vhost.delete_exchange("x")


def inert(vhost: VirtualHost) -> None:
    vhost.exchange("x").inert_reason = "its plugin is missing"


@pytest.mark.parametrize("change", [intercepted, traced, bound_twice, unbound, deleted, inert])
def test_a_run_is_not_published_at_once_if_each_message_needs_something(
    vhost: VirtualHost, runs: RunPublishing, change: Callable[[VirtualHost], None]
) -> None:
    change(vhost)
    waiting = len(vhost.queue("q"))
    assert not runs.publish(run(SIZES))
    assert len(vhost.queue("q")) == waiting
    assert vhost.traffic.published_by("HTTP").published == 0
