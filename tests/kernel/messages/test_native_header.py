"""Header edits of messages published by the broker: dead-lettering works, and integers keep their width."""

from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Properties, Value
from gateway.kernel.messages.native_header import NATIVE, native_header
from gateway.kernel.messages.values import dumps, loads
from gateway.testing import MemoryBroker, Recipient


def test_an_edit_sets_and_removes_headers_and_keeps_the_rest() -> None:
    header = native_header(Properties(headers={"a": 1, "b": 2}, expiration="5", delivery_mode=2, message_id="m"))
    edited = header.edited({"b": Long(3), "c": None}, without=("a",), drops_expiration=True)
    expected = Properties(headers={"b": 3, "c": None}, delivery_mode=2, message_id="m")
    assert edited.properties == NATIVE.header(edited.raw).properties == expected
    assert (edited.expiration_ms, edited.is_persistent, header.expiration_ms) == (None, True, 5)


def test_a_long_is_decoded_from_the_store_as_a_long() -> None:
    kept = loads(dumps({"count": Long(1), "plain": 1}))
    assert kept == {"count": 1, "plain": 1}
    assert type(kept["count"]) is Long
    assert type(kept["plain"]) is int


def test_a_dead_letter_of_the_broker_keeps_its_types_over_a_restart() -> None:
    broker = MemoryBroker()
    broker.vhost.declare_queue("dead", is_durable=True)
    arguments: dict[str, Value] = {
        "x-message-ttl": 0,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    broker.vhost.declare_queue("q", is_durable=True, arguments=arguments)
    broker.publish("q", b"m", is_persistent=True)
    broker.commit()
    restarted = broker.crashed()
    received = Recipient().get(restarted.vhost.queue("dead"))
    assert received is not None
    deaths = received.message.headers["x-death"]
    assert isinstance(deaths, list)
    assert isinstance(deaths[0], dict)
    assert type(deaths[0]["count"]) is Long
