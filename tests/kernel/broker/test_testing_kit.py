"""The in-memory broker for tests of plugins and the gateway works as documented."""

from textwrap import dedent

import pytest

from gateway.testing import MemoryBroker, Recipient, broker


def test_the_example_of_its_docstring_runs() -> None:
    assert broker.__doc__ is not None
    example = dedent(broker.__doc__.partition("::\n\n")[2])
    assert "assert worker.bodies" in example
    exec(compile(example, "the example", "exec"), {"MemoryBroker": MemoryBroker, "Recipient": Recipient})


def test_the_memory_broker_has_the_built_in_exchange_types() -> None:
    """R16, R17: they are registered like those of plugins."""
    types = set(MemoryBroker().vhost.exchange_types)
    assert {"direct", "fanout", "topic", "headers"} <= types


def test_settling_an_unknown_delivery_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="no delivery 1 is outstanding"):
        Recipient().settle(1)


def test_recipients_may_share_a_log_of_deliveries() -> None:
    memory = MemoryBroker()
    queue = memory.vhost.declare_queue("q")
    first = Recipient()
    second = Recipient(first.log)
    first.consume(queue)
    second.consume(queue)
    for body in (b"1", b"2", b"3"):
        memory.publish("q", body)
    assert [(recipient, received.body) for recipient, received in first.log] == [
        (first, b"1"),
        (second, b"2"),
        (first, b"3"),
    ]
